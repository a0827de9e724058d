"""Committees for questions of a recording: some workers answer the whole question, and a vote decides.

*Random* ones follow habits that each kind of question has, drawn by its name, of whom to ask and how often; *taught*
ones are worth much on training questions of the kind (`worth`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from random import Random

from podium.baselines.phrases import WHOLE
from podium.baselines.plans import voting_step
from podium.conductor.prompt import listed
from podium.planner import PlanRequest
from podium.train.warmstart.worth import Worth
from podium.types import Profile
from podium.workers.vote import VOTE
from podium.workflow import Step, Workflow

MOST_STEPS = 6
"""Five answers and a vote."""
_SIZES = (0.35, 0.1, 0.28, 0.0, 0.27)
"""How often one worker is asked, two, and so on: odd numbers have no ties, and two can agree."""
_DIFFERENT = (0.4, 0.4, 0.2)
"""How often the answers are one worker's, two workers', three workers'."""
_HABIT = 1.2
"""Deviation of the logits by which a kind prefers workers."""
_SIZE_HABIT = 0.5
"""The same of sizes."""
_ALL = 0.3
"""How often the team is the whole pool."""
_PAIR = 2
_FEWEST = 3
"""Workers of the smallest pool."""


def random_team(rng: Random, profiles: Sequence[Profile]) -> tuple[Profile, ...]:
    """At times all, else some in any order behind the voting tool, if there is one."""
    if rng.random() < _ALL or len(profiles) <= _FEWEST:
        return tuple(profiles)
    workers = [profile for profile in profiles if profile.name != VOTE]
    drawn = rng.sample(workers, rng.randint(min(_FEWEST, len(workers)), len(workers)))
    return (*(profile for profile in profiles if profile.name == VOTE), *drawn)


def random_committee(
    rng: Random, profiles: Sequence[Profile], kind: str | None = None, *, max_steps: int = MOST_STEPS
) -> Workflow:
    """One worker alone, or up to five answers of up to three workers and a vote, by the habits of a kind, if any.

    Subtasks are numbered: a small model cannot count what bears no number.
    """
    workers = [i for i, profile in enumerate(profiles) if profile.name != VOTE]
    can_vote = len(workers) < len(profiles)
    sizes = [share * _habit(kind, f"{size}", _SIZE_HABIT) for size, share in enumerate(_SIZES)]
    fitting = sizes[: max(1, max_steps - 1)] if can_vote else sizes[:1]
    (size,) = rng.choices(range(1, len(fitting) + 1), fitting)
    (different,) = rng.choices(range(1, len(_DIFFERENT) + 1), _DIFFERENT)
    liked = {worker: _habit(kind, profiles[worker].name, _HABIT) for worker in workers}
    asked: list[int] = []
    for _ in range(min(different, size, len(workers))):
        asked += rng.choices(list(liked), list(liked.values()))
        del liked[asked[-1]]
    return _voting(sorted(asked + rng.choices(asked, k=size - len(asked))), profiles)


def taught_committee(rng: Random, request: PlanRequest, worth: Worth, kind: str, level: int) -> Workflow:
    """A committee that is worth much on questions of this kind, at a level of cost sensitivity."""
    team = request.pool
    drawn = worth.draw(
        rng,
        kind,
        [profile.name for profile in team],
        level=level,
        most=most_answers(request),
        rounds=request.rounds,
    )
    return committee_of(drawn, team)


def most_answers(request: PlanRequest) -> int:
    """Of one plan: the vote is a step too, and one answer needs none."""
    can_vote = any(profile.name == VOTE for profile in request.pool)
    return max(1, request.max_steps - 1) if can_vote else 1


def committee_of(names: Sequence[str], team: Sequence[Profile]) -> Workflow:
    """These workers, one as often as it is named, and a vote if they are several.

    Of two that differ the first wins; of more, the prompt's own order is soonest learned, though worth is measured in
    another: measured in this one, which the same verdicts made, committees of many look better than they are.
    """
    of_all = [profile.name for profile in team]
    members = [of_all.index(name) for name in names]
    return _voting(members if len(members) == _PAIR else sorted(members, key=listed(team).index), team)


def _voting(members: Sequence[int], profiles: Sequence[Profile]) -> Workflow:
    steps = tuple(Step(worker, f"{place}. {WHOLE}") for place, worker in enumerate(members, 1))
    return Workflow(steps if len(members) == 1 else (*steps, voting_step(profiles)))


@cache
def _habit(kind: str | None, what: str, deviation: float) -> float:
    """How much a kind prefers something, as a factor, the same for ever; 1 where there is no kind."""
    return 1.0 if kind is None else math.exp(Random(f"habit/{kind}/{what}").gauss(0.0, deviation))
