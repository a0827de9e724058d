"""DyLAN (Liu et al. 2023, arXiv 2310.02170): workers answer in turns, rate one another, and the best two go on.

In each turn every active worker sees the replies of the turn before, gives each 1 to 5 points, and answers. As soon as
more than two thirds of the active workers agree, it ends. Before the third turn a worker ranks the replies, and only
the authors of the best two go on. `importance` says what each worker contributed, from the points. The authors' code
goes on with random workers, since it takes places in a shuffled order for workers; here the named authors go on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Self

from podium.errors import ConfigError
from podium.planners.planner import earlier_rounds_of
from podium.plugin_api.planners import (
    BaselineContext,
    Plan,
    Planner,
    PlannerSpec,
    PlanRequest,
    Rounds,
    RoundStep,
    most_common,
    plan_rounds,
    voted_round_plan,
    worker_step,
)
from podium.trace import Trace
from podium.workers.vote import vote_key
from podium_research.planners.rounds import all_rounds, question_random

_KEPT_MEMBERS = 2
"""How many workers go on after a ranking."""
_ANSWER = 'Answer the whole question. End with a line "Answer: ...".'
_AGAIN = (
    "Each response of an earlier round that you are shown answers this question. First rate each from 1 (wrong) "
    f"to 5 (right), all on one line in the order shown, as in [[3, 5, 1]]. Then answer the question yourself. {_ANSWER}"
)
_RANK = (
    "The responses of an earlier round that you are shown answer this question. Count them from 1 in the order shown. "
    "Which two are the best? Think, then end with a line that has only their numbers, the best first, as in [2, 1]."
)
_POINTS = re.compile(r"\[\[([\d.,\s]+)\]\]")
_PAIR = re.compile(r"\[(\d{1,3})\s*,\s*(\d{1,3})\]")


@dataclass(frozen=True, slots=True)
class MemberReply:
    """What one worker said in one turn."""

    member: int
    """Number of the worker among the members, from 0."""
    step: RoundStep
    text: str | None
    """The text of the reply. Is None if the worker failed."""
    points: tuple[float, ...] = ()
    """How much each reply that it saw counts for it. They add up to 1."""
    saw: tuple[int, ...] = ()
    """The members whose replies it saw, in the order of `points`."""

    @classmethod
    def read(cls, member: int, step: RoundStep, text: str | None, shown: Sequence[MemberReply]) -> Self:
        """The reply with its points. If it does not rate each reply that was shown, all count the same."""
        points_lists = _POINTS.findall(text or "")
        written = re.findall(r"\d+(?:\.\d+)?", points_lists[-1]) if points_lists else []
        points = [min(5.0, float(number)) for number in written]
        if len(points) != len(shown) or not sum(points):
            points = [1.0] * len(shown)
        total = sum(points)
        return cls(
            member,
            step,
            text,
            tuple(point / total for point in points),
            tuple(reply.member for reply in shown),
        )

    @property
    def answer(self) -> str | None:
        return vote_key(self.text)


@dataclass(frozen=True, slots=True)
class DyLAN(Planner):
    """The workers `members`, of which one may occur several times, for at most `turns` turns."""

    members: tuple[str, ...]
    turns: int = 3

    @property
    def name(self) -> str:
        return f"dylan:{'+'.join(self.members)}"

    @property
    def rounds(self) -> int:
        """At most: a turn asks in several rounds, a ranking takes one, and the last round accepts."""
        in_a_turn = 1 + len(self.members) - _majority(self.members)
        return self.turns * in_a_turn + max(0, self.turns - 2) + 1

    async def plan(self, request: PlanRequest) -> Plan:
        """The next workers to ask, or the commonest answer; `ConfigError` if the pool lacks a worker or the vote."""
        return plan_rounds(request, self._rounds(request, []))

    def importance(self, trace: Trace) -> dict[str, float]:
        """How much each worker contributed to the answer of a question that this planner planned.

        The authors of the final answer share 1 in the last turn; in each earlier turn a worker gets what its readers
        had, in the share of the points that they gave it. The result sums over the turns. The mean over many questions
        ranks the workers.
        """
        earlier_rounds = earlier_rounds_of(trace)
        left = trace.budget.rounds - len(earlier_rounds)
        request = PlanRequest(trace.question, trace.pool, earlier_rounds, rounds_left=left, seed=trace.seed)
        turns: list[list[MemberReply]] = []
        plan_rounds(request, self._rounds(request, turns))
        shares = importance_of([turn for turn in turns if _commonest_reply(turn)], vote_key(trace.answer))
        return {
            worker: sum(shares.get(k, 0.0) for k, name in enumerate(self.members) if name == worker)
            for worker in dict.fromkeys(self.members)
        }

    def _rounds(self, request: PlanRequest, turns: list[list[MemberReply]]) -> Rounds:
        """The rounds of a question, of which the last one accepts. Appends the replies of each turn to `turns`."""
        random = question_random(request, "dylan")
        active = list(range(len(self.members)))
        shown: list[MemberReply] = []
        number, last = 0, all_rounds(request) - 1
        for turn in range(self.turns):
            if (
                turn >= 2
                and len(active) > _KEPT_MEMBERS
                and len(self.members) > 3
                and len(shown) > _KEPT_MEMBERS
            ):
                if number + 1 >= last:  # Nobody could answer after the ranking.
                    break
                ranking = yield self._draft(request, [0], _RANK, shown)
                number += 1
                active = _two_best(ranking.response, shown)
            replies: list[MemberReply] = []
            turns.append(replies)
            waiting, enough = random.sample(active, len(active)), _majority(active)
            while waiting and (number < last or not number):
                asked, waiting = _next(replies, waiting, enough)
                earlier_round = yield self._draft(request, asked, _AGAIN if shown else _ANSWER, shown)
                replies += [
                    MemberReply.read(member, (number, step), text, shown)
                    for step, (member, text) in enumerate(zip(asked, earlier_round.responses, strict=False))
                ]
                number += 1
                if most_common(reply.answer for reply in replies)[1] >= enough:
                    return _commonest_reply(replies)
            shown = _shuffle(replies, random)
        return next((step for turn in reversed(turns) if (step := _commonest_reply(turn))), None)

    def _draft(
        self, request: PlanRequest, asked: Sequence[int], subtask: str, shown: Sequence[MemberReply]
    ) -> Plan:
        steps = [worker_step(request, self.members[member], subtask, sees=bool(shown)) for member in asked]
        return voted_round_plan(request, steps, [reply.step for reply in shown])


def _majority(active: Sequence[object]) -> int:
    """So many equal answers end the question: more than two thirds of the active members."""
    return 2 * len(active) // 3 + 1


def _next(replies: Sequence[MemberReply], waiting: Sequence[int], enough: int) -> tuple[list[int], list[int]]:
    """Whom to ask now and whom later: the fewest that may make a majority. One at a time would ask as many."""
    lacking = enough - most_common(reply.answer for reply in replies)[1]
    count = lacking if lacking <= len(waiting) else len(waiting)
    return list(waiting[:count]), list(waiting[count:])


def _shuffle(replies: Sequence[MemberReply], random: Random) -> list[MemberReply]:
    """The replies that can be shown, in a random order."""
    answered = [reply for reply in replies if reply.text is not None]
    return random.sample(answered, len(answered))


def _two_best(ranking: str, shown: Sequence[MemberReply]) -> list[int]:
    """The members whose replies the ranking names. It names replies by their position among `shown`, not by member."""
    named = _PAIR.findall(ranking)
    positions = [int(number) - 1 for number in named[-1]] if named else []
    chosen = [shown[position].member for position in positions if 0 <= position < len(shown)]
    others = [reply.member for reply in shown]
    return list(dict.fromkeys([*chosen, *others]))[:_KEPT_MEMBERS]


def _commonest_reply(replies: Sequence[MemberReply]) -> RoundStep | None:
    """The first reply that gives the commonest answer; None if no worker answered."""
    answer, _ = most_common(reply.answer for reply in replies)
    return next((reply.step for reply in replies if answer is not None and reply.answer == answer), None)


def importance_of(turns: Sequence[Sequence[MemberReply]], final: str | None) -> dict[int, float]:
    """The importance of each member, summed over the turns.

    Args:
        turns: oldest first, none of them empty.
        final: the answer, as `vote_key` gives it.
    """
    total: dict[int, float] = {}
    later: dict[int, float] = {}
    readers: Sequence[MemberReply] = ()
    for turn in reversed(turns):
        if not readers:
            agreeing = [reply.member for reply in turn if final is not None and reply.answer == final]
            own = {member: 1 / len(agreeing) for member in agreeing}
        else:
            own = {}
            for reader in readers:
                for member, share in zip(reader.saw, reader.points, strict=True):
                    own[member] = own.get(member, 0.0) + share * later.get(reader.member, 0.0)
        for member, share in own.items():
            total[member] = total.get(member, 0.0) + share
        later, readers = own, turn
    return total


def _open(context: BaselineContext) -> DyLAN:
    members = context.workers(context.argument)
    if len(members) < 2:
        raise ConfigError(
            f"The baseline {context.name!r} needs two workers or more, such as dylan:A+B or dylan:3xA."
        )
    return DyLAN(members)


BASELINE = PlannerSpec(
    "dylan:A+B",
    _open,
    votes=True,
    team_only=True,
    on_recordings=False,
)
