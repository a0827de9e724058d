"""The embedded laboratory as SFT examples need it: teams of specialists, questions, and random plans over them.

`examples` makes the examples. Plans are not chosen to be good (`draw_coherent_workflow`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from podium.conductor.checkpoint import EMBEDDED_QUESTIONS
from podium.lab import SKILLS, Problem, read_problem
from podium.planner import PlanRequest
from podium.planners.phrases import ANSWER_WHOLE_QUESTION, CHECK, COMPARE, FINISH, NEXT, PARTS
from podium.rollout.random_pools import NAMES
from podium.tasks.embedded import EmbeddedTasks
from podium.types import Profile, Question
from podium.workflow import Access, Step, Workflow
from podium_lab.warmstart.examples import (
    PROMPT,
    ExampleTeam,
    PlanCase,
    Shares,
    claimants,
    skill_thought,
)

_STRONG = ("strong at {}", "good at {}", "knows {}")
GENERALIST = "fair at everything"
TOOL = Profile(name="vote", description="counts votes")
ONLY = "Only this: {}"
"""A subtask that quotes one part of the question."""
_HOP_SHARES = (0.25, 0.25, 0.25, 0.25)
_GENERAL = (ANSWER_WHOLE_QUESTION, ANSWER_WHOLE_QUESTION, NEXT, NEXT, FINISH, CHECK, COMPARE)
"""Subtasks that name no part. Those with which a plan can begin stand here twice."""
_FAIR = dict.fromkeys(SKILLS, 0.5)
"""What a generalist claims."""


class EmbeddedLaboratory:
    """Embedded questions, whose parts are hops."""

    skills = SKILLS
    prompt = PROMPT
    conducts = EMBEDDED_QUESTIONS
    spelled = ()

    def draw_team(self, rng: Random) -> ExampleTeam:
        """See `draw_team`."""
        return draw_team(rng)

    def draw_question(self, rng: Random) -> tuple[Question, Problem]:
        """See `Laboratory`."""
        return _read(EmbeddedTasks("train", size=10**9, seed=1, hop_shares=_HOP_SHARES), rng.randrange(10**9))

    def unseen_question(self, seed: int, index: int) -> tuple[Question, Problem]:
        """See `Laboratory`."""
        return _read(EmbeddedTasks("validation", size=10**6, seed=seed, hop_shares=_HOP_SHARES), index)

    def draw_plan(self, rng: Random, team: ExampleTeam, shares: Shares) -> PlanCase[Problem]:
        """See `draw_coherent_workflow`."""
        question, problem = self.draw_question(rng)
        max_steps = rng.choice((5, 5, 5, rng.randint(1, 4)))
        workflow = draw_coherent_workflow(rng, problem, team, max_steps=max_steps, shares=shares)
        needs = skill_thought(problem.skills, claimants(problem, team, rng))
        thought = f"{needs}; steps {len(workflow.steps)}"
        return PlanCase(PlanRequest(question, team.profiles, max_steps=max_steps), problem, workflow, thought)

    def reading_text(self, problem: Problem) -> str:
        """See `Laboratory`."""
        return "\n".join(
            f"{i}: {hop.clause} = {hop.operation.skill}" for i, hop in enumerate(problem.hops, 1)
        )


EMBEDDED = EmbeddedLaboratory()


def _read(tasks: EmbeddedTasks, index: int) -> tuple[Question, Problem]:
    question = tasks[index].question
    problem = read_problem(question.text)
    assert problem is not None, question.text
    return question, problem


def team_of(profiles: Sequence[Profile]) -> ExampleTeam:
    """Make a team of a pool. A profile claims the skills that its description names."""
    return ExampleTeam(tuple(profiles), tuple(_claims(profile.description) for profile in profiles))


def _claims(description: str) -> dict[str, float]:
    named = set(re.findall(r"\w+", description))
    return _FAIR if description == GENERALIST else {skill: 1.0 for skill in SKILLS if skill in named}


def draw_team(rng: Random) -> ExampleTeam:
    """Draw a synthetic team of three to eight members: specialists in one to three skills, generalists, the vote."""
    size = rng.randint(3, 8)
    profiles = []
    for name in rng.sample(NAMES, size):
        if rng.random() < 0.12:
            profiles.append(Profile(name=name, description=GENERALIST))
        else:
            skills = rng.sample(SKILLS, rng.choice((1, 2, 2, 2, 3)))
            profiles.append(Profile(name=name, description=rng.choice(_STRONG).format(", ".join(skills))))
    if rng.random() < 0.4:
        profiles[rng.randrange(size)] = TOOL
    return team_of(profiles)


def draw_coherent_workflow(
    rng: Random, problem: Problem, team: ExampleTeam, *, max_steps: int = 5, shares: Shares = Shares()
) -> Workflow:
    """Draw a valid and coherent workflow that is not chosen to be good.

    Number of steps, workers, style of the subtasks and style of the access lists are drawn independently, as `shares`
    says. Subtasks are numbered, because a small model cannot count steps without numbers.
    """
    steps = _steps(rng, problem, max_steps, shares)
    subtasks = [f"{place}. {subtask}" for place, subtask in enumerate(_subtasks(rng, problem, steps), 1)]
    accesses = _accesses(rng, steps)
    return Workflow(
        tuple(
            Step(_worker(rng, problem, team, shares.relevant), *step)
            for step in zip(subtasks, accesses, strict=True)
        )
    )


def _steps(rng: Random, problem: Problem, max_steps: int, shares: Shares) -> int:
    if shares.fitting and rng.random() < shares.fitting:
        return min(len(problem.hops), max_steps)
    weights = shares.steps[:max_steps]
    return rng.choices(range(1, len(weights) + 1), weights)[0]


def _worker(rng: Random, problem: Problem, team: ExampleTeam, relevant: float) -> int:
    if relevant and rng.random() < relevant and (fit := team.fit(rng.choice(problem.skills))):
        return rng.choice(fit)
    return rng.randrange(len(team.profiles))


def _subtasks(rng: Random, problem: Problem, steps: int) -> list[str]:
    """Draw subtasks in one of four styles: mixed, one subtask repeated, parts by number, parts quoted."""
    (manner,) = rng.choices(("mixed", "same", "numbers", "words"), (0.4, 0.15, 0.2, 0.25))
    if manner == "same":
        return [rng.choice(_GENERAL)] * steps
    if manner == "numbers":
        return [*PARTS, rng.choice(_GENERAL)][:steps]
    if manner == "words":
        places = sorted(rng.choices(range(len(problem.hops)), k=steps))
        return [ONLY.format(problem.hops[place].clause) for place in places]
    return [_subtask(rng, problem) for _ in range(steps)]


def _subtask(rng: Random, problem: Problem) -> str:
    (kind,) = rng.choices(("clause", "part", "said"), (0.35, 0.25, 0.4))
    if kind == "clause":
        return ONLY.format(rng.choice(problem.hops).clause)
    return rng.choice(PARTS if kind == "part" else _GENERAL)


def _accesses(rng: Random, steps: int) -> list[Access]:
    """Draw access lists in one of four styles: each step sees all earlier ones, none, the one before, or mixed."""
    (manner,) = rng.choices(("all", "none", "last", "mixed"), (0.5, 0.15, 0.1, 0.25))
    later = range(1, steps)
    if manner == "all":
        return [Access(), *(Access(all=True) for _ in later)]
    if manner == "none":
        return [Access()] * steps
    if manner == "last":
        return [Access(), *(Access(steps=(place - 1,)) for place in later)]
    return [Access(), *(_access(rng, place) for place in later)]


def _access(rng: Random, position: int) -> Access:
    (kind,) = rng.choices(("none", "all", "some"), (0.3, 0.4, 0.3))
    if kind == "some":
        return Access(steps=tuple(sorted(rng.sample(range(position), rng.randint(1, position)))))
    return Access(all=kind == "all")
