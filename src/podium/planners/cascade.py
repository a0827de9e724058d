"""Cascades: cheap workers answer first, and more expensive ones only where they disagree.

`Cascade` is FrugalGPT (Chen et al. 2023) in its simplest form: if the cheap workers disagree, an expensive one answers
in a second round; with one round it is their vote. `Escalation` is agreement-based cascading (Kolawole et al. 2024,
arXiv 2407.02348) with one worker a tier: the first two answer at once, since one alone cannot disagree. If the last
brings no majority either, the commonest answer wins, of equally common ones that of the most expensive worker.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.errors import ConfigError
from podium.planners.baseline import BaselineContext, PlannerSpec, worker_number
from podium.planners.planner import EarlierRound, Planner, PlanRequest
from podium.planners.rounds import Rounds, RoundStep, most_common, plan_rounds, voted_round_plan, worker_step
from podium.planners.voting import Committee
from podium.trace import Plan
from podium.types import ANSWER_WHOLE_QUESTION
from podium.workers.vote import vote_key
from podium.workflow import Acceptance, Step, Workflow, render


@dataclass(frozen=True, slots=True)
class Cascade(Planner):
    """The workers of `first` answer and vote. If they disagree, the worker `then` answers alone in a second round."""

    rounds = 2

    first: tuple[str, ...]
    then: str

    @property
    def name(self) -> str:
        return f"cascade:{'+'.join(self.first)}>{self.then}"

    async def plan(self, request: PlanRequest) -> Plan:
        """First the vote; in round 2 the expensive worker or an acceptance. `ConfigError` if a worker is missing."""
        if not request.earlier_rounds:
            return await Committee(self.first).plan(request)
        decision: Workflow | Acceptance = Acceptance()
        if len(request.earlier_rounds) == 1 and not self._is_unanimous(request.earlier_rounds[0]):
            decision = Workflow((Step(worker_number(self.then, request.pool), ANSWER_WHOLE_QUESTION),))
        return Plan(text=render(decision), decision=decision)

    def _is_unanimous(self, earlier_round: EarlierRound) -> bool:
        return earlier_round.votes is not None and earlier_round.votes.agreeing == len(self.first)


def _open_cascade(context: BaselineContext) -> Cascade:
    first, (then,) = context.layers
    if len(first) < 2:
        raise ConfigError(f"{context.name}: one worker alone cannot disagree; name two or more before the >.")
    return Cascade(first, then)


CASCADE = PlannerSpec(
    "cascade:A+B>C",
    _open_cascade,
    votes=True,
    team_only=True,
)


@dataclass(frozen=True, slots=True)
class Escalation(Planner):
    """Asks the workers of `ladder`, the cheapest first, until more than half of the answers agree."""

    ladder: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"escalation:{'+'.join(self.ladder)}"

    @property
    def rounds(self) -> int:
        """One for the first two workers, one for each further worker, and one to accept."""
        return max(2, len(self.ladder))

    async def plan(self, request: PlanRequest) -> Plan:
        """The next worker, or the majority's answer; `ConfigError` if the pool lacks a worker or the vote."""
        return plan_rounds(request, self._rounds(request))

    def _rounds(self, request: PlanRequest) -> Rounds:
        answers: list[tuple[str, RoundStep]] = []
        waiting = self.ladder
        number = 0
        while waiting:
            asked, waiting = (waiting[:1], waiting[1:]) if number else (waiting[:2], waiting[2:])
            earlier_round = yield voted_round_plan(
                request, [worker_step(request, worker, ANSWER_WHOLE_QUESTION) for worker in asked]
            )
            for step in range(len(asked)):
                answer = vote_key(earlier_round.responses[step])
                if answer is not None:
                    answers.append((answer, (number, step)))
            _, agreeing = most_common(answer for answer, _ in answers)
            if agreeing > max(1, len(answers) // 2):
                break
            number += 1
        winner, _ = most_common(answer for answer, _ in reversed(answers))
        return next((step for answer, step in reversed(answers) if answer == winner), None)


ESCALATION = PlannerSpec(
    "escalation:A+B+C",
    lambda context: Escalation(context.workers(context.argument)),
    votes=True,
    team_only=True,
)
