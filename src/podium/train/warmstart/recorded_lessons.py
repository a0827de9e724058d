"""Lessons about a recording: its training questions, and random committees for them.

Two kinds. A *reading* is a question to be read on, word by word, so that the policy comes to know what kinds of
questions there are. A *plan* is the policy's own prompt and a random committee: some workers answer the whole
question, and a vote decides. Who is asked, and how often, has nothing to do with the question; verdicts are not
looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from podium.baselines.phrases import WHOLE
from podium.baselines.plans import VOTE, voting_step
from podium.conductor.prompt import PromptSettings, build_prompt, shortened
from podium.planner import Situation
from podium.train.warmstart.lessons import Lesson, Shares
from podium.types import Profile, Question
from podium.workflow import Step, Workflow, render

MOST_STEPS = 6
"""Five answers and a vote."""
_SIZES = (0.4, 0.1, 0.2, 0.1, 0.2)
"""How often one worker is asked, two, and so on: odd numbers have no ties."""


def draw_lesson(
    name: str,
    index: int,
    *,
    texts: Sequence[str],
    profiles: Sequence[Profile],
    prompt: PromptSettings,
    shares: Shares,
) -> Lesson:
    """One lesson of an endless course; the same arguments give the same one for ever."""
    rng = Random(f"recorded lesson/{name}/{index}")
    text = rng.choice(texts)
    if rng.random() * (shares.reading + shares.plan) < shares.reading:
        return Lesson("", ((f"Question: {shortened(text, prompt.question_chars)}", True),))
    (asked,) = prompts((text,), profiles, prompt, MOST_STEPS)
    return Lesson(asked, ((render(random_committee(rng, profiles)), True),))


def prompts(
    texts: Sequence[str], profiles: Sequence[Profile], prompt: PromptSettings, max_steps: int
) -> list[str]:
    """What the policy is asked for each question."""
    situations = (Situation(Question(text=text), tuple(profiles), max_steps=max_steps) for text in texts)
    return [build_prompt(situation, prompt)[0].content for situation in situations]


def random_committee(rng: Random, profiles: Sequence[Profile]) -> Workflow:
    """One worker alone, or up to five answers and a vote; half of the time all answers are one worker's."""
    workers = [i for i, profile in enumerate(profiles) if profile.name != VOTE]
    can_vote = len(workers) < len(profiles)
    (size,) = rng.choices(range(1, len(_SIZES) + 1), _SIZES) if can_vote else (1,)
    alike = rng.random() < 0.5
    members = [rng.choice(workers)] * size if alike else sorted(rng.choices(workers, k=size))
    steps = tuple(Step(worker, WHOLE) for worker in members)
    return Workflow(steps if size == 1 else (*steps, voting_step(profiles)))
