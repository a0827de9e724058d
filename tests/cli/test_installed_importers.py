"""Another package adds an importer with one entry point: a function, and no change to Podium."""

from __future__ import annotations

from pathlib import Path

import pytest

from installed_package import install_package
from podium.recordings import Recording

PACKAGE = """
from podium.recordings import RecordedQuestion, RecordedResponse
from podium.recordings.importers import ImportReport


def import_lines(source, writer, report):
    report(source.name)
    for line in source.read_text().splitlines():
        question, worker, text = line.split("|")
        writer.add_question(RecordedQuestion(question, question))
        writer.add(question, RecordedResponse(worker, 0, text))
    return ImportReport(source="lines")
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = "[podium.importers]\nlines = lined:import_lines\nbroken = lined:nothing\n"
    install_package(monkeypatch, tmp_path / "site", "lined", entries, PACKAGE)


@pytest.mark.usefixtures("installed")
def test_an_installed_importer_is_used_by_its_name(podium, tmp_path: Path) -> None:
    source = tmp_path / "answers.txt"
    source.write_text("2+2?|ada|four\n2+2?|bob|five\n")
    out = tmp_path / "r.parquet"
    assert podium("replay", "import", "lines", str(source), str(out)).status == 0
    assert Recording.open(out).workers == ("ada", "bob")
