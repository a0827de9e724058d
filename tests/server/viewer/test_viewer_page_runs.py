"""Runs: what there is, one that is watched while it trains, and what it was compared with."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from podium.evals import Comparison
from podium.evals.comparison import ComparisonRow
from podium.evals.stats import Interval
from podium.rollout.run_folder import RunFolder
from running_server import Serve
from viewer_traces import keep, of_sums

SHARES = {"ada": 0.75, "bram": 0.25}


def row(iteration: int, reward: float) -> dict[str, object]:
    return {
        "iteration": iteration,
        "reward": reward,
        "accuracy": reward / 2,
        "valid": 1.0,
        "steps": 2.0,
        "cost_usd": 0.001,
        "workers": SHARES,
        "seconds": {"all": 1.0},
    }


def training(folder: Path, name: str, rows: int) -> RunFolder:
    run = RunFolder.open(folder / name, {"grpo": {"iterations": 100}})
    draws = random.Random(f"runs/{name}")
    for iteration in range(rows):
        run.rows().append(row(iteration, draws.random()))
    return run


def compared(folder: Path, tasks: str = "") -> None:
    def method(kind: str, label: str, mean: float, cost: float) -> ComparisonRow:
        return ComparisonRow(
            kind=kind,
            label=label,
            accuracy=Interval(mean=mean, low=mean - 0.1, high=mean + 0.1),
            steps=1,
            calls=1,
            cost_usd=cost,
            latency_s=1.5,
            validity=1,
            failures=0,
        )

    rows = (
        method("conductor", "Conductor", 0.8, 0.002),
        method("single", "ada alone", 0.5, 0.001),
        method("single", "gus alone", 0.6, 0.003),
    )
    comparison = Comparison(questions=60, seed="0", pool=("ada",), recorded=True, rows=rows, tasks=tasks)
    comparison.save(folder / "comparison.json")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all runs of these tests, which have names of their own."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def url(shared_serve: Serve, runs: Path) -> str:
    return shared_serve(runs=runs)


def test_runs_are_listed_and_one_is_opened(url, opened_once, runs: Path) -> None:
    training(runs, "first", 3)
    compared(runs / "evaluated")
    page = opened_once.go(url, "runs", ".run-list li >> nth=1")
    listed = page.inner_text(".run-list")
    assert "training, 3 rows" in listed
    assert "evaluation" in listed
    assert "80.0%" in listed
    page.click("a:text-is('first')")
    page.wait_for_selector(".curves canvas")


def test_a_run_is_watched_while_it_trains(url, opened_once, runs: Path) -> None:
    run = training(runs, "deep/er", 3)
    page = opened_once.go(url, "runs/deep/er", ".curves canvas")
    titles = page.locator(".curves b").all_inner_texts()
    assert titles[:4] == ["Reward", "Accuracy", "Valid plans", "Shares of the workers"]
    assert page.locator(".curves.wide .u-series .u-label").all_inner_texts() == ["iteration", "ada", "bram"]
    page.wait_for_selector("text='3 rows'")
    box = page.locator(".curves >> nth=3").bounding_box()
    for iteration in (3, 4):
        run.rows().append(row(iteration, 0.125 * iteration))
        page.wait_for_selector(f"text={iteration + 1} rows, the latest at")
    page.wait_for_selector(".curves:has-text('Reward') .latest:text-is('0.5')")
    assert page.locator(".curves >> nth=3").bounding_box() == box
    run.rows().truncate(2)
    page.wait_for_selector("text=2 rows, the latest at")


@pytest.mark.nightly
def test_damaged_rows_of_a_run_are_passed_over(url, opened_once, runs: Path) -> None:
    run = training(runs, "damaged", 2)
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"iteration": 2, "rew\n17\n')
    page = opened_once.go(url, "runs/damaged", ".curves canvas")
    page.wait_for_selector("text='4 rows'")
    run.rows().append(row(4, 0.5))
    page.wait_for_selector("text=5 rows, the latest at")
    page.wait_for_selector(".curves:has-text('Reward') .latest:text-is('0.5')")
    assert page.locator(".iterations tbody th").all_inner_texts() == [f"iteration {n}" for n in (4, 1, 0)]


@pytest.mark.nightly
def test_a_curve_stays_zoomed_under_the_pointer(url, opened_once, runs: Path) -> None:
    training(runs, "zoomed", 9)
    page = opened_once.go(url, "runs/zoomed", ".curves canvas")
    box = page.locator(".u-over").first.bounding_box()

    def move(share: float) -> None:
        page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)

    def drawn() -> str:
        return str(page.evaluate("document.querySelector('.curves canvas').toDataURL()"))

    whole = drawn()
    move(0.2)
    page.mouse.down()
    move(0.6)
    page.mouse.up()
    zoomed = drawn()
    move(0.1)
    move(0.9)
    page.wait_for_selector(".latest:has-text(' at iteration ')")
    assert drawn() == zoomed != whole


def test_a_comparison_is_drawn_with_intervals_when_it_is_written(url, opened_once, runs: Path) -> None:
    training(runs, "compared", 2)
    page = opened_once.go(url, "runs/compared", ".curves canvas")
    assert page.locator(".frontier").count() == 0
    compared(runs / "compared")
    page.wait_for_selector(".frontier circle >> nth=2")
    assert page.locator(".frontier title").first.text_content() == "Conductor: 80.0% (70.0% to 90.0%)"
    assert page.locator(".frontier .name").all_text_contents() == ["Conductor", "ada alone"]
    assert "times are not known" in page.inner_text("section")
    cells = page.locator("section tbody tr").nth(1).locator("td").all_inner_texts()
    assert cells[:3] == ["50.0%", "40.0% to 60.0%", "$1.00"]


def test_an_iteration_opens_one_of_its_rollouts(url, opened_once, runs: Path) -> None:
    traces = of_sums(2)
    settings = {"tasks": "sums", "task_limit": 40, "pool": "sums", "stage": "grpo", "grpo": {}}
    run = RunFolder.open(runs / "deep/est", settings)
    for iteration, trace in enumerate(traces):
        figures = {"worker_entropy": 0.0, "topology_entropy": 0.0, "commonest_plan": 1.0}
        alarms = ["100% of the readable plans name the same workers in the same topology."]
        run.rows().append(row(iteration, 0.5) | figures | {"alarms": alarms, "trace_id": trace.id})
    keep(run.path / "traces.sqlite", *traces)

    page = opened_once.go(url, "runs/deep/est", ".curves canvas")

    assert page.locator(".facts dd").all_inner_texts() == [
        "sums, at most 40 questions",
        "train",
        "sums",
        "grpo",
    ]
    assert page.locator(".alarms .note").all_text_contents() == [f"iteration 1: {alarms[0]}"]
    assert page.inner_text(".alarms .none") == "2 iterations of 2 had alarms."
    named = page.locator(".curves figcaption, .iterations thead th").count()
    assert (
        page.locator(".curves figcaption [role=tooltip], .iterations thead [role=tooltip]").count() == named
    )
    cells = page.locator(".iterations tbody tr").all_inner_texts()
    assert [text.split() for text in cells] == [
        ["iteration", str(number), "0.5", "25.0%", "100.0%"] for number in (1, 0)
    ]
    page.click(".iterations tbody tr >> nth=1")
    page.wait_for_selector(".trace .step-box >> nth=1")
    assert page.inner_text(".answer-box .text") == traces[0].question.text
    page.click(".trail a:has-text('deep/est')")
    page.wait_for_selector(".iterations")


def test_missing_rollout_of_a_run_shows_a_message(url, opened_once, runs: Path) -> None:
    training(runs, "traceless", 1)
    page = opened_once.go(url, "runs/traceless?trace=0123", ".trouble")
    assert page.inner_text(".trouble") == "The run 'traceless' keeps no traces of its rollouts."


def test_a_supervised_run_shows_its_loss(url, opened_once, runs: Path) -> None:
    run = RunFolder.open(runs / "supervised", {"pool": "sums", "stage": "sft", "sft": {"examples": "random"}})
    for step in (1, 2):
        run.rows().append(
            {"step": step, "loss": 3.0 / step, "learning_rate": 1e-5, "mean_token_accuracy": 0.5}
        )
    page = opened_once.go(url, "runs/supervised", ".curves canvas")
    assert page.locator(".curves b").all_inner_texts() == ["Loss", "Tokens predicted", "Learning rate"]
    assert page.locator(".facts dd").all_inner_texts() == [
        "not recorded",
        "not recorded",
        "sums",
        "sft",
        "random",
    ]
    assert page.locator(".iterations, .alarms").count() == 0


@pytest.mark.nightly
def test_run_rows_of_another_kind_are_drawn(url, opened_once, runs: Path) -> None:
    run = RunFolder.open(runs / "starts", {"stages": [{"steps": 40}]})
    for step in (20, 40):
        run.rows().append({"step": step, "loss": 1 / step, "seconds": 1.0})
    page = opened_once.go(url, "runs/starts", ".curves canvas")
    assert page.locator(".curves b").all_inner_texts() == ["Loss"]


@pytest.mark.nightly
def test_a_comparison_names_its_set_and_split_and_defines_its_columns(url, opened_once, runs: Path) -> None:
    training(runs, "named", 1)
    compared(runs / "named", "mine/of/us/validation")
    compared(runs / "older")
    page = opened_once.go(url, "runs/named", ".frontier circle")
    facts = page.locator("section[aria-label=Comparison] .facts dd").all_inner_texts()
    assert facts == ["mine/of/us", "validation", "60", "0"]
    headings = page.locator("section[aria-label=Comparison] thead th")
    assert headings.locator("[role=tooltip]").count() == headings.count() == 8
    headings.nth(2).locator(".term").focus()
    page.wait_for_selector("[role=tooltip]:visible:has-text('19 of 20 cases')")
    page = opened_once.go(url, "runs/older", ".frontier circle")
    facts = page.locator("section[aria-label=Comparison] .facts dd").all_inner_texts()
    assert facts == ["not recorded", "not recorded", "60", "0"]


def test_two_runs_stand_side_by_side(url, opened_once, runs: Path) -> None:
    for name, rate, rows, tasks in [("deep/one", 0.1, 3, "mine/test"), ("two", 0.2, 5, "mine/validation")]:
        settings = {"tasks": "mine", "pool": "sums", "grpo": {"learning_rate": rate, "group": 4}}
        run = RunFolder.open(runs / name, settings)
        for iteration in range(rows):
            run.rows().append(row(iteration, 0.5))
        compared(run.path, tasks)
    page = opened_once.go(url, "runs", ".run-list li >> nth=1")
    assert page.is_disabled("text=Compare 0 of 2")
    page.check("[aria-label='Compare two']")
    page.check("[aria-label='Compare deep/one']")
    page.click("text=Compare 2 of 2")
    page.wait_for_selector(".curves canvas >> nth=4")
    assert page.url.endswith("#/runs/two/vs/deep%2Fone")
    differing = [
        line.locator("th, td").all_inner_texts() for line in page.locator(".two-columns tbody tr").all()
    ]
    assert differing == [
        ["task set of training", "mine", "mine"],
        ["split of training", "train", "train"],
        ["rows of metrics", "5", "3"],
        ["grpo.learning_rate", "0.2", "0.1"],
    ]
    assert page.is_visible("text=1 setting differs; 3 others are the same.")
    assert page.locator(".curves >> nth=0").locator(".u-series .u-label").all_inner_texts() == [
        "iteration",
        "two",
        "deep/one",
    ]
    table = page.locator("table[aria-label='Methods of both runs'] tbody tr").first
    shown = "80.0% (70.0% to 90.0%)"
    assert table.locator("th, td").all_inner_texts() == ["Conductor", shown, "$2.00", shown, "$2.00"]
    assert page.is_visible("text=The two runs were compared on different questions")


@pytest.mark.nightly
def test_unbounded_cost_is_shown_as_a_dash(url, opened_once, runs: Path) -> None:
    compared(runs / "unbounded")
    file = runs / "unbounded" / "comparison.json"
    file.write_text(file.read_text().replace("0.003", "null"))
    page = opened_once.go(url, "runs/unbounded", "tr:has-text('gus alone')")
    assert page.locator("tr:has-text('gus alone') td").all_inner_texts()[2] == "–"


@pytest.mark.nightly
def test_a_free_method_is_on_the_frontier_left_of_all_others(url, opened_once, runs: Path) -> None:
    compared(runs / "free")
    file = runs / "free" / "comparison.json"
    file.write_text(file.read_text().replace("0.003", "0.0"))
    page = opened_once.go(url, "runs/free", ".frontier circle >> nth=2")
    assert page.locator(".frontier .name").all_text_contents() == ["Conductor", "gus alone"]
    positions = page.locator(".frontier circle").evaluate_all(
        "(all) => all.map((one) => one.cx.baseVal.value)"
    )
    assert positions[2] < positions[1] < positions[0]
    assert page.locator(".frontier text:text-is('$0')").bounding_box()["x"] > 0


def test_comparison_with_a_missing_run_shows_a_message(url, opened_once, runs: Path) -> None:
    training(runs, "one", 1)
    page = opened_once.go(url, "runs/one/vs/nobody", ".trouble")
    assert page.inner_text(".trouble") == "There is no run 'nobody' in the server's folder of runs."


@pytest.mark.nightly
def test_runs_fit_a_phone(url, phone, runs: Path) -> None:
    training(runs, "small", 4)
    compared(runs / "small")
    phone.go(url, "runs", ".run-list li")
    assert phone.overflow == 0
    phone.go(url, "runs/small", ".frontier circle")
    assert phone.overflow == 0
    phone.page.emulate_media(color_scheme="dark")
    phone.go(url, "runs/small/vs/small", "table[aria-label='Methods of both runs'] td")
    assert phone.overflow == 0
