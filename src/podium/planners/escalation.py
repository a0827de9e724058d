"""Escalation by disagreement: the next, dearer worker is asked while the answers so far have no majority.

The first two workers answer at once, since one alone cannot disagree. This is agreement-based cascading (Kolawole et
al. 2024, arXiv 2407.02348) with one worker a tier. If the last worker brings no majority either, the commonest answer
wins, of equals the one of the dearest worker.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.planner import Plan, PlanRequest
from podium.planners.baseline import Baseline, BaselineContext, named_in, read_layers
from podium.planners.phrases import ANSWER_WHOLE_QUESTION
from podium.planners.rounds import Rounds, StepOf, commonest, comparable, plan_rounds, side_by_side, step_of
from podium.workers.vote import VOTE


@dataclass(frozen=True, slots=True)
class Escalation:
    """Asks the workers of `ladder`, the cheapest first, until more than half of the answers agree."""

    tools = (VOTE,)

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
        given: list[tuple[str, StepOf]] = []
        waiting = self.ladder
        number = 0
        while waiting:
            asked, waiting = (waiting[:1], waiting[1:]) if number else (waiting[:2], waiting[2:])
            outcome = yield side_by_side(
                request, [step_of(request, worker, ANSWER_WHOLE_QUESTION) for worker in asked]
            )
            for step in range(len(asked)):
                answer = comparable(outcome.responses[step])
                if answer is not None:
                    given.append((answer, (number, step)))
            _, agreeing = commonest(answer for answer, _ in given)
            if agreeing > max(1, len(given) // 2):
                break
            number += 1
        winner, _ = commonest(answer for answer, _ in reversed(given))
        return next((place for answer, place in reversed(given) if answer == winner), None)


def _open(argument: str, context: BaselineContext) -> Escalation:
    name = f"escalation:{argument}" if argument else "escalation"
    (ladder,) = read_layers(argument, context, name, form="escalation:A+B+C", layers=1)
    return Escalation(ladder)


BASELINE = Baseline(
    "escalation:A+B+C",
    _open,
    needs=lambda argument: (*named_in(argument), VOTE),
    team_only=True,
    examples=lambda workers: [f"escalation:{'+'.join(workers)}"],
)
