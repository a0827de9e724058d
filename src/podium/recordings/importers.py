"""Importers: each streams one kind of source into a `RecordingWriter`, and reports what it left out.

Installed packages add importers that need only the path of the source, through entry points of the group
"podium.importers". `import_table` needs more arguments, so it is called directly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from podium.config import suggestion
from podium.errors import UsageError
from podium.plugins import PluginGroup
from podium.recordings.recording_model import RecordedWorker
from podium.recordings.writer import RecordingWriter

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


Importer: TypeAlias = Callable[[Path, RecordingWriter, Callable[[str], None]], ImportReport]
"""(file or folder, writer of the recording, function that is called with the name of each part) -> the report."""

_INSTALLED = PluginGroup[Importer]("podium.importers", "importer")


def find_importer(name: str, others: tuple[str, ...] = ()) -> Importer:
    """The importer that an installed package adds under this name.

    Args:
        others: further names that the caller accepts, for the message.

    Raises:
        UsageError: there is no such importer.
        ConfigError: it cannot be loaded.
    """
    importer = _INSTALLED.find(name)
    if importer is None:
        known = suggestion(name, (*others, *_INSTALLED.names))
        raise UsageError(f"There is no importer named {name!r}; {known}")
    return importer
