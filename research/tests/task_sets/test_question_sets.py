"""What MATH, AIME and RLPR do that other sets do not; what they share with all is in `test_hub_sets`."""

from __future__ import annotations

from pathlib import Path

import pytest

from hub_files import all_tasks, opened
from podium.config import build
from podium_research.task_sets.math_sets import MATH, boxed_gold
from podium_research.task_sets.rlpr import RLPR
from question_cases import CASES


@pytest.mark.parametrize(
    ("solution", "gold"),
    [
        (r"so \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"first \boxed{1}, then \boxed{\sqrt{\boxed{2}}}", "2"),
        (r"so \fbox{7}.", "7"),
        (r"so $\boxed 5$.", "5"),
        (r"so \boxed{ x^{2} }", "x^{2}"),
    ],
)
def test_the_last_box_of_a_solution_is_its_answer(solution: str, gold: str) -> None:
    assert boxed_gold(solution) == gold


@pytest.mark.parametrize("solution", ["none", r"\boxed{}", r"\boxed{ }", r"\boxed{1", r"\boxed"])
def test_a_solution_without_a_box_is_no_gold_answer(solution: str) -> None:
    with pytest.raises(ValueError, match="no boxed answer"):
        boxed_gold(solution)


def test_math_takes_subjects_and_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(CASES["math"](), tmp_path, monkeypatch)
    some = build({"subjects": ["geometry", "algebra"], "levels": [5]}, MATH)
    facts = [dict(task.facts) for task in all_tasks(some)]
    assert facts == [{"family": "Algebra", "level": "5"}] * 2


def test_aime_answers_are_whole_numbers_whatever_their_dress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golds = {}
    for year in (2024, 2025):
        spec = opened(CASES[f"aime-{year}"](), tmp_path, monkeypatch)
        assert spec.label == f"aime-{year}"
        golds[year] = [task.gold for task in spec.read_splits(("test",))["test"].tasks]
    assert golds == {2024: ["25", "336"], 2025: ["25", "336"]}


async def test_aime_takes_leading_noughts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, _ = opened(CASES["aime-2025"](), tmp_path, monkeypatch).read_splits(("test",))["test"].tasks
    assert (await task.grade("\\boxed{025}")).correct


async def test_rlpr_grades_by_the_form_of_the_gold_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = opened(CASES["rlpr"](), tmp_path, monkeypatch)
    tasks = {task.gold: task for task in all_tasks(spec)}
    for gold, response, score in (
        ("-\\frac{1}{2}", "Answer: -0.5", 1.0),
        ("12.5 kg", "Answer: 12.50", 1.0),
        ("It decreases", "Answer: it decreases.", 1.0),
        ("It decreases", "Answer: It decreases by 5", 0.0),
        ("It decreases", "Answer: It increases", 0.0),
        ("Isambard Brunel", "Answer: the Isambard Brunel", 1.0),
        ("No", "Answer: Not sure", 0.0),
        ("B", "Answer: (B)", 1.0),
        ("B", "Answer: Ada", 0.0),
    ):
        assert (await tasks[gold].grade(response)).score == score, (gold, response)


async def test_rlpr_may_be_judged_by_a_worker_that_sees_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(CASES["rlpr"](), tmp_path, monkeypatch)
    replies = {"Why are there ducks?": "RIGHT", "": "WRONG"}
    worker = {"name": "judy", "kind": "scripted", "replies": replies}
    judged = build({"judge": {"kind": "judge", "worker": worker}}, RLPR)
    tasks = {task.question.text.partition("?")[0]: task for task in all_tasks(judged)}
    assert len(tasks) == 8
    assert (await tasks["Why are there ducks"].grade("The gate stood open.")).correct
    assert not (await tasks["How heavy is the duck"].grade("12.5 kg")).correct
