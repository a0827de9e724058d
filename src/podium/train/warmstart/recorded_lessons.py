"""Lessons about a recording: its training questions, and random committees for them.

Two sorts. A *reading* is a question to be read on, word by word, so that the policy comes to know what kinds of
questions there are. A *plan* is the policy's own prompt, a thought that names the kind of the question, and a random
committee: some workers answer the whole question, and a vote decides. Some plans come after an earlier round, and then
every second one accepts its answer. Verdicts are not looked at: each kind has *habits*, drawn by its name, of whom to
ask and how often. They are no better than chance, but a policy that has them has a place for each kind's own.

*Taught* plans are another thing: they are drawn by what committees were worth on training questions of the same kind
(`worth`), so what learns from them is trained, and no longer a policy to begin with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from podium.baselines.phrases import WHOLE
from podium.baselines.plans import VOTE, voting_step
from podium.conductor.prompt import PromptSettings, build_prompt, shortened
from podium.planner import Outcome, Situation
from podium.train.warmstart.lessons import Lesson, Shares
from podium.train.warmstart.worth import Worth
from podium.types import Profile, Question
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
_GLIMPSES = 0.75
"""Of taught plans, those whose question is hardly shown: to read it takes longer than to learn what its kind needs."""
_GLIMPSE = 40
"""Characters of it."""
_ALL = 0.7
"""How often the team is the whole pool."""
_FEWEST = 3
"""Workers of the smallest pool."""


@dataclass(frozen=True, slots=True)
class Read:
    """A training question, as lessons use it."""

    text: str
    kind: str
    """Empty: lessons name none."""
    answers: tuple[str, ...]
    """What workers once answered, right or wrong."""


@dataclass(frozen=True, slots=True)
class Course:
    """The training questions of one recording, and the pool that they are asked over."""

    questions: tuple[Read, ...]
    profiles: tuple[Profile, ...]
    worth: Worth | None = None
    """None: nothing is taught by verdicts."""


def draw_lesson(
    name: str,
    index: int,
    *,
    courses: Sequence[Course],
    prompt: PromptSettings,
    shares: Shares,
    later: float,
) -> Lesson:
    """One lesson of an endless course; the same arguments give the same one for ever.

    Args:
        later: share of plans that come after an earlier round.
    """
    rng = Random(f"recorded lesson/{name}/{index}")
    (course,) = rng.choices(courses, [len(course.questions) for course in courses])
    asked = rng.choice(course.questions)
    if rng.random() * (shares.reading + shares.plan) < shares.reading:
        return Lesson("", ((f"Question: {shortened(asked.text, prompt.question_chars)}", True),))
    team = random_team(rng, course.profiles)
    decision: Workflow | Acceptance = random_committee(rng, team, asked.kind or None)
    outcomes: tuple[Outcome, ...] = ()
    if prompt.levels:
        prompt = prompt.model_copy(update={"thrift": rng.randrange(prompt.levels)})
    glimpse = False
    if shares.taught and course.worth is not None and rng.random() < shares.taught:
        decision = taught_committee(rng, team, course.worth, asked.kind, prompt.thrift)
        glimpse = bool(asked.kind) and rng.random() < _GLIMPSES
        prompt = prompt.model_copy(update={"question_chars": _GLIMPSE}) if glimpse else prompt
    elif rng.random() < later:
        outcomes = (_outcome(rng, random_committee(rng, team, asked.kind or None), asked.answers),)
        decision = Acceptance() if rng.random() < 0.5 else decision
    situation = Situation(Question(text=asked.text), team, outcomes=outcomes, max_steps=MOST_STEPS)
    (message,) = build_prompt(situation, prompt)
    text = f"{thought(asked.kind, decision, team)}\n{render(decision)}"
    # Of a question that is hardly shown the kind is told: what follows from it is the lesson.
    told = len(asked.kind) if glimpse else 0
    return Lesson(message.content, ((text[:told], False), (text[told:], True)))


def prompts(
    texts: Sequence[str], profiles: Sequence[Profile], prompt: PromptSettings, max_steps: int
) -> list[str]:
    """What the policy is asked for each question."""
    situations = (Situation(Question(text=text), tuple(profiles), max_steps=max_steps) for text in texts)
    return [build_prompt(situation, prompt)[0].content for situation in situations]


def random_team(rng: Random, profiles: Sequence[Profile]) -> tuple[Profile, ...]:
    """Mostly all, else some in any order behind the voting tool, if there is one."""
    if rng.random() < _ALL or len(profiles) <= _FEWEST:
        return tuple(profiles)
    workers = [profile for profile in profiles if profile.name != VOTE]
    drawn = rng.sample(workers, rng.randint(min(_FEWEST, len(workers)), len(workers)))
    return (*(profile for profile in profiles if profile.name == VOTE), *drawn)


def thought(kind: str, decision: Workflow | Acceptance, team: Sequence[Profile]) -> str:
    """The kind of the question, the numbers of who answers, and how long the lists become.

    The numbers stand right behind the kind: what follows from a token is learned far sooner than what must be fetched
    from some tokens back. A number of steps that is said can be kept to.
    """
    steps = decision.steps if isinstance(decision, Workflow) else ()
    asked = "".join(f"{step.worker}" for step in steps if team[step.worker].name != VOTE)
    return f"{kind}{asked}; steps {len(steps)}"


def kind_in(written: str) -> str:
    """The kind that a completion's thought names; empty where it names none. The inverse of `thought`."""
    said, steps, _ = written.partition("\n")[0].partition("; steps ")
    return said.rstrip("0123456789") if steps else ""


def _outcome(rng: Random, workflow: Workflow, answers: Sequence[str]) -> Outcome:
    """What a round may have come to."""
    answer = rng.choice(answers) if answers else ""
    asked = len(workflow.steps) - 1
    if asked == 0:
        return Outcome(workflow, answer)
    return Outcome(workflow, f"{rng.randint(1, asked)} of {asked} responses agree.\nAnswer: {answer}")


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


def taught_committee(rng: Random, team: Sequence[Profile], worth: Worth, kind: str, level: int) -> Workflow:
    """A committee that is worth much on questions of this kind, at a level of thrift."""
    names = [profile.name for profile in team]
    drawn = worth.draw(rng, kind, names, level=level, most=MOST_STEPS - 1 if VOTE in names else 1)
    return _voting([names.index(name) for name in drawn], team)


def _voting(members: Sequence[int], profiles: Sequence[Profile]) -> Workflow:
    steps = tuple(Step(worker, f"{place}. {WHOLE}") for place, worker in enumerate(members, 1))
    return Workflow(steps if len(members) == 1 else (*steps, voting_step(profiles)))


@cache
def _habit(kind: str | None, what: str, deviation: float) -> float:
    """How much a kind prefers something, as a factor, the same for ever; 1 where there is no kind."""
    return 1.0 if kind is None else math.exp(Random(f"habit/{kind}/{what}").gauss(0.0, deviation))
