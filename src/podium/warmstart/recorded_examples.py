"""SFT examples about a recording: its training questions, and committees for them.

Two sorts. A *reading* is a question to be read on, word by word, so that the policy comes to know what clusters of
questions there are. A *plan* is the policy's own prompt, a thought that names the cluster of the question, and a random
committee. Some plans come after an earlier round, and then every second one accepts its answer. Verdicts are not looked
at: random committees are no better than chance, but a policy that has a cluster's habits has a place for each
cluster's own.

*Supervised* plans are drawn by what committees were worth on training questions of the same cluster
(`committee_value`), so a policy that learns from them is trained, and no longer one to begin with. A *level sweep* is
one question at every level of cost sensitivity, thoughts alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from podium.baselines.phrases import WHOLE
from podium.baselines.plans import voting_step
from podium.conductor.prompt import PromptSettings, build_prompt, listed, shortened
from podium.planner import Outcome, PlanRequest
from podium.types import Profile, Question
from podium.warmstart.committee_value import CommitteeValues
from podium.warmstart.embedded_examples import SFTExample, Shares
from podium.workers.pool import Pool
from podium.workers.vote import NOTHING, VOTE
from podium.workflow import Acceptance, Step, Workflow, render

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


def supervised_committee(
    rng: Random, request: PlanRequest, worth: CommitteeValues, kind: str, level: int
) -> Workflow:
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


_ROUNDS = 2
"""Rounds that there may be."""
_WIDEST = 0.6
"""How often a plan may be as long as any, and else only so long as is drawn."""
_ACCEPTING = 0.1
"""How often lessons about a pool that is taught one round show a second one, which accepts."""


@dataclass(frozen=True, slots=True)
class Read:
    """A training question, as lessons use it."""

    text: str
    kind: str
    """Empty: lessons name none."""
    answers: tuple[str, ...]
    """What workers once answered, right or wrong."""


@dataclass(frozen=True, slots=True)
class RecordedSource:
    """The training questions of one recording, and the pool that they are asked over."""

    questions: tuple[Read, ...]
    pool: Pool
    worth: CommitteeValues | None = None
    """None: nothing is taught by verdicts."""
    weight: float = 1.0
    """How often it is drawn, beside the others."""


def draw_example(
    name: str,
    index: int,
    *,
    courses: Sequence[RecordedSource],
    prompt: PromptSettings,
    shares: Shares,
    later: float,
) -> SFTExample:
    """One lesson of an endless course; the same arguments give the same one for ever.

    Args:
        later: share of plans that come after an earlier round.
    """
    rng = Random(f"recorded lesson/{name}/{index}")
    (course,) = rng.choices(courses, [course.weight for course in courses])
    asked = rng.choice(course.questions)
    if rng.random() * (shares.reading + shares.plan) < shares.reading:
        return SFTExample("", ((f"Question: {shortened(asked.text, prompt.question_chars)}", True),))
    request = PlanRequest(
        Question(text=asked.text),
        random_team(rng, course.pool.profiles_for(asked.text)),
        max_steps=MOST_STEPS if rng.random() < _WIDEST else rng.randint(1, MOST_STEPS - 1),
        rounds=rng.randint(1, _ROUNDS),
    )
    if prompt.levels:
        prompt = prompt.model_copy(update={"cost_sensitivity": rng.randrange(prompt.levels)})
    if course.worth is not None and rng.random() < shares.taught:
        taught = _SupervisedPlans(rng, course.worth, asked, request, prompt)
        return taught.roll() if prompt.levels and rng.random() < shares.roll else taught.plan()
    decision, outcomes = _untaught(rng, asked, request, later)
    rounds = 1 if outcomes else request.rounds
    return _lesson(asked, replace(request, outcomes=outcomes, rounds=rounds), decision, prompt)


def _lesson(
    asked: Read, request: PlanRequest, decision: Workflow | Acceptance, prompt: PromptSettings
) -> SFTExample:
    (message,) = build_prompt(request, prompt)
    written = f"{thought(asked.kind, decision, request.pool)}\n{render(decision)}"
    return SFTExample(message.content, ((written, True),))


def _untaught(
    rng: Random, asked: Read, request: PlanRequest, later: float
) -> tuple[Workflow | Acceptance, tuple[Outcome, ...]]:
    """Any committee, or what may follow one."""
    team, kind = request.pool, asked.kind or None
    committee = random_committee(rng, team, kind, max_steps=request.max_steps)
    if rng.random() >= later:
        return committee, ()
    before = random_committee(rng, team, kind, max_steps=request.max_steps)
    asked_before = max(1, len(before.steps) - 1)
    outcome = _outcome(before, rng.choice(asked.answers or ("",)), rng.randint(1, asked_before), asked_before)
    return (Acceptance() if rng.random() < 0.5 else committee), (outcome,)


class _SupervisedPlans:
    """One question, with what its plans are worth; half the time, where a second round may follow, after a first.

    Args:
        situation: before a first round.
    """

    def __init__(
        self, rng: Random, worth: CommitteeValues, asked: Read, request: PlanRequest, prompt: PromptSettings
    ) -> None:
        self._rng = rng
        self._worth = worth
        self._asked = asked
        self._request = request
        self._prompt = prompt
        self._members: tuple[str, ...] = ()
        self._agree = 0
        if rng.random() < (0.5 if worth.rounds > 1 else _ACCEPTING):
            self._begin()

    def plan(self) -> SFTExample:
        """At the level of cost sensitivity that the prompt names."""
        decision = self._decision(self._prompt.cost_sensitivity)
        return _lesson(self._asked, self._request, decision, self._prompt)

    def roll(self) -> SFTExample:
        """At every level of cost sensitivity, in any order: thoughts alone, for plans follow from them."""
        levels = self._rng.sample(range(self._prompt.levels), self._prompt.levels)
        pieces: list[tuple[str, bool]] = []
        for level in levels:
            if pieces:
                pieces.append((f"\nThrift: {level}\nPlan:\n", False))
            pieces.append((thought(self._asked.kind, self._decision(level), self._request.pool), True))
        (message,) = build_prompt(
            self._request, self._prompt.model_copy(update={"cost_sensitivity": levels[0]})
        )
        return SFTExample(message.content, tuple(pieces))

    def _begin(self) -> None:
        """The committee that is worth most, and what came of it; then the last round is left."""
        team = self._request.pool
        self._request = replace(self._request, rounds=_ROUNDS)
        committee = self._committee(self._prompt.cost_sensitivity)
        self._members = tuple(
            team[step.worker].name for step in committee.steps if team[step.worker].name != VOTE
        )
        self._agree, answered = self._worth.agreeing(self._members, self._asked.text)
        answer = self._rng.choice(self._asked.answers or ("",))
        outcome = _outcome(committee, answer, self._agree, answered)
        self._request = replace(self._request, outcomes=(outcome,), rounds=1)

    def _decision(self, level: int) -> Workflow | Acceptance:
        """What is worth most; after a first round, where it mends nothing, acceptance."""
        request = self._request
        if not request.outcomes:
            return self._committee(level)
        names = [profile.name for profile in request.pool]
        second = self._worth.draw_next(
            self._rng,
            self._asked.kind,
            names,
            self._members,
            self._agree,
            level=level,
            most=most_answers(request),
        )
        return committee_of(second, request.pool) if second else Acceptance()

    def _committee(self, level: int) -> Workflow:
        return supervised_committee(self._rng, self._request, self._worth, self._asked.kind, level)


def prompts(texts: Sequence[str], pool: Pool, prompt: PromptSettings) -> list[str]:
    """What the policy is asked for each question, where a plan may be as long as any."""
    situations = (
        PlanRequest(Question(text=text), pool.profiles_for(text), max_steps=MOST_STEPS) for text in texts
    )
    return [build_prompt(request, prompt)[0].content for request in situations]


def thought(kind: str, decision: Workflow | Acceptance, team: Sequence[Profile]) -> str:
    """The kind of the question, the numbers of who answers, and how long the lists become.

    The numbers stand right behind the kind: what follows from a token is learned far sooner than what must be fetched
    from some tokens back. Those of two digits stand in brackets, or 110 would be two committees. A number of steps that
    is said can be kept to.
    """
    steps = decision.steps if isinstance(decision, Workflow) else ()
    asked = [step.worker for step in steps if team[step.worker].name != VOTE]
    numbers = "".join(f"{number}" if number < 10 else f"({number})" for number in asked)
    return f"{kind}{numbers}; steps {len(steps)}"


def _outcome(workflow: Workflow, answer: str, agree: int, answered: int) -> Outcome:
    """What a round came to in which so many of those who answered agree."""
    if len(workflow.steps) == 1:
        return Outcome(workflow, answer)
    if not answered:
        return Outcome(workflow, NOTHING)
    return Outcome(workflow, f"{agree} of {answered} responses agree.\nAnswer: {answer}")
