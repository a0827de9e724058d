"""Checks whether a workflow can run, before any worker is called.

These are rules of the workflow as a value; `parse` has the rules of the text, such as equal lengths of the three lists.
For a workflow that breaks no rule, `parse(render(workflow))` gives the same workflow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from podium.workflow.model import Access, PlanError, Step, Workflow, render
from podium.workflow.parse_error import quote_fragment

AccessRule = Literal["lists", "all_or_none"]
"""What an access list may contain: "lists" allows numbers of steps too, "all_or_none" only [] or ["all"]."""
MAX_SUBTASK = 8_000
MAX_TEXT = 64 * 1024
"""The most bytes of a plan's text in UTF-8."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class PlanRules:
    """What a plan may contain."""

    workers: int
    """The number of workers in the pool. They are numbered from 0."""
    names: Sequence[str] = ()
    """The names of the workers in their order, for structured plans. If empty, plans must use numbers."""
    max_steps: int = 5
    later_round: bool = False
    """Whether there is a previous answer. A plan may then accept it, and "previous" shows it."""
    access: AccessRule = "lists"


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a workflow violates, and the entry that violates it."""

    kind: str
    message: str
    list_name: Literal["model_id", "subtasks", "access_list"] = "model_id"
    """The list that has the entry at fault."""
    step: int | None = None
    """The step at fault. None if the whole plan is at fault."""
    read: int | None = None
    """The number at fault in the step's access list. None if no number is at fault."""


def check(workflow: Workflow, rules: PlanRules) -> PlanError | None:
    """The first rule that `workflow` breaks, as an error without a position. None if the workflow can run."""
    violation = first_violation(workflow, rules)
    if violation is None:
        for position, step in enumerate(workflow.steps):
            if step.access != (tidy := canonical(step.access)):
                message = f"Expected {tidy} for step {position}, found {step.access}, which shows the same."
                return PlanError("untidy_access", message)
    return PlanError(violation.kind, violation.message) if violation else None


def first_violation(workflow: Workflow, rules: PlanRules) -> Violation | None:
    """The first rule that `workflow` breaks, with the entry at fault. Access lists need not be in canonical form."""
    steps = workflow.steps
    if not steps:
        message = (
            "Expected at least one step, found none: three empty lists accept an answer, and there is none."
        )
        return Violation("empty_plan", message)
    if len(steps) > rules.max_steps:
        allowed = "1 step" if rules.max_steps == 1 else f"{rules.max_steps} steps"
        message = f"Expected at most {allowed}, found {len(steps)}."
        return Violation("too_many_steps", message, step=rules.max_steps)
    for position, step in enumerate(steps):
        for violation in _violations(step, position, len(steps), rules):
            return violation
    # A character takes six bytes at most, written as \u001f.
    if 7 * sum(len(step.subtask) for step in steps) + 1024 > MAX_TEXT:
        size = len(render(workflow).encode())
        if size > MAX_TEXT:
            message = f"Expected a plan of at most {MAX_TEXT} bytes in canonical form, found {size}."
            return Violation("text_too_long", message)
    return None


def number_range(count: int) -> str:
    """The numbers of `count` things, in words."""
    return f"0 to {count - 1}" if count > 1 else "0 alone" if count else "there is none"


def _violations(step: Step, at: int, steps: int, rules: PlanRules) -> Iterator[Violation]:
    if not 0 <= step.worker < rules.workers:
        known = number_range(rules.workers)
        message = f"Expected a worker of the pool ({known}) for step {at}, found {step.worker}."
        yield Violation("unknown_worker", message, "model_id", at)
    subtask, access = step.subtask, step.access
    if not subtask.strip():
        message = f"Expected a subtask for step {at}, found an empty text."
        yield Violation("empty_subtask", message, "subtasks", at)
    if len(subtask) > MAX_SUBTASK:
        message = f"Expected at most {MAX_SUBTASK} characters of subtask for step {at}, found {len(subtask)}."
        yield Violation("long_subtask", message, "subtasks", at)
    if subtask != subtask.strip():
        message = f"Expected no space around the subtask of step {at}, found {quote_fragment(subtask)}."
        yield Violation("padded_subtask", message, "subtasks", at)
    if half := _SURROGATE.search(subtask):
        found = f"found half a surrogate pair, U+{ord(half[0]):X}"
        message = f"Expected whole characters in the subtask of step {at}, {found}."
        yield Violation("broken_text", message, "subtasks", at)
    if rules.access == "all_or_none" and not access.all and (access.steps or access.previous):
        entries = ", ".join([*map(str, access.steps), *(['"previous"'] if access.previous else [])])
        message = (
            f'Expected [] or ["all"] for step {at}, found [{entries}]: a step sees all earlier work or none.'
        )
        yield Violation("partial_access", message, "access_list", at)
    for read in access.steps:
        if not 0 <= read < at:
            kind, why = "unknown_step", "not a step"
            if at <= read < steps:
                kind = "self_reference" if read == at else "forward_reference"
                why = "the step itself" if read == at else "a later step"
            earlier = f"steps before it ({number_range(at)})" if at else "nothing, as the first of all"
            message = f"Expected step {at} to read {earlier}, found {read}, {why}: steps count from 0."
            yield Violation(kind, message, "access_list", at, read)
    if access.previous and not rules.later_round:
        message = f'Expected no "previous" in the first round, found it at step {at}: no round came before.'
        yield Violation("no_previous", message, "access_list", at)


def canonical(access: Access) -> Access:
    """The canonical form of an access list: only "all", or the numbers in ascending order without repeats."""
    if access.all:
        return Access(all=True)
    return Access(steps=tuple(sorted(set(access.steps))), previous=access.previous)
