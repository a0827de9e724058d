from __future__ import annotations

import pytest
from hypothesis import given

from plan_texts import WORKERS, workflows
from podium.workflow import Access, PlanError, PlanRules, Step, Workflow, check, render

ALL = Access(all=True)


def flow(*accesses: Access, worker: int = 0, subtask: str = "Do it.") -> Workflow:
    return Workflow(tuple(Step(worker, subtask, access) for access in accesses))


@pytest.mark.parametrize(
    ("workflow", "kind", "message"),
    [
        (
            Workflow(()),
            "empty_plan",
            "Expected at least one step, found none: three empty lists accept an answer, and there is none.",
        ),
        (flow(*[Access()] * 6), "too_many_steps", "Expected at most 5 steps, found 6."),
        (
            flow(Access(), worker=4),
            "unknown_worker",
            "Expected a worker of the pool (0 to 3) for step 0, found 4.",
        ),
        (
            flow(Access(), worker=-1),
            "unknown_worker",
            "Expected a worker of the pool (0 to 3) for step 0, found -1.",
        ),
        (
            flow(Access(), subtask=" \n"),
            "empty_subtask",
            "Expected a subtask for step 0, found an empty text.",
        ),
        (
            flow(Access(), subtask="Do it.\n"),
            "padded_subtask",
            "Expected no space around the subtask of step 0, found 'Do it.�'.",
        ),
        (
            flow(Access(), subtask="x" * 8_001),
            "long_subtask",
            "Expected at most 8000 characters of subtask for step 0, found 8001.",
        ),
        (
            flow(Access(), subtask="Do \ud800 it."),
            "broken_text",
            "Expected whole characters in the subtask of step 0, found half a surrogate pair, U+D800.",
        ),
        (
            flow(Access(), Access(steps=(1,))),
            "self_reference",
            "Expected step 1 to read steps before it (0 alone), found 1, the step itself: steps count from 0.",
        ),
        (
            flow(Access(), Access(), Access(steps=(0, 3)), Access()),
            "forward_reference",
            "Expected step 2 to read steps before it (0 to 1), found 3, a later step: steps count from 0.",
        ),
        (
            flow(Access(steps=(9,))),
            "unknown_step",
            "Expected step 0 to read nothing, as the first of all, found 9, not a step: steps count from 0.",
        ),
        (
            flow(Access(previous=True)),
            "no_previous",
            'Expected no "previous" in the first round, found it at step 0: no round came before.',
        ),
        (
            flow(Access(), Access(), Access(steps=(1, 0))),
            "untidy_access",
            "Expected Access(steps=(0, 1), all=False, previous=False) for step 2, "
            "found Access(steps=(1, 0), all=False, previous=False), which shows the same.",
        ),
        (
            flow(*[Access()] * 5, subtask="\x01" * 7_000),
            "text_too_long",
            "Expected a plan of at most 65536 bytes in canonical form, found 210093.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_a_workflow_that_cannot_be_run_is_refused(workflow: Workflow, kind: str, message: str) -> None:
    assert check(workflow, PlanRules(workers=4)) == PlanError(kind, message)


@given(workflows(later_round=True))
def test_a_valid_workflow_passes(workflow: Workflow) -> None:
    assert check(workflow, PlanRules(workers=WORKERS, later_round=True)) is None


@given(workflows())
def test_workflow_above_the_step_limit_is_an_error(workflow: Workflow) -> None:
    error = check(workflow, PlanRules(workers=WORKERS, max_steps=len(workflow.steps) - 1))
    assert error is not None
    assert error.kind in ("too_many_steps", "empty_plan")


def test_all_at_the_first_step_reads_nothing() -> None:
    workflow = flow(ALL)
    assert check(workflow, PlanRules(workers=1)) is None
    assert workflow.reads(0) == ()


def test_the_largest_workflow_that_fits_passes() -> None:
    workflow = flow(*[Access()] * 8, subtask="é" * 4_000)
    assert len(render(workflow).encode()) < 64 * 1024
    assert check(workflow, PlanRules(workers=1, max_steps=8)) is None


@pytest.mark.parametrize(
    ("access", "found"),
    [
        (Access(steps=(0,)), "[0]"),
        (Access(steps=(0, 1)), "[0, 1]"),
        (Access(previous=True), '["previous"]'),
        (Access(steps=(1,), previous=True), '[1, "previous"]'),
    ],
)
def test_partial_access_is_refused_under_all_or_none(access: Access, found: str) -> None:
    workflow = flow(Access(), ALL, access)
    assert check(workflow, PlanRules(workers=1, later_round=True)) is None
    assert check(workflow, PlanRules(workers=1, later_round=True, access="all_or_none")) == PlanError(
        "partial_access",
        f'Expected [] or ["all"] for step 2, found {found}: a step sees all earlier work or none.',
    )


def test_empty_and_all_access_pass_under_all_or_none() -> None:
    assert check(flow(Access(), ALL, Access(), ALL), PlanRules(workers=1, access="all_or_none")) is None
