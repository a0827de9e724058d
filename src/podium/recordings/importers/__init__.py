"""Importers: each streams one kind of source into a `RecordingWriter`, and reports what it left out.

`IMPORTERS` has those that need only the path of the source; other packages add theirs through entry points of the group
"podium.importers". `import_table` and `import_from_traces` need more arguments, so they are called directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from podium.config import suggestion
from podium.errors import ConfigError, UsageError
from podium.recordings.importers.dylan import import_dylan
from podium.recordings.importers.import_report import ImportReport
from podium.recordings.importers.judgebench import import_judgebench
from podium.recordings.importers.llmverify import import_llmverify
from podium.recordings.importers.mmlu_pro import import_mmlu_pro
from podium.recordings.importers.reasoning_gym import import_reasoning_gym
from podium.recordings.importers.routeprofile import import_routeprofile
from podium.recordings.importers.routerdc import import_routerdc
from podium.recordings.importers.table import TableMapping, import_table, read_mapping
from podium.recordings.importers.traces import import_from_traces, read_traces
from podium.recordings.importers.zeroeval import import_zeroeval
from podium.recordings.writer import RecordingWriter

Importer: TypeAlias = Callable[[Path, RecordingWriter, Callable[[str], None]], ImportReport]
"""(file or folder, writer of the recording, function that is called with the name of each part) -> the report."""

IMPORTERS: Mapping[str, Importer] = MappingProxyType(
    {
        "reasoning-gym": import_reasoning_gym,
        "zeroeval": import_zeroeval,
        "mmlu-pro": import_mmlu_pro,
        "routeprofile": import_routeprofile,
        "routerdc": import_routerdc,
        "judgebench": import_judgebench,
        "dylan": import_dylan,
        "llmverify": import_llmverify,
    }
)
"""Podium's own importers, by their names in `podium replay import`."""

ENTRY_POINTS = "podium.importers"
"""The group of entry points with which other packages add importers."""


def find_importer(name: str, others: tuple[str, ...] = ()) -> Importer:
    """The importer of this name, built-in or installed.

    Args:
        others: further names that the caller accepts, for the message.

    Raises:
        UsageError: there is no such importer.
        ConfigError: the importer of an installed package cannot be loaded.
    """
    if name in IMPORTERS:
        return IMPORTERS[name]
    installed = entry_points(group=ENTRY_POINTS)
    for entry in installed.select(name=name):
        try:
            importer: Importer = entry.load()
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"The importer {name!r} is {entry.value}, which cannot be loaded ({error}); repair that package."
            ) from None
        return importer
    known = suggestion(name, (*IMPORTERS, *others, *installed.names))
    raise UsageError(f"There is no importer named {name!r}; {known}")


__all__ = [
    "ENTRY_POINTS",
    "IMPORTERS",
    "ImportReport",
    "Importer",
    "TableMapping",
    "find_importer",
    "import_dylan",
    "import_from_traces",
    "import_judgebench",
    "import_llmverify",
    "import_mmlu_pro",
    "import_reasoning_gym",
    "import_routeprofile",
    "import_routerdc",
    "import_table",
    "import_zeroeval",
    "read_mapping",
    "read_traces",
]
