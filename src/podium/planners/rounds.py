"""Planners of several rounds: one generator writes the plans of all rounds of a question.

A planner keeps nothing between two calls. Its generator yields the plan of a round and is sent the round's
`EarlierRound`; it returns the step whose response is the answer. `plan_rounds` runs the generator anew on all rounds so
far, so it has to be a function of the question, the pool and these rounds alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace

from podium.planners.baseline import voting_step, worker_number
from podium.planners.planner import EarlierRound, PlanRequest
from podium.trace import Plan
from podium.workflow import Acceptance, Access, Step, Workflow, render
from podium.workflow.check import MAX_SUBTASK

RoundStep = tuple[int, int]
"""(round, step), both from 0."""
Rounds = Generator[Plan, EarlierRound, RoundStep | None]
"""Yields a plan, is sent the `EarlierRound` of it, and returns the step to accept, or None for the latest response."""


def workflow_plan(
    workflow: Workflow, shows: Sequence[RoundStep] = (), max_tokens: tuple[int | None, ...] = ()
) -> Plan:
    """The plan that runs `workflow`, whose steps see the responses that it `shows` of earlier rounds."""
    return Plan(render(workflow), workflow, visible_responses=tuple(shows), max_tokens=max_tokens)


def plan_rounds(request: PlanRequest, rounds: Rounds) -> Plan:
    """The plan of this round. If an earlier plan was changed before it ran, its responses count by position; if it was
    given another number of steps, the generator cannot go on, and the plan accepts."""
    plan = next(rounds)
    for earlier_round in request.earlier_rounds:
        steps = plan.decision.steps if isinstance(plan.decision, Workflow) else ()
        if len(earlier_round.workflow.steps) != len(steps):
            return _accept(None)
        try:
            plan = rounds.send(earlier_round)
        except StopIteration as end:
            return _accept(end.value)
    return plan


def _accept(step: RoundStep | None) -> Plan:
    return Plan(render(Acceptance()), Acceptance(), accepted_step=step)


def worker_step(
    request: PlanRequest, worker: str, subtask: str, *, reads: Sequence[int] = (), sees: bool = False
) -> Step:
    """A step of the worker named `worker`, which reads steps of the same round and, if it `sees`, what the plan shows
    of earlier rounds. A subtask that is too long loses its middle."""
    text = subtask.strip().encode(errors="replace").decode()
    if len(text) > MAX_SUBTASK:
        half = MAX_SUBTASK // 2 - 10
        text = f"{text[:half].rstrip()}\n[...]\n{text[-half:].lstrip()}"
    return Step(worker_number(worker, request.pool), text, Access(steps=tuple(reads), previous=sees))


def voted_round_plan(request: PlanRequest, steps: Sequence[Step], shows: Sequence[RoundStep] = ()) -> Plan:
    """A plan of `steps` and of a vote on them, which reads them all so that all are run. One step has no vote."""
    if len(steps) > 1:
        votes_on = Access(steps=tuple(range(len(steps))))
        steps = (*steps, replace(voting_step(request.pool), access=votes_on))
    return workflow_plan(Workflow(tuple(steps)), shows)


def most_common(answers: Iterable[str | None]) -> tuple[str | None, int]:
    """The most frequent answer, of equals the first, and how often it was given; (None, 0): there is none."""
    counted = Counter(answer for answer in answers if answer is not None)
    return counted.most_common(1)[0] if counted else (None, 0)
