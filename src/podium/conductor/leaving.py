"""A planner that leaves a worker whose answers turn out wrong, once it is told outcomes.

For each worker it sums up how much more probable its latest outcomes are if it has begun to fail than if it has not
(Page's CUSUM, 1954). A worker whose sum is too high is not shown to the planner for a while. The planner itself stays
as it was trained: what it sees is a pool with fewer workers.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from podium.conductor.prompt import PolicyNumbering
from podium.planner import Plan, Planner, PlanRequest
from podium.trace import Trace
from podium.workflow import live_steps

_FAILING = 0.15
"""The share of a failing worker's plans that are right, relative to the share before."""
_LIMIT = math.log(2000)
"""A worker is left when its outcomes since some question are so many times as probable if it fails as if not."""
_MOST_USUAL = 0.8
"""No worker's plans are taken to be right more often, so that a few errors in a row of a good worker do not suffice."""
_AWAY = 100
"""Outcomes of later questions after which a worker that was left is shown again."""
_PRIOR_RIGHT, _PRIOR = 5.0, 10.0
"""A worker without outcomes is taken to be in plans of which half are right, as if ten had been judged."""


@dataclass(slots=True)
class _Record:
    """What outcomes say of one worker."""

    right: float = _PRIOR_RIGHT
    judged: float = _PRIOR
    """Its judged plans, of which `right` are right."""
    suspicion: float = 0.0
    """In nats."""

    def take(self, score: float) -> None:
        """One more plan, with its score in [0, 1]."""
        usual = min(_MOST_USUAL, self.right / self.judged)
        failing = _FAILING * usual
        gained = score * math.log(failing / usual) + (1 - score) * math.log((1 - failing) / (1 - usual))
        self.suspicion = max(0.0, self.suspicion + gained)
        self.right += score
        self.judged += 1


class LeavingPlanner:
    """Shows `planner` all workers but those that it has left.

    A plan has several workers, and its outcome does not say which of them was wrong. So all of them are suspected, and
    when the first one is left, the others begin anew. Only if a call failed is the blame known.

    Args:
        tools: names of workers that are suspected only for calls that failed, such as a vote: their answers are as
            wrong as what they are given.
    """

    memory = 400
    """How many of the latest outcomes a server tells it when it starts anew."""

    def __init__(self, planner: Planner, tools: Collection[str] = ()) -> None:
        self._planner = planner
        self._tools = frozenset(tools)
        self._judged = 0
        self._records: dict[str, _Record] = {}
        self._left: dict[str, int] = {}  # With the number of the outcome at which it was left.

    @property
    def name(self) -> str:
        return self._planner.name

    @property
    def left(self) -> tuple[str, ...]:
        """The names of the workers that are not shown at present."""
        return tuple(sorted(self._left))

    async def plan(self, request: PlanRequest) -> Plan:
        """The planner's plan over the workers that are shown, with the pool's numbers.

        A worker of an earlier round is always shown, and so are all if none would be.
        """
        named = {step.worker for outcome in request.outcomes for step in outcome.workflow.steps}
        order = tuple(k for k, p in enumerate(request.pool) if k in named or p.name not in self._left)
        shown = PolicyNumbering(order or tuple(range(len(request.pool))))
        return shown.plan(await self._planner.plan(shown.request(request)))

    def learn(self, trace: Trace, score: float) -> None:
        """Take in the score, in [0, 1], of a trace's answer. Call it in the order in which the questions were asked."""
        self.take(_answerable(trace, score, self._tools), score)

    def take(self, workers: Collection[str], score: float) -> None:
        """Take in the score of an answer that these workers gave, by name."""
        if not workers:
            return
        self._judged += 1
        for name in [name for name, since in self._left.items() if self._judged - since >= _AWAY]:
            # Half of the suspicion stays, so that a worker that still fails is soon left again.
            del self._left[name]
            self._records[name].suspicion = _LIMIT / 2
        for name in workers:
            self._records.setdefault(name, _Record()).take(score)
        shown = [name for name in workers if name not in self._left]
        suspect = max(shown, key=lambda name: (self._records[name].suspicion, name), default=None)
        if suspect is not None and self._records[suspect].suspicion >= _LIMIT:
            self._left[suspect] = self._judged
            for record in self._records.values():
                record.suspicion = 0.0

    def forget(self) -> None:
        """Forget all outcomes."""
        self._judged = 0
        self._records.clear()
        self._left.clear()


def _answerable(trace: Trace, score: float, tools: frozenset[str]) -> frozenset[str]:
    """The workers to which the answer may be due: of a right one all; of a wrong one those whose calls failed, or, if
    none did, all but the tools."""
    ran: set[str] = set()
    failed: set[str] = set()
    for round_ in trace.rounds:
        live = live_steps(round_.workflow) if round_.workflow is not None else ()
        for span in round_.spans:
            if span.position in live and span.status in ("done", "failed"):
                (failed if span.status == "failed" else ran).add(span.worker)
    if score == 1:
        return frozenset(ran)
    return frozenset(failed or ran - tools)
