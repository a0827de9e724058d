"""Debate with a gate: the workers answer, and only if fewer than two thirds agree, each answers again.

In the second round each sees all answers of the first. There is never a third: more rounds than two rarely help, and
where most workers agree already, a debate costs more than it mends (arXiv 2505.22960). The first form is that of Du et
al. 2023 (arXiv 2305.14325).
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.plugin_api.planners import (
    BaselineContext,
    Plan,
    Planner,
    PlannerSpec,
    PlanRequest,
    Rounds,
    most_common,
    plan_rounds,
    voted_round_plan,
    worker_step,
)
from podium.types import ANSWER_WHOLE_QUESTION
from podium.workers.vote import vote_key

REVISE = (
    "The responses shown are answers of several workers to this question, and they disagree. Check their reasoning, "
    "then answer the whole question yourself."
)


@dataclass(frozen=True, slots=True)
class Debate(Planner):
    """The workers `members` debate, of which one may occur several times. A vote ends each round."""

    rounds = 2

    members: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"debate:{'+'.join(self.members)}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The answers; then the revised answers, or an acceptance. `ConfigError` if the pool lacks a worker or the
        vote."""
        return plan_rounds(request, self._rounds(request))

    def _rounds(self, request: PlanRequest) -> Rounds:
        count = len(self.members)
        outcome = yield voted_round_plan(
            request, [worker_step(request, member, ANSWER_WHOLE_QUESTION) for member in self.members]
        )
        _, agreeing = most_common(vote_key(response) for response in outcome.responses[:count])
        if 3 * agreeing < 2 * count and count > 1:
            revising = [worker_step(request, member, REVISE, sees=True) for member in self.members]
            yield voted_round_plan(request, revising, [(0, step) for step in range(count)])
        return None


def _open(context: BaselineContext) -> Debate:
    return Debate(context.workers(context.argument))


BASELINE = PlannerSpec(
    "debate:A+B+C",
    _open,
    votes=True,
    team_only=True,
    on_recordings=False,
)
