"""A suite whose grader fails at times: such an answer decides no choice, and is graded again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podium.evals.comparison import Comparison
from podium.evals.suite.comparisons import comparison_of, evaluations_of
from podium.evals.suite.suite_run import run_suite
from podium_testing import FaultServer
from suites import ALONE, check
from tiny_policy import write_policy


@pytest.fixture
def unknown() -> set[str]:
    """Answers of which the judge says nothing. The judge reads them anew for each verdict."""
    return set()


@pytest.fixture
def judgments() -> list[str]:
    """All answers that the judge has read."""
    return []


@pytest.fixture
def judged(tmp_path: Path, unknown: set[str], judgments: list[str]) -> Iterator[dict[str, Any]]:
    """Settings of four training and two test questions, two workers, and a judge. The apple is right on the question 0,
    and the bread on all others."""

    def verdict(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        text = json.dumps(messages)
        fruit = "apple" if "the apple" in text else "bread"
        number = next(number for number in range(9) if f"Question {number}?" in text)
        judgments.append(f"{fruit} {number}")
        if judgments[-1] in unknown:
            return "I cannot say."
        return "RIGHT" if (fruit == "apple") == (number == 0) else "WRONG"

    pool, tasks = tmp_path / "pool.toml", tmp_path / "tasks.toml"
    worker = (
        '[[worker]]\nname = "{}"\nkind = "scripted"\nreplies = {{ "" = "Answer: the {}" }}\n'
        "price = {{ input = 1.0, output = 1.0 }}\n"
    )
    pool.write_text(worker.format("ada", "apple") + worker.format("bob", "bread"))
    for split, numbers in (("train", range(4)), ("validation", [4]), ("test", [5, 6])):
        rows = [json.dumps({"q": f"Question {number}?", "a": "known"}) for number in numbers]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(rows))
    with FaultServer(verdict).in_thread() as judge:
        tasks.write_text(
            '[[part]]\nset = "own"\nquestion = "q"\ngold = "a"\n'
            'files = { train = "train.jsonl", validation = "validation.jsonl", test = "test.jsonl" }\n'
            '[part.grader]\nkind = "judge"\n[part.grader.worker]\nkind = "openai"\nname = "judy"\n'
            f'model = "j"\nbase_url = "{judge.url}"\nprice = {{ input = 1.0, output = 1.0 }}\n'
        )
        yield {
            "tasks": [{"name": str(tasks)}],
            "pool": [{"name": str(pool)}],
            "questions": 2,
            "training": 4,
            "processes": 1,
        }


def compared(folder: Path, **settings: Any) -> Comparison:
    manifest = check(**settings)
    results = asyncio.run(run_suite(manifest, folder))
    (table,) = manifest.tables
    return comparison_of(manifest, table, evaluations_of(table, results), results)


def test_training_answers_without_a_verdict_decide_no_choice(
    tmp_path: Path, judged: dict[str, Any], unknown: set[str]
) -> None:
    unknown |= {"apple 1", "apple 2", "apple 3"}
    notes = compared(tmp_path, **judged, planner=[{"planner": "best-vote", "label": "vote"}]).notes
    assert any(note.startswith("3 of 4 training questions are left out") for note in notes)
    assert "vote: committee:ada, chosen on training questions." in notes


def test_answers_of_the_best_of_plans_are_graded_until_verdicts_are_known(
    tmp_path: Path, judged: dict[str, Any], unknown: set[str]
) -> None:
    policy = {"conductor": {"checkpoint": str(write_policy(tmp_path / "policy", *ALONE[:2]))}}
    planners = [policy, {**policy, "best_of": 8}]
    unknown |= {"bread 6"}
    *_, first = compared(tmp_path, **judged, planner=planners).rows
    assert (first.accuracy.mean, first.ungraded) == (1.0, 1)
    unknown.clear()
    plain, best = compared(tmp_path, **judged, planner=planners).rows
    assert (best.accuracy.mean, best.ungraded) == (1.0, 0)
    assert best.grading_usd > first.grading_usd > 4 * plain.grading_usd
    again = compared(tmp_path, **judged, planner=planners).rows[1]
    assert again == best


def test_only_the_lacking_answer_of_the_best_of_plans_is_sampled_again(
    tmp_path: Path, judged: dict[str, Any], judgments: list[str]
) -> None:
    policy = {"conductor": {"checkpoint": str(write_policy(tmp_path / "policy", *ALONE[:2]))}}
    planner = [{**policy, "best_of": 4}]
    (first,) = compared(tmp_path, **judged, repeats=3, planner=planner).rows
    (file,) = (tmp_path / "results").glob("*.jsonl")
    complete = file.read_text().splitlines()
    made = len(judgments)
    file.write_text("".join(f"{line}\n" for line in complete[1:]))
    (again,) = compared(tmp_path, **judged, repeats=3, planner=planner).rows
    assert (again.accuracy, again.cost_usd) == (first.accuracy, first.cost_usd)
    assert len(judgments) - made <= 2  # The judge reads an answer at most twice.
