from __future__ import annotations

import pytest

from podium.workflow import PlanError, PlanRules, parse, thought_in
from structured_cases import ACCEPTED_OBJECTS, NAMES, OBJECT, REFUSED_OBJECTS, one
from workflow_cases import TWO, Accepted, Refused, lists, plan


@pytest.mark.parametrize("case", ACCEPTED_OBJECTS, ids=lambda case: case.dress)
def test_a_structured_plan_is_read_in_any_writing(case: Accepted) -> None:
    assert parse(case.text, PlanRules(workers=3, names=NAMES, later_round=case.later_round)) == case.expected


@pytest.mark.parametrize("case", REFUSED_OBJECTS, ids=lambda case: case.fault)
def test_an_object_that_is_no_plan_is_refused_with_the_place(case: Refused) -> None:
    read = parse(
        case.text,
        PlanRules(workers=case.workers, names=NAMES, max_steps=case.max_steps, later_round=case.later_round),
        form="structured",
    )
    assert isinstance(read, PlanError)
    assert (read.kind, str(read)) == (case.kind, case.error)


def test_a_name_in_other_case_counts_only_if_it_is_one_worker() -> None:
    assert parse(one(worker='"VOTE"'), PlanRules(workers=2, names=("vote", "Vote"))) == PlanError(
        "unknown_worker",
        "Expected a worker of the pool (vote, Vote) for step 0, found 'VOTE'.",
        one(worker='"VOTE"'),
        one(worker='"VOTE"').index('"VOTE"'),
    )


def test_a_name_that_is_a_number_counts_before_the_number() -> None:
    assert parse(one(worker='"0"'), PlanRules(workers=2, names=("1", "0"))) == plan((1, "Find it."))


def test_list_format_accepts_no_worker_names() -> None:
    read = parse(lists(model_id='["writer", "coder"]'), PlanRules(workers=3, names=NAMES))
    assert isinstance(read, PlanError)
    assert read.kind == "bad_worker"


def test_requested_format_decides_the_error_message() -> None:
    assert (
        parse(lists(), PlanRules(workers=3), form="structured")
        == TWO
        == parse(OBJECT, PlanRules(workers=3, names=NAMES))
    )
    broken = "model_id = [0,\n" + '{"thought": "x", "steps": [}'
    kinds = [parse(broken, PlanRules(workers=3), form=form) for form in ("lists", "structured")]  # type: ignore[arg-type]
    assert [read.kind for read in kinds if isinstance(read, PlanError)] == ["unquoted_text", "misplaced_mark"]


def test_the_thought_of_a_plan_is_found_in_either_form() -> None:
    assert thought_in(f"So:\n{OBJECT}") == "Search, then write."
    assert thought_in(f"First the search.\n{lists()}") == "First the search.\n"
    assert thought_in("No plan.") == ""
