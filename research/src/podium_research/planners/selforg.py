"""SelfOrg (arXiv 2510.00685) by agreement: whose answer many share informs those whose answer few share.

The original compares answers by the vectors of an encoder. Here a worker's contribution is the share of workers that
gave the same final answer, which needs no encoder and cannot see that two different answers are close. The workers
with the highest contribution keep their answers; the others revise theirs in order, each in sight of all that
contribute more. After two revisions, or once all agree, the answer is that of the highest contribution. The original
gains where all workers are weak, and nothing where they are strong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from podium.errors import ConfigError
from podium.plugin_api.planners import (
    BaselineContext,
    Plan,
    Planner,
    PlannerSpec,
    PlanRequest,
    Rounds,
    RoundStep,
    Step,
    plan_rounds,
    voted_round_plan,
    worker_step,
)
from podium.types import ANSWER_WHOLE_QUESTION
from podium.workers.vote import vote_key
from podium_research.planners.rounds import all_rounds

_REVISIONS = 2
_REVISE = f"The responses that you are shown answer this question. Use what is right in them. {ANSWER_WHOLE_QUESTION}"


@dataclass(frozen=True, slots=True)
class MemberAnswer:
    """The latest answer of one of the members."""

    member: int
    step: RoundStep
    text: str | None
    """The text of the reply. Is None if the worker failed."""


@dataclass(frozen=True, slots=True)
class SelfOrg(Planner):
    """The workers `members`, of which one may occur several times."""

    rounds = 2 + _REVISIONS

    members: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"selforg-agreement:{'+'.join(self.members)}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The answers, a revision, or the final answer; `ConfigError` if the pool lacks a worker or the vote."""
        return plan_rounds(request, self._rounds(request))

    def _rounds(self, request: PlanRequest) -> Rounds:
        outcome = yield voted_round_plan(
            request, [worker_step(request, worker, ANSWER_WHOLE_QUESTION) for worker in self.members]
        )
        answers = [
            MemberAnswer(member, (0, member), outcome.responses[member])
            for member in range(len(self.members))
        ]
        for number in range(1, min(1 + _REVISIONS, all_rounds(request) - 1)):
            levels = _levels(answers)
            if len(levels) == 1:
                break
            revising = [answer for level in levels[1:] for answer in level]
            outcome = yield self._revision(request, levels)
            revised = {
                answer.member: replace(answer, step=(number, step), text=text)
                for step, (answer, text) in enumerate(zip(revising, outcome.responses, strict=False))
                if text is not None
            }
            answers = [revised.get(answer.member, answer) for answer in answers]
        best = _levels(answers)[0][0]
        return None if best.text is None else best.step

    def _revision(self, request: PlanRequest, levels: Sequence[Sequence[MemberAnswer]]) -> Plan:
        """The steps of all levels but the first. A level reads the steps of the levels between itself and the first."""
        steps: list[Step] = []
        for level in levels[1:]:
            above = range(len(steps))
            steps += [
                worker_step(request, self.members[answer.member], _REVISE, reads=above, sees=True)
                for answer in level
            ]
        return voted_round_plan(request, steps, [answer.step for answer in levels[0]])


def _levels(answers: Sequence[MemberAnswer]) -> list[list[MemberAnswer]]:
    """The answers by contribution, the highest first. Of answers that are equally frequent the first to be given leads,
    so that a tie has a leader, as it has by vectors."""
    final_answers = [vote_key(answer.text) for answer in answers]
    count = Counter(answer for answer in final_answers if answer is not None)
    first = {answer: -final_answers.index(answer) for answer in count}

    def rank(answer: MemberAnswer) -> tuple[int, int]:
        words = vote_key(answer.text)
        return (0, -len(final_answers)) if words is None else (count[words], first[words])

    ordered = sorted(answers, key=rank, reverse=True)
    return [list(level) for _, level in groupby(ordered, key=rank)]


def _open(context: BaselineContext) -> SelfOrg:
    members = context.workers(context.argument)
    if len(members) < 2:
        raise ConfigError(
            f"The baseline {context.name!r} needs two workers or more, such as selforg-agreement:A+B."
        )
    return SelfOrg(members)


BASELINE = PlannerSpec(
    "selforg-agreement:A+B",
    _open,
    votes=True,
    team_only=True,
    on_recordings=False,
)
