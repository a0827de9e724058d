"""An importer's report: what it left out, and how its accuracies compare with those that the source publishes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from podium.recordings.recording_model import RecordedWorker

TOLERANCE = 0.002
"""How far a published accuracy may be from ours, since sources round to tenths of a percent."""


@dataclass(slots=True)
class ImportReport:
    """An importer fills it while it reads a source."""

    source: str = ""
    licence: str = ""
    left_out: Counter[str] = field(default_factory=Counter)
    published: dict[str, float] = field(default_factory=dict)
    measured: dict[str, float] = field(default_factory=dict)
    known: dict[str, RecordedWorker] = field(default_factory=dict)

    @property
    def differing(self) -> dict[str, tuple[float, float]]:
        """The published and measured accuracy of each worker for whom the two differ."""
        return {
            worker: (figure, self.measured[worker])
            for worker, figure in self.published.items()
            if worker in self.measured and abs(figure - self.measured[worker]) > TOLERANCE
        }

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(f"{reason} ({count})" for reason, count in self.left_out.items())

    def workers(self) -> dict[str, RecordedWorker]:
        """The workers of which anything is known, with their published and their measured accuracy."""
        return {
            worker: self.known.get(worker, RecordedWorker(name=worker)).model_copy(
                update={"published": self.published.get(worker), "measured": self.measured.get(worker)}
            )
            for worker in sorted({*self.published, *self.measured, *self.known})
        }
