"""Several answers, of which one worker chooses: best-of-n with a judge, and universal self-consistency.

The judge of best-of-n names the best answer. The chooser of universal self-consistency (Chen et al. 2023, arXiv
2311.17311) names the answer on which most agree, and so votes on texts that cannot be compared by a program. If the
verdict cannot be read, the commonest answer wins. With a budget of one round the judge's own text is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from podium.planners.baseline import BaselineContext, PlannerSpec
from podium.planners.planner import Planner, PlanRequest
from podium.planners.rounds import Rounds, most_common, plan_rounds, worker_step, workflow_plan
from podium.trace import Plan
from podium.types import ANSWER_WHOLE_QUESTION
from podium.workers.vote import vote_key
from podium.workflow import Workflow

_VERDICT = (
    'End with two lines: "Best: " and the number of its step (the first step shown is 0), then "Answer: " and its '
    "final answer."
)
BEST = f"Compare the responses shown: is each right, complete and well founded? Name the best one. {_VERDICT}"
MOST_CONSISTENT = (
    f"Compare the responses shown: on which answer do most agree? Name a response with it. {_VERDICT}"
)
_BEST = re.compile(r"^\W*best\W[^\d\n]{0,20}(\d{1,4})\b", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class JudgedPlanner(Planner):
    """The workers `members` answer, of which one may occur several times. `judge` then names one of the answers."""

    rounds = 2

    form: str
    """The name before the workers."""
    members: tuple[str, ...]
    judge: str
    subtask: str

    @property
    def name(self) -> str:
        return f"{self.form}:{'+'.join(self.members)}>{self.judge}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The answers and the judge; then the answer that it names. `ConfigError` if the pool lacks a worker."""
        return plan_rounds(request, self._rounds(request))

    def _rounds(self, request: PlanRequest) -> Rounds:
        count = len(self.members)
        steps = [worker_step(request, member, ANSWER_WHOLE_QUESTION) for member in self.members]
        if count > 1:
            steps.append(worker_step(request, self.judge, self.subtask, reads=range(count)))
        outcome = yield workflow_plan(Workflow(tuple(steps)))
        responses = outcome.responses[:count]
        best = read_verdict(outcome.responses[-1], responses) if count > 1 else None
        if best is None:
            answers = [vote_key(response) for response in responses]
            winner, _ = most_common(answers)
            best = None if winner is None else answers.index(winner)
        return None if best is None else (0, best)


def read_verdict(verdict: str | None, responses: Sequence[str | None]) -> int | None:
    """The number of the existing response that the last line "Best: ..." of a verdict names, or None."""
    numbers = _BEST.findall(verdict or "")
    position = int(numbers[-1]) if numbers else len(responses)
    return position if position < len(responses) and responses[position] else None


def _baseline(form: str, subtask: str) -> PlannerSpec:
    def open_judged(context: BaselineContext) -> JudgedPlanner:
        members, (judge,) = context.layers
        return JudgedPlanner(form, members, judge, subtask)

    return PlannerSpec(
        f"{form}:A+B>JUDGE",
        open_judged,
        team_only=True,
        on_recordings=False,
    )


BEST_OF_N = _baseline("best-of-n", BEST)
UNIVERSAL_SELF_CONSISTENCY = _baseline("universal-self-consistency", MOST_CONSISTENT)
