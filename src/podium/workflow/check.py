"""Checks whether a workflow can run, before any worker is called.

These are rules of the workflow as a value; `parse` has the rules of the text, such as equal lengths of the three lists.
For a workflow that breaks no rule, `parse(render(workflow))` gives the same workflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from podium.workflow.fault import quote_fragment
from podium.workflow.model import Access, PlanError, Workflow, render

AccessRule = Literal["lists", "all_or_none"]
"""What an access list may contain. "lists" also allows numbers of earlier steps. "all_or_none" allows only [] or
["all"], as in the paper."""
MAX_SUBTASK = 8_000
MAX_TEXT = 64 * 1024
"""The most bytes of a plan's text in UTF-8."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a workflow violates, and the entry that violates it."""

    kind: str
    message: str
    name: Literal["model_id", "subtasks", "access_list"] = "model_id"
    """The list that has the entry at fault."""
    step: int | None = None
    """The step at fault. None if the whole plan is at fault."""
    read: int | None = None
    """The number at fault in the step's access list. None if no number is at fault."""


def check(
    workflow: Workflow,
    *,
    workers: int,
    max_steps: int = 5,
    later_round: bool = False,
    access: AccessRule = "lists",
) -> PlanError | None:
    """The first rule that `workflow` breaks, as an error without a position. None if the workflow can run.

    Args:
        workers: the number of workers in the pool. They are numbered from 0.
        later_round: whether there is a previous round, whose response a step can read.
    """
    violation = first_violation(
        workflow, workers=workers, max_steps=max_steps, later_round=later_round, access=access
    )
    violation = violation or _untidy_access(workflow)
    return PlanError(violation.kind, violation.message) if violation else None


def first_violation(
    workflow: Workflow, *, workers: int, max_steps: int, later_round: bool, access: AccessRule
) -> Violation | None:
    """The first rule that `workflow` breaks, with the entry at fault. Access lists need not be in canonical form."""
    if not workflow.steps:
        message = (
            "Expected at least one step, found none: three empty lists accept an answer, and there is none."
        )
        return Violation("empty_plan", message)
    if len(workflow.steps) > max_steps:
        allowed = "1 step" if max_steps == 1 else f"{max_steps} steps"
        message = f"Expected at most {allowed}, found {len(workflow.steps)}."
        return Violation("too_many_steps", message, step=max_steps)
    for position, step in enumerate(workflow.steps):
        violation = (
            _worker(step.worker, position, workers)
            or _subtask(step.subtask, position)
            or (_partial_access(step.access, position) if access == "all_or_none" else None)
            or _access(step.access, position, len(workflow.steps), later_round)
        )
        if violation:
            return violation
    # A character takes six bytes at most, written as \u001f.
    if 7 * sum(len(step.subtask) for step in workflow.steps) + 1024 > MAX_TEXT:
        size = len(render(workflow).encode())
        if size > MAX_TEXT:
            message = f"Expected a plan of at most {MAX_TEXT} bytes in canonical form, found {size}."
            return Violation("text_too_long", message)
    return None


def number_range(count: int) -> str:
    """The numbers of `count` things, in words."""
    return f"0 to {count - 1}" if count > 1 else "0 alone" if count else "there is none"


def _worker(worker: int, step: int, workers: int) -> Violation | None:
    if 0 <= worker < workers:
        return None
    message = f"Expected a worker of the pool ({number_range(workers)}) for step {step}, found {worker}."
    return Violation("unknown_worker", message, "model_id", step)


def _subtask(subtask: str, step: int) -> Violation | None:
    def violation(kind: str, message: str) -> Violation:
        return Violation(kind, message, "subtasks", step)

    if not subtask.strip():
        return violation("empty_subtask", f"Expected a subtask for step {step}, found an empty text.")
    if len(subtask) > MAX_SUBTASK:
        message = (
            f"Expected at most {MAX_SUBTASK} characters of subtask for step {step}, found {len(subtask)}."
        )
        return violation("long_subtask", message)
    if subtask != subtask.strip():
        message = f"Expected no space around the subtask of step {step}, found {quote_fragment(subtask)}."
        return violation("padded_subtask", message)
    try:
        subtask.encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(subtask[error.start]):X}"
        message = (
            f"Expected whole characters in the subtask of step {step}, found half a surrogate pair, {half}."
        )
        return violation("broken_text", message)
    return None


def _partial_access(access: Access, step: int) -> Violation | None:
    if access.all or not (access.steps or access.previous):
        return None
    entries = ", ".join([*map(str, access.steps), *(['"previous"'] if access.previous else [])])
    message = (
        f'Expected [] or ["all"] for step {step}, found [{entries}]: a step sees all earlier work or none.'
    )
    return Violation("partial_access", message, "access_list", step)


def _access(access: Access, step: int, steps: int, later_round: bool) -> Violation | None:
    for read in access.steps:
        if 0 <= read < step:
            continue
        if read == step:
            kind, why = "self_reference", "the step itself"
        elif step < read < steps:
            kind, why = "forward_reference", "a later step"
        else:
            kind, why = "unknown_step", "not a step"
        earlier = f"steps before it ({number_range(step)})" if step else "nothing, as the first of all"
        message = f"Expected step {step} to read {earlier}, found {read}, {why}: steps count from 0."
        return Violation(kind, message, "access_list", step, read)
    if access.previous and not later_round:
        message = f'Expected no "previous" in the first round, found it at step {step}: no round came before.'
        return Violation("no_previous", message, "access_list", step)
    return None


def _untidy_access(workflow: Workflow) -> Violation | None:
    for position, step in enumerate(workflow.steps):
        if step.access != canonical(step.access):
            message = f"Expected {canonical(step.access)} for step {position}, found {step.access}"
            return Violation("untidy_access", f"{message}, which shows the same.", "access_list", position)
    return None


def canonical(access: Access) -> Access:
    """The canonical form of an access list: only "all", or the numbers in ascending order without repeats."""
    if access.all:
        return Access(all=True)
    return Access(steps=tuple(sorted(set(access.steps))), previous=access.previous)
