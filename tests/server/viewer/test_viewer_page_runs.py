"""Runs: what there is, one that is watched while it trains, and what it was compared with."""

from __future__ import annotations

import random
from pathlib import Path

from podium.evals import Comparison
from podium.evals.comparison import Row
from podium.evals.stats import Interval
from podium.rollout.run_folder import RunFolder

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


def compared(folder: Path) -> None:
    def method(kind: str, label: str, mean: float, cost: float) -> Row:
        return Row(
            kind=kind,
            label=label,
            accuracy=Interval(mean=mean, low=mean - 0.1, high=mean + 0.1),
            steps=1,
            calls=1,
            cost_usd=cost,
            latency_s=1.5,
            validity=1,
            failures=0,
            by_hops={},
        )

    rows = (
        method("conductor", "Conductor", 0.8, 0.002),
        method("single", "ada alone", 0.5, 0.001),
        method("single", "gus alone", 0.6, 0.003),
    )
    Comparison(questions=60, seed="0", pool=("ada",), simulated=True, rows=rows).save(
        folder / "comparison.json"
    )


def test_runs_are_listed_and_one_is_opened(serve, opened, tmp_path: Path) -> None:
    training(tmp_path, "first", 3)
    compared(tmp_path / "evaluated")
    page = opened.go(serve(runs=tmp_path), "runs", ".run-list li >> nth=1")
    listed = page.inner_text(".run-list")
    assert "training, 3 rows" in listed
    assert "evaluation" in listed
    assert "80.0%" in listed
    page.click("text=first")
    page.wait_for_selector(".curves canvas")


def test_a_run_is_watched_while_it_trains(serve, opened, tmp_path: Path) -> None:
    run = training(tmp_path, "deep/er", 3)
    page = opened.go(serve(runs=tmp_path), "runs/deep/er", ".curves canvas")
    titles = page.locator(".curves b").all_inner_texts()
    assert titles[:4] == ["Reward", "Accuracy", "Valid plans", "Shares of the workers"]
    assert page.locator(".curves.wide .u-series .u-label").all_inner_texts() == ["iteration", "ada", "bram"]
    page.wait_for_selector("text='3 rows'")
    place = page.locator(".curves >> nth=3").bounding_box()
    for iteration in (3, 4):
        run.rows().append(row(iteration, 0.125 * iteration))
        page.wait_for_selector(f"text='{iteration + 1} rows, growing'")
    page.wait_for_selector(".curves:has-text('Reward') .latest:text-is('0.5')")
    assert page.locator(".curves >> nth=3").bounding_box() == place
    run.rows().truncate(2)
    page.wait_for_selector("text='2 rows, growing'")


def test_a_comparison_is_drawn_with_intervals_when_it_is_written(serve, opened, tmp_path: Path) -> None:
    training(tmp_path, "run", 2)
    page = opened.go(serve(runs=tmp_path), "runs/run", ".curves canvas")
    assert page.locator(".frontier").count() == 0
    compared(tmp_path / "run")
    page.wait_for_selector(".frontier circle >> nth=2")
    assert page.locator(".frontier title").first.text_content() == "Conductor: 80.0% (70.0% to 90.0%)"
    assert page.locator(".frontier .name").all_text_contents() == ["Conductor", "ada alone"]
    assert "say nothing of real models" in page.inner_text("section")
    cells = page.locator("section tbody tr").nth(1).locator("td").all_inner_texts()
    assert cells[:3] == ["50.0%", "40.0% to 60.0%", "$1.00"]


def test_rows_of_another_kind_are_drawn_too(serve, opened) -> None:
    published = Path(__file__).parents[3] / "checkpoints"
    page = opened.go(serve(runs=published), "runs/recorded", ".curves canvas")
    assert page.locator(".curves b").all_inner_texts() == ["Loss"]


def test_runs_fit_a_phone(serve, phone, tmp_path: Path) -> None:
    training(tmp_path, "run", 4)
    compared(tmp_path / "run")
    url = serve(runs=tmp_path)
    phone.go(url, "runs", ".run-list li")
    assert phone.overflow == 0
    phone.go(url, "runs/run", ".frontier circle")
    assert phone.overflow == 0
