"""Another package adds an importer with one entry point: a function, and no change to Podium."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    site = tmp_path / "site"
    (site / "lined-1.0.dist-info").mkdir(parents=True)
    (site / "lined.py").write_text(PACKAGE)
    (site / "lined-1.0.dist-info" / "METADATA").write_text("Name: lined\nVersion: 1.0\n")
    entries = "[podium.importers]\nlines = lined:import_lines\nbroken = lined:nothing\n"
    (site / "lined-1.0.dist-info" / "entry_points.txt").write_text(entries)
    monkeypatch.syspath_prepend(site)


@pytest.mark.usefixtures("installed")
def test_an_installed_importer_is_used_by_its_name(podium, tmp_path: Path) -> None:
    source = tmp_path / "answers.txt"
    source.write_text("2+2?|ada|four\n2+2?|bob|five\n")
    out = tmp_path / "r.parquet"
    assert podium("replay", "import", "lines", str(source), str(out)).status == 0
    assert Recording.open(out).workers == ("ada", "bob")
