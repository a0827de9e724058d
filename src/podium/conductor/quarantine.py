"""A planner that quarantines a worker whose calls fail or whose answers turn out wrong, as outcomes show.

For each worker, the planner sums up how much more probable the latest outcomes are if the worker has begun to fail than
if it has not (Page's CUSUM, 1954). A worker whose sum is too high is quarantined for a while: no plan that calls it is
run, and the wrapped planner plans once more over a pool without it. The wrapped planner may plan less well for a pool
that lacks a worker, so it gets such a pool only if its first plan calls a quarantined worker.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from podium.conductor.prompt import PolicyNumbering
from podium.errors import BudgetExceededError, UsageError, WorkerError
from podium.planners.planner import OnlinePlanner, Planner, PlanRequest
from podium.trace import Plan, Trace
from podium.workflow import PlanError, Workflow, needed_steps

_ANSWERED_KINDS = (None, "length", "cancelled")
"""Kinds of tries whose worker did answer, or was not waited for."""
_FAILING = 0.15
"""The share of a failing worker's plans that are right, relative to the share before."""
_FAILED = 0.5
"""The share of a failing worker's calls that fail."""
_LIMIT = math.log(2000)
"""A worker is quarantined when its latest outcomes are 2,000 times as probable if it fails as if it does not."""
_MAX_USUAL = 0.8
"""No worker's plans are assumed to be right more often, so that a few errors of a good worker do not suffice."""
_QUARANTINE_OUTCOMES = 100
"""Outcomes of later questions after which a quarantined worker is called again."""
_PRIOR_RIGHT, _PRIOR = 5.0, 10.0
"""Half of the plans of a worker without outcomes are assumed right, as if ten plans had been judged."""
_FEWEST_FAILED = 0.05
"""No worker's calls are assumed to fail more seldom, so that a few failures in a row do not suffice."""


@dataclass(slots=True)
class _Record:
    """The outcomes of one worker."""

    right: float = _PRIOR_RIGHT
    judged: float = _PRIOR
    """How many plans with this worker were judged. `right` of them are right."""
    failed_calls: float = _PRIOR * _FEWEST_FAILED
    calls: float = _PRIOR
    """How many calls the worker had. `failed_calls` of them failed."""
    answer_cusum: float = 0.0
    """The evidence in nats, from plans, that the worker's answers have become wrong."""
    call_cusum: float = 0.0
    """The evidence in nats, from calls, that more of the worker's calls fail than before."""

    @property
    def cusum(self) -> float:
        return max(self.answer_cusum, self.call_cusum)

    def reset(self, nats: float = 0.0) -> None:
        self.answer_cusum = self.call_cusum = nats

    def update(self, score: float) -> None:
        """Add the score, in [0, 1], of one more plan."""
        usual = min(_MAX_USUAL, self.right / self.judged)
        self.answer_cusum = max(
            0.0, self.answer_cusum + _log_likelihood_ratio(score, usual, _FAILING * usual)
        )
        self.right += score
        self.judged += 1

    def update_call(self, failed: bool) -> None:
        usual = max(_FEWEST_FAILED, self.failed_calls / self.calls)
        self.call_cusum = max(
            0.0, self.call_cusum + _log_likelihood_ratio(failed, usual, max(_FAILED, usual))
        )
        self.failed_calls += failed
        self.calls += 1


def _log_likelihood_ratio(outcome: float, usual: float, failing: float) -> float:
    """The log likelihood ratio of an outcome, in nats, between probabilities `failing` and `usual` of the outcome 1."""
    return outcome * math.log(failing / usual) + (1 - outcome) * math.log((1 - failing) / (1 - usual))


class QuarantinePlanner(OnlinePlanner):
    """A planner that rejects the plans of `planner` that call a quarantined worker. It changes while it serves, so it
    is no `PlannerWrapper`, which is a value. It streams no steps, since it may reject their plan.

    The outcome of a plan does not say which of its workers was wrong. So all of them are suspected, and when one is
    quarantined, the sums of the others start again. A failed call does say which worker failed: four failures in a row
    suffice if the worker's calls hardly ever failed before.

    Args:
        tools: names of workers, such as a vote, that are suspected only for failed calls, since their answers are only
            as right as the responses that they read.
    """

    replayed_outcomes = 400
    """How many of the latest outcomes a server lets the planner learn from."""

    def __init__(self, planner: Planner, tools: Collection[str] = ()) -> None:
        self._planner = planner
        self._tools = frozenset(tools)
        self._judged = 0
        self._records: dict[str, _Record] = {}
        self._quarantined: dict[str, int] = {}
        """For each quarantined worker, the number of the outcome at which it was quarantined."""

    @property
    def name(self) -> str:
        return self._planner.name

    @property
    def quarantined(self) -> tuple[str, ...]:
        """The names of the workers that are quarantined at present."""
        return tuple(sorted(self._quarantined))

    async def plan(self, request: PlanRequest) -> Plan:
        """The planner's plan over the whole pool. If that calls a quarantined worker, a plan over the other workers.

        A worker of an earlier round is never hidden, and no worker is if all would be. If there is no plan over the
        other workers, the first plan is run.
        """
        first = await self._planner.plan(request)
        if not isinstance(first.decision, Workflow):
            return first
        called_before = {
            step.worker for earlier_round in request.earlier_rounds for step in earlier_round.workflow.steps
        }
        quarantined = {k for k, profile in enumerate(request.pool) if profile.name in self._quarantined}
        hidden = quarantined - called_before
        rejected = hidden & {step.worker for step in first.decision.steps}
        if not rejected or len(hidden) == len(request.pool):
            return first
        shown = PolicyNumbering(tuple(k for k in range(len(request.pool)) if k not in hidden))
        try:
            second = shown.to_pool(await self._planner.plan(shown.to_policy(request)))
        except (WorkerError, BudgetExceededError, UsageError):
            return first
        if isinstance(second.decision, PlanError):
            return first.with_rejected(second, second.decision)
        names = ", ".join(request.pool[k].name for k in sorted(rejected))
        bad = PlanError("quarantined_worker", f"It calls {names}, whose latest outcomes were bad.")
        return second.with_rejected(first, bad)

    def learn(self, trace: Trace, score: float) -> None:
        self.update(*_callees(trace), score)

    def update(self, answered: Collection[str], failed: Collection[str], score: float) -> None:
        """Learn from the score of an answer.

        Args:
            answered: names of the workers whose calls led to the answer.
            failed: names of the workers with a failed call.
        """
        if not answered and not failed:
            return
        self._judged += 1
        for name in [
            name for name, since in self._quarantined.items() if self._judged - since >= _QUARANTINE_OUTCOMES
        ]:
            # Half of the evidence stays, so that a worker that still fails is soon quarantined again.
            del self._quarantined[name]
            self._records[name].reset(_LIMIT / 2)
        # A right answer is due to all its workers. A wrong answer is blamed on the workers whose calls failed, if any.
        concerned = set(answered) if score == 1 else set(failed) or set(answered) - self._tools
        called = {*answered, *failed}
        for name in called:
            record = self._records.setdefault(name, _Record())
            record.update_call(name in failed)
            if name in concerned:
                record.update(score)
        shown = [name for name in called if name not in self._quarantined]
        suspect = max(shown, key=lambda name: (self._records[name].cusum, name), default=None)
        if suspect is not None and self._records[suspect].cusum >= _LIMIT:
            self._quarantined[suspect] = self._judged
            for record in self._records.values():
                record.reset()

    def forget(self) -> None:
        self._judged = 0
        self._records.clear()
        self._quarantined.clear()


def _callees(trace: Trace) -> tuple[frozenset[str], frozenset[str]]:
    """The workers of the steps that led to the answer: those that answered, and those that had a failed call.

    A worker had a failed call if no try of it was answered, also if its fallback answered the step.
    """
    answered: set[str] = set()
    failed: set[str] = set()
    for round_ in trace.rounds:
        needed = needed_steps(round_.workflow) if round_.workflow is not None else ()
        for span in round_.spans:
            if span.position not in needed or span.status not in ("done", "failed"):
                continue
            (failed if span.status == "failed" else answered).add(span.answered_by or span.worker)
            failed.update(
                attempt.worker
                for attempt in span.attempts
                if attempt.error_kind not in _ANSWERED_KINDS and attempt.worker != span.answered_by
            )
    return frozenset(answered), frozenset(failed)
