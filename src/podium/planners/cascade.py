"""A cascade: cheap workers answer first. If they disagree, an expensive worker answers.

This is FrugalGPT (Chen et al. 2023) in its simplest form. It needs a budget of two rounds; with one round it is a vote
of the cheap workers.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.planner import Outcome, Plan, PlanRequest
from podium.planners.baseline import Baseline, BaselineContext, read_members, read_worker, read_workers
from podium.planners.phrases import ANSWER_WHOLE_QUESTION
from podium.planners.plans import position_of
from podium.planners.voting import Committee
from podium.workers.vote import VOTE
from podium.workflow import Acceptance, Step, Workflow, render


@dataclass(frozen=True, slots=True)
class Cascade:
    """The workers of `first` answer and vote. If they disagree, the worker `then` answers alone in a second round."""

    tools = (VOTE,)
    rounds = 2

    first: tuple[str, ...]
    then: str

    @property
    def name(self) -> str:
        return f"cascade:{'+'.join(self.first)}>{self.then}"

    async def plan(self, request: PlanRequest) -> Plan:
        """First the vote; in round 2 the expensive worker or an acceptance. `ConfigError` if a worker is missing."""
        if not request.outcomes:
            return await Committee(self.first).plan(request)
        decision: Workflow | Acceptance = Acceptance()
        if len(request.outcomes) == 1 and not self._is_unanimous(request.outcomes[0]):
            decision = Workflow((Step(position_of(self.then, request.pool), ANSWER_WHOLE_QUESTION),))
        return Plan(text=render(decision), decision=decision)

    def _is_unanimous(self, outcome: Outcome) -> bool:
        """Whether all cheap workers gave the same answer."""
        return outcome.votes is not None and outcome.votes.agreeing == len(self.first)


def _open(argument: str, context: BaselineContext) -> Cascade:
    first, _, then = argument.partition(">")
    name = f"cascade:{argument}" if argument else "cascade"
    cheap = read_workers(first, context, name)
    return Cascade(cheap, read_worker(then, context, name))


def _needs(argument: str) -> tuple[str, ...]:
    first, _, then = argument.partition(">")
    return (*dict.fromkeys(read_members(first)), then, VOTE)


BASELINE = Baseline(
    "cascade:A+B>C",
    _open,
    needs=_needs,
    team_only=True,
    examples=lambda workers: [f"cascade:{'+'.join(workers)}>{workers[-1]}"],
)
