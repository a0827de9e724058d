"""Lessons about a recording: its training questions, and random committees for them.

Two sorts. A *reading* is a question to be read on, word by word, so that the policy comes to know what kinds of
questions there are. A *plan* is the policy's own prompt, a thought that names the kind of the question, and a random
committee: some workers answer the whole question, and a vote decides. Some plans come after an earlier round, and then
every second one accepts its answer. Verdicts are not looked at: each kind has *habits*, drawn by its name, of whom to
ask and how often. They are no better than chance, but a policy that has them has a place for each kind's own; one that
asks everybody alike first learns what is best for all kinds, and then no longer tries what is best for one.
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


def draw_lesson(
    name: str,
    index: int,
    *,
    questions: Sequence[Read],
    profiles: Sequence[Profile],
    prompt: PromptSettings,
    shares: Shares,
    later: float,
) -> Lesson:
    """One lesson of an endless course; the same arguments give the same one for ever.

    Args:
        later: share of plans that come after an earlier round.
    """
    rng = Random(f"recorded lesson/{name}/{index}")
    asked = rng.choice(questions)
    if rng.random() * (shares.reading + shares.plan) < shares.reading:
        return Lesson("", ((f"Question: {shortened(asked.text, prompt.question_chars)}", True),))
    team = random_team(rng, profiles)
    decision: Workflow | Acceptance = random_committee(rng, team, asked.kind)
    outcomes: tuple[Outcome, ...] = ()
    if rng.random() < later:
        outcomes = (_outcome(rng, random_committee(rng, team, asked.kind), asked.answers),)
        decision = Acceptance() if rng.random() < 0.5 else decision
    situation = Situation(Question(text=asked.text), team, outcomes=outcomes, max_steps=MOST_STEPS)
    if prompt.levels:
        prompt = prompt.model_copy(update={"thrift": rng.randrange(prompt.levels)})
    (message,) = build_prompt(situation, prompt)
    return Lesson(message.content, ((f"{_thought(asked.kind, decision)}\n{render(decision)}", True),))


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


def _thought(kind: str, decision: Workflow | Acceptance) -> str:
    """The kind of the question, and how long the lists become: a number that is said can be kept to."""
    steps = len(decision.steps) if isinstance(decision, Workflow) else 0
    return f"{kind}; steps {steps}" if kind else f"steps {steps}"


def _outcome(rng: Random, workflow: Workflow, answers: Sequence[str]) -> Outcome:
    """What a round may have come to."""
    answer = rng.choice(answers) if answers else ""
    asked = len(workflow.steps) - 1
    if asked == 0:
        return Outcome(workflow, answer)
    return Outcome(workflow, f"{rng.randint(1, asked)} of {asked} responses agree.\nAnswer: {answer}")


def random_committee(rng: Random, profiles: Sequence[Profile], kind: str = "") -> Workflow:
    """One worker alone, or up to five answers of up to three workers and a vote, by the habits of a kind.

    Subtasks are numbered: a small model cannot count what bears no number.
    """
    workers = [i for i, profile in enumerate(profiles) if profile.name != VOTE]
    can_vote = len(workers) < len(profiles)
    sizes = [share * _habit(f"{kind}/{size}", _SIZE_HABIT) for size, share in enumerate(_SIZES)]
    (size,) = rng.choices(range(1, len(sizes) + 1), sizes) if can_vote else (1,)
    (different,) = rng.choices(range(1, len(_DIFFERENT) + 1), _DIFFERENT)
    liked = {worker: _habit(f"{kind}/{profiles[worker].name}", _HABIT) for worker in workers}
    asked: list[int] = []
    for _ in range(min(different, size, len(workers))):
        asked += rng.choices(list(liked), list(liked.values()))
        del liked[asked[-1]]
    members = sorted(asked + rng.choices(asked, k=size - len(asked)))
    steps = tuple(Step(worker, f"{place}. {WHOLE}") for place, worker in enumerate(members, 1))
    return Workflow(steps if size == 1 else (*steps, voting_step(profiles)))


@cache
def _habit(name: str, deviation: float) -> float:
    """How much something is preferred, as a factor; the same name has the same for ever."""
    return math.exp(Random(f"habit/{name}").gauss(0.0, deviation))
