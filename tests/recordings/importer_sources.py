"""Tiny sources on their way through an importer."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.errors import UsageError
from podium.recordings import Recording, RecordingWriter
from podium.recordings.importers import ImportReport

Gather = Callable[[Path, RecordingWriter, Callable[[str], None]], ImportReport]


def imported(gather: Gather, source: Path) -> tuple[Recording, ImportReport, list[str]]:
    """What an importer makes of a source, what it found, and whom it told of."""
    told: list[str] = []
    out = source.parent / "imported.parquet"
    with RecordingWriter() as writer:
        import_report = gather(source, writer, told.append)
        writer.write(out, name="imported", left_out=import_report.sentences, known=import_report.workers())
    return Recording.open(out), import_report, told


def refused(gather: Gather, source: Path) -> str:
    with RecordingWriter() as writer, pytest.raises(UsageError) as caught:
        gather(source, writer, lambda what: None)
    return str(caught.value)


def write_json(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def write_zip(path: Path, *documents: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for number, document in enumerate(documents):
            archive.writestr(f"part{number}.json", json.dumps(document))
        archive.writestr("__MACOSX/._part0.json", b"\x00\x05")
        archive.writestr("README.md", "Not JSON.")
    return path
