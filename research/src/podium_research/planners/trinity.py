"""TRINITY (arXiv 2512.04695): a linear head chooses in each turn a worker and its role, by what was written so far.

The roles are thinker, worker and verifier; the first answer that a verifier accepts ends it, at the latest after five
turns. The head is small enough to be trained without gradients, by sep-CMA-ES (Ros & Hansen 2008) from the package
`cmaes`. The original reads the hidden state of a language model with 0.6 billion parameters; this one hashes words. So
it tells questions apart by their words only, and says nothing about the original's accuracy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podium.errors import ConfigError
from podium.planners.baseline import worker_number
from podium.plugin_api.planners import (
    BaselineContext,
    Plan,
    Planner,
    PlannerSpec,
    PlanRequest,
    Rounds,
    RoundStep,
    Workflow,
    plan_rounds,
    worker_step,
    workflow_plan,
)
from podium.types import ANSWER_WHOLE_QUESTION
from podium_research.planners.rounds import all_rounds
from podium_research.planners.scored_answers import answers_of_workers

if TYPE_CHECKING:
    from podium_research.planners.trinity_head import Head, Role

_SUBTASKS: dict[Role, str] = {
    "thinker": "Do not answer the question. Say how to go on: a plan, its parts, or what is wrong with the work.",
    "worker": ANSWER_WHOLE_QUESTION,
    "verifier": "Check the latest answer that you are shown. End with ACCEPT if it is right, otherwise with REVISE.",
}
_TURNS = 5
_VERDICT = re.compile(r"\b(ACCEPT|REVISE)\b")


@dataclass(frozen=True, slots=True)
class Trinity(Planner):
    """Plans one step at a time, as `head` chooses."""

    rounds = _TURNS + 1

    head: Head
    name: str = "trinity"

    async def plan(self, request: PlanRequest) -> Plan:
        """The next turn, or the accepted answer; `ConfigError` if the pool lacks a worker."""
        return plan_rounds(request, self._rounds(request))

    def _rounds(self, request: PlanRequest) -> Rounds:
        text = request.question.text
        last: Role | None = None
        results: list[RoundStep] = []
        answer: RoundStep | None = None
        turns = max(1, min(_TURNS, all_rounds(request) - 1))
        for number in range(turns):
            worker, role = self.head.choose(text, last)
            if answer is None and (role == "verifier" or number == turns - 1):
                role = "worker"  # There is nothing to verify, or no later turn to answer in.
            step = worker_step(request, worker, _SUBTASKS[role], sees=bool(results))
            outcome = yield workflow_plan(Workflow((step,)), tuple(results))
            last, response = role, outcome.responses[0]
            if response is None:
                continue
            results.append((number, 0))
            text += f"\n{response}"
            if role == "worker":
                answer = (number, 0)
            elif role == "verifier" and _VERDICT.findall(response)[-1:] == ["ACCEPT"]:
                break
        return answer


def _open_file(context: BaselineContext) -> Trinity:
    from podium_research.planners.trinity_head import Head  # noqa: PLC0415 - loads NumPy

    path = Path(context.argument)
    if not context.argument or not path.is_file():
        raise ConfigError(
            f"trinity:{context.argument}: there is no such file; write trinity:FILE with a head's JSON."
        )
    head = Head.load(path)
    for worker in head.workers:
        worker_number(worker, context.pool)
    return Trinity(head, f"trinity:{context.argument}")


def _open_scored(context: BaselineContext) -> Trinity:
    from podium_research.planners.trinity_head import train_head  # noqa: PLC0415 - loads NumPy

    assert context.scored is not None
    scored = answers_of_workers(context.scored, [profile.name for profile in context.pool], "trinity-scored")
    return Trinity(train_head(scored), "trinity-scored")


def _need_cmaes(argument: str) -> object:
    from podium_research.planners.trinity_head import sep_cma  # noqa: PLC0415 - loads NumPy

    return sep_cma()


FROM_FILE = PlannerSpec("trinity:FILE", _open_file, reads_files=True, on_recordings=False)
FROM_SCORES = PlannerSpec(
    "trinity-scored", _open_scored, learns=True, check=_need_cmaes, team_only=True, on_recordings=False
)
