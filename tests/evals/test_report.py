"""The report of a training is one page that needs nothing else, and escapes everything."""

import json
import re
from html.parser import HTMLParser

import pytest

from podium.errors import PodiumError
from podium.evals.comparison import RECORDED
from podium.evals.suite.report import write_report

EVIL = "<script>alert('&')</script>"


def metrics(iterations: int = 30) -> str:
    rows = [
        {
            "iteration": k,
            "reward": 0.5 + k / 100,
            "accuracy": k / 30,
            "valid": 1.0,
            "steps": 2.0,
            "cost_usd": 0.002,
            "workers": {"a": 0.25, EVIL: 0.75},
        }
        for k in range(iterations)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


class Page(HTMLParser):
    """Tags that are closed as they were opened, and what the page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.loads += [name for name, _ in attributes if name in ("src", "href", "srcset", "data")]
        if tag not in ("meta", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def written(tmp_path, rows: str) -> str:
    (tmp_path / "metrics.jsonl").write_text(rows, encoding="utf-8")
    path = write_report([tmp_path])
    assert path == tmp_path / "report.html"
    assert sorted(file.name for file in tmp_path.iterdir() if "part" in file.name) == []
    return path.read_text(encoding="utf-8")


def test_the_page_is_whole_and_loads_nothing(tmp_path):
    text = written(tmp_path, metrics())
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.loads == []
    assert not re.search(r"url\(|@import|https?://", text)
    assert page.seen.count("polyline") == 2 * 5
    assert page.seen.count("polygon") == 2


def test_everything_is_escaped(tmp_path):
    text = written(tmp_path, metrics())
    assert EVIL not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize("recorded", [True, False])
def test_a_report_of_training_says_where_replies_were_from(tmp_path, recorded):
    rows = [{"iteration": k, "reward": 0.5, "recorded": recorded} for k in range(2)]
    text = written(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    assert (RECORDED in text) == recorded


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path):
    assert "30 iterations" in written(tmp_path, metrics() + '{"iteration": 30, "rew')


def test_the_title_of_a_training_is_its_folders_name(tmp_path):
    (tmp_path / "demo").mkdir()
    assert "<title>Podium: demo</title>" in written(tmp_path / "demo", metrics())


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "there is no such run folder"),
        ({}, "has neither metrics nor"),
        ({"metrics.jsonl": "not json\n{}\n"}, "this is no row of metrics"),
        ({"suite.json": "{}"}, "does not hold the manifest of a suite"),
    ],
)
def test_folder_without_a_run_is_refused_and_no_report_written(tmp_path, content, says):
    run = tmp_path / "run"
    if content is not None:
        run.mkdir()
        for name, text in content.items():
            (run / name).write_text(text)
    with pytest.raises(PodiumError, match=says):
        write_report([run])
    assert not (run / "report.html").exists()
