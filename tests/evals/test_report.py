"""The report is one page that needs nothing else, escapes everything, and says what is simulated."""

import json
import re
from html.parser import HTMLParser

import pytest

from podium.errors import UsageError
from podium.evals import SIMULATED, Comparison, ComparisonRow, Interval
from podium.evals.comparison import RECORDED, BeforeAfter, ExamplePlan, ExampleStep
from podium.evals.report import write_report

EVIL = "<script>alert('&')</script>"


def row(kind: str, label: str, accuracy: float, **others) -> ComparisonRow:
    return ComparisonRow(
        kind=kind,
        label=label,
        accuracy=Interval(mean=accuracy, low=accuracy - 0.05, high=accuracy + 0.05),
        steps=2,
        calls=2,
        cost_usd=0.002,
        latency_s=3,
        validity=1,
        failures=0,
        by_hops={1: accuracy, 2: accuracy},
        **others,
    )


def plan(correct: bool) -> ExamplePlan:
    step = ExampleStep(worker=EVIL, subtask=EVIL, reads=(0,), status="done", response=EVIL)
    return ExamplePlan(steps=(step,), error=EVIL, answer=EVIL, correct=correct, cost_usd=0.001)


COMPARISON = Comparison(
    questions=60,
    seed="0",
    pool=("a", EVIL),
    simulated=True,
    rows=(row("conductor", "Conductor", 0.8), row("single", f"{EVIL} alone", 0.5)),
    examples=(BeforeAfter(question=EVIL, gold=EVIL, hops=1, before=plan(False), after=plan(True)),),
)


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


def written(tmp_path, *, comparison: Comparison | None = COMPARISON, rows: str | None = None) -> str:
    if comparison is not None:
        comparison.save(tmp_path / "comparison.json")
    if rows is not None:
        (tmp_path / "metrics.jsonl").write_text(rows, encoding="utf-8")
    path = write_report(tmp_path)
    assert path == tmp_path / "report.html"
    assert sorted(file.name for file in tmp_path.iterdir() if "part" in file.name) == []
    return path.read_text(encoding="utf-8")


def test_the_page_is_whole_and_loads_nothing(tmp_path):
    text = written(tmp_path, rows=metrics())
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.loads == []
    assert "script" not in page.seen
    assert not re.search(r"url\(|@import|https?://", text)
    assert page.seen.count("polyline") == 2 * 5 + 1  # the curves of training, and the front
    assert page.seen.count("polygon") == 2


def test_everything_is_escaped(tmp_path):
    text = written(tmp_path, rows=metrics())
    assert EVIL not in text
    assert text.count("&lt;script&gt;") > 10


def test_figures_of_simulated_workers_say_so_and_others_do_not(tmp_path):
    assert SIMULATED in written(tmp_path)
    assert SIMULATED not in written(tmp_path, comparison=COMPARISON.model_copy(update={"simulated": False}))


@pytest.mark.parametrize("recorded", [True, False])
def test_a_report_of_training_says_where_replies_were_from(tmp_path, recorded):
    rows = [{"iteration": k, "reward": 0.5, "recorded": recorded} for k in range(2)]
    text = written(tmp_path, comparison=None, rows="".join(json.dumps(row) + "\n" for row in rows))
    assert (RECORDED in text) == recorded


def test_training_alone_and_evaluation_alone_make_a_page(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    training = written(tmp_path / "a", comparison=None, rows=metrics())
    evaluation = written(tmp_path / "b")
    assert ("Share of steps by worker" in training, "Held-out questions" in training) == (True, False)
    assert ("Share of steps by worker" in evaluation, "Held-out questions" in evaluation) == (False, True)


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path):
    assert "30 iterations" in written(tmp_path, rows=metrics() + '{"iteration": 30, "rew')


def test_the_title_is_the_folders_name_or_the_one_given(tmp_path):
    (tmp_path / "demo").mkdir()
    assert "<title>Podium: demo</title>" in written(tmp_path / "demo")
    assert "<h1>Podium: Seed 3</h1>" in write_report(tmp_path / "demo", title="Seed 3").read_text()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "there is no such run folder"),
        ({}, "has neither metrics nor comparison.json"),
        ({"metrics.jsonl": "not json\n{}\n"}, "this is no row of metrics"),
        ({"comparison.json": "{}"}, "does not hold a comparison"),
    ],
)
def test_what_is_no_run_is_refused_and_nothing_written(tmp_path, content, says):
    run = tmp_path / "run"
    if content is not None:
        run.mkdir()
        for name, text in content.items():
            (run / name).write_text(text)
    with pytest.raises(UsageError, match=says):
        write_report(run)
    assert not (run / "report.html").exists()
