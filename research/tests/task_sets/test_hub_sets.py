"""What all sets of the hub share, on small datasets of their true form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from choice_cases import CASES as CHOICE
from code_cases import CASES as CODE
from contest_cases import CASES as CONTEST
from hub_files import Case, all_tasks, apart, opened
from podium.errors import ConfigError
from podium.tasks.sets.base import task_key
from podium.tasks.task import Task
from podium_research.task_sets.code_sets import CodeSet
from question_cases import CASES as QUESTION
from suite_cases import CASES as SUITE

CASES = {**QUESTION, **CHOICE, **CODE, **SUITE, **CONTEST}
NOTHING = ("", " \n", "I do not know.", "Answer:", "\\boxed{}", "<answer></answer>", "```python\n```")
FORMS = ("Answer: ", "\\boxed{}", "in one fenced Python block")


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    made = CASES[request.param]()
    opened(made, tmp_path, monkeypatch)
    if isinstance(made.spec, CodeSet):  # The programs are ours, so weak isolation is enough.
        grading = made.spec.grading.model_copy(update={"allow_weak_sandbox": True})
        return replace(made, spec=made.spec.model_copy(update={"grading": grading}))
    return made


def test_each_split_holds_the_questions_that_can_be_used(case: Case) -> None:
    sizes = {split: len(reading.tasks) for split, reading in apart(case.spec).items()}
    if "validation" not in case.spec.files and "train" in sizes:
        sizes["train"] += sizes.pop("validation")
    assert sizes == case.sizes


async def test_the_datasets_own_answers_score_1(case: Case) -> None:
    for task in all_tasks(case.spec):
        assert (await task.grade(case.right(task))).score == 1.0, (task, case.right(task))


async def test_empty_wrong_wordy_and_listing_responses_score_0(case: Case) -> None:
    # Each response to a program set takes sandboxes: one of its tasks is enough.
    for task in all_tasks(case.spec)[: 1 if isinstance(case.spec, CodeSet) else None]:
        for response in (*NOTHING, *(wrong(task) for wrong in case.wrong)):
            assert (await task.grade(response)).score == 0.0, (task.gold, response)


def test_no_question_stands_in_two_splits_and_no_id_twice(case: Case) -> None:
    splits = [reading.tasks for reading in apart(case.spec).values()]
    for said in (task_key, _letters):
        texts = [{said(task) for task in tasks} for tasks in splits]
        assert sum(map(len, texts)) == len(set().union(*texts))
    ids = [task.id for task in all_tasks(case.spec)]
    assert len(ids) == len(set(ids))
    assert all(name.startswith(f"{case.spec.set}/") for name in ids)


def _letters(task: Task) -> str:
    """A question in another fold than the sets' own."""
    text = task.question.text.casefold()
    return "".join(sign for sign in text if sign.isalnum() or sign in "+-*<>")


def test_broken_rows_are_counted_by_their_reason_or_refused_by_their_place(case: Case) -> None:
    for split, reasons in case.broken.items():
        skipped = dict(case.spec.read_splits((split,))[split].skipped)
        assert sum(skipped.values()) == len(reasons)
        for reason in reasons:
            assert any(reason.partition("'")[0] in said for said in skipped), (reason, skipped)
        strict = case.spec.model_copy(update={"on_bad_row": "refuse"})
        with pytest.raises(ConfigError, match=r"(row|line) \d+: .*on_bad_row") as refused:
            strict.read_splits((split,))
        assert reasons[0] in str(refused.value)


def test_questions_say_the_form_of_the_answer_that_is_graded(case: Case) -> None:
    for task in all_tasks(case.spec):
        assert any(form in task.question.text for form in FORMS)


def test_reading_twice_gives_the_same_tasks(case: Case) -> None:
    assert [task.id for task in all_tasks(case.spec)] == [task.id for task in all_tasks(case.spec)]


def test_every_case_has_a_licence_and_a_place_on_the_hub(case: Case) -> None:
    assert case.spec.licence
    assert case.spec.source.count("/") == 1
