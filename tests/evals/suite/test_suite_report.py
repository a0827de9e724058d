"""The report of a suite says what was measured, marks what Holm's method lets stand, and shows single questions."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest

from podium.errors import UsageError
from podium.evals.answer_files import RESULTS
from podium.evals.suite.manifest import SUITE
from podium.evals.suite.report import write_report
from podium.evals.suite.suite_run import run_suite
from suites import check, data

PLANNERS = [
    {"planner": "committee:xia+yan+zoe", "label": "ours", "controls": ["random-plans", "best-worker"]},
    {"planner": "single:*"},
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Over the calculators and three of whom two know each answer."""
    folder = tmp_path_factory.mktemp("runs") / "r"
    tasks, team = data()
    rows = [json.loads(line) for line in Path(tasks).read_text().splitlines()]
    three = (
        _knows(name, [row for number, row in enumerate(rows) if number % 3 != place])
        for place, name in enumerate(("xia", "yan", "zoe"))
    )
    pool = folder.parent / "and-three.toml"
    pool.write_text("\n".join((*three, Path(team).read_text())))
    checked = check(
        folder,
        questions=40,
        training=10,
        processes=1,
        split="validation",
        planner=PLANNERS,
        pool=[{"name": str(pool)}],
        title="A <b>bold</b> claim",
    )
    folder.mkdir()
    checked.save(folder / SUITE)
    (table,) = checked.tables
    table.count_look("")
    asyncio.run(run_suite(checked, folder))
    return folder


def _knows(name: str, rows: Sequence[Mapping[str, str]]) -> str:
    replies = {row["question"]: f"Answer: {row['answer']}" for row in rows} | {"": "I do not know."}
    table = ", ".join(f"{json.dumps(question)} = {json.dumps(reply)}" for question, reply in replies.items())
    return (
        f'[[worker]]\nname = "{name}"\nkind = "scripted"\nreplies = {{ {table} }}\n'
        "price = { input = 1.0, output = 6.0 }\n"
    )


class Texts(HTMLParser):
    """Reads the rows of all tables, and which elements come from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.outside += [str(value) for name, value in attrs if name in ("src", "href")]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self.rows.append([])

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_the_page_is_whole_by_itself_and_readable_without_the_file(run: Path) -> None:
    page = write_report([run]).read_text(encoding="utf-8")
    read = Texts()
    read.feed(page)
    assert read.outside == []
    assert "<b>bold</b>" not in page
    assert "drawn with 1 seed, 1 answer a question." in page
    first = {row[0]: row for row in reversed(read.rows) if len(row) > 5}
    assert {"ours", "ours: random-plans", "ours: best-worker", "gus alone"} <= first.keys()
    verdicts = {row[0]: row[3] for row in read.rows if len(row) == 5 and row[0].startswith("ours:")}
    assert verdicts == {"ours: random-plans": "ruled out", "ours: best-worker": "ruled out"}
    assert ["1, this one", "11"] in [[row[0], row[2]] for row in read.rows if len(row) == 4]
    for part in (
        "Where ours wins and loses",
        "ours wins:",
        "Topologies of ours",
        "What failed",
        "A team may help",
    ):
        assert part in page
    assert len(set(re.findall(r"<circle[^>]*><title>(.*?):[^:]*</title>", page))) == 11, "each is a dot"


def test_rows_that_lack_answers_are_named_and_left_out(run: Path, tmp_path: Path) -> None:
    half = tmp_path / "half"
    (half / RESULTS).mkdir(parents=True)
    (half / SUITE).write_bytes((run / SUITE).read_bytes())
    for file in (run / RESULTS).iterdir():
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = lines[:-1] if "random" in file.name else lines
        (half / RESULTS / file.name).write_text("".join(kept), encoding="utf-8")
    page = write_report([half]).read_text(encoding="utf-8")
    assert "Not finished, and so not shown: ours: random-plans." in page
    assert page.count("<section>") == 1
    assert "<h1>A &lt;b&gt;bold&lt;/b&gt; claim</h1>" in page


def test_a_folder_without_a_suite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has neither metrics nor"):
        write_report([tmp_path])
