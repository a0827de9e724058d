"""Importers: each streams one kind of source into a `RecordingWriter`, and reports what it left out.

Installed packages add importers that need only the path of the source, through entry points of the group
"podium.importers". `import_table` and `import_from_traces` need more arguments, so they are called directly.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from podium.config import suggestion
from podium.errors import UsageError
from podium.plugins import PluginGroup
from podium.recordings.importers.import_report import ImportReport
from podium.recordings.importers.table import TableMapping, import_table, read_mapping
from podium.recordings.importers.traces import import_from_traces
from podium.recordings.writer import RecordingWriter

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


__all__ = [
    "ImportReport",
    "Importer",
    "TableMapping",
    "find_importer",
    "import_from_traces",
    "import_table",
    "read_mapping",
]
