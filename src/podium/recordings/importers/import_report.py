"""An importer's report: what it left out, and whether the rows give the accuracies that the source publishes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from podium.recordings.model import RecordedWorker

TOLERANCE = 0.002
"""Between a published accuracy and ours: what rounding to a tenth of a point explains."""


@dataclass(slots=True)
class ImportReport:
    """Filled while a source is read."""

    source: str = ""
    licence: str = ""
    left_out: Counter[str] = field(default_factory=Counter)
    """Reasons, with how many rows each cost."""
    published: dict[str, float] = field(default_factory=dict)
    """By worker, as the source reports it."""
    measured: dict[str, float] = field(default_factory=dict)
    """The same figure from the rows."""

    @property
    def differing(self) -> dict[str, tuple[float, float]]:
        """Workers whose published figure the rows do not give: published and measured."""
        return {
            worker: (figure, self.measured[worker])
            for worker, figure in self.published.items()
            if worker in self.measured and abs(figure - self.measured[worker]) > TOLERANCE
        }

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was left out."""
        return tuple(f"{reason} ({count})" for reason, count in self.left_out.items())

    def workers(self) -> dict[str, RecordedWorker]:
        """Workers with both figures, where there are any."""
        return {
            worker: RecordedWorker(
                name=worker, published=self.published.get(worker), measured=self.measured.get(worker)
            )
            for worker in sorted({*self.published, *self.measured})
        }
