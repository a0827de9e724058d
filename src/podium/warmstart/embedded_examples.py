"""SFT examples about embedded questions: texts, with the parts that the policy learns marked.

Four kinds. A *plan* is the policy's own prompt, a thought that says of each part of the question which skill it
needs and who claims that skill, and then a plan at random (`random_workflow`). A *lookup* asks again and again for the
number of a name or of a skill. A *team* writes the same thought and then, as a list, the numbers that it named: who
goes with which part, and no plan. A *reading* copies out the parts of a question with their skills.
Questions come from the train split alone.

Teams are a pool that is known, and made-up ones that change from example to example: a policy that always sees one team
learns its numbers by heart; one that sees many must read the profiles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from pydantic import Field, PositiveFloat

from podium.baselines.phrases import CHECK, COMPARE, FINISH, NEXT, PARTS, WHOLE
from podium.conductor.prompt import PromptSettings, build_prompt
from podium.config import Settings
from podium.lab import SKILLS, Problem, read_problem
from podium.planner import PlanRequest
from podium.tasks.embedded import EmbeddedTasks
from podium.types import Profile, Question
from podium.workflow import Access, Step, Workflow, render

NAMES = (
    "ada", "bram", "cleo", "dora", "egon", "gus", "hana", "ivo", "jana", "kai", "lena", "milo", "nora", "otto",
    "pia", "quin", "rosa", "sven", "tara", "udo", "vera", "wim", "xena", "yuri", "zoe", "alma", "boris", "celia",
    "dirk", "elsa", "fritz", "greta", "hugo", "iris", "jonas", "karla", "luis", "maja", "nils", "olga", "paul",
    "rita", "simon", "tilda", "ursa", "viktor", "wanda", "yara",
)  # fmt: skip
_STRONG = ("strong at {}", "good at {}", "knows {}")
GENERALIST = "fair at everything"
TOOL = Profile(name="vote", description="counts votes")


@dataclass(frozen=True, slots=True)
class Team:
    """A pool as a prompt shows it, with what its profiles mean."""

    profiles: tuple[Profile, ...]
    strengths: tuple[frozenset[str], ...]
    """For each member the skills that its profile claims."""

    def fit(self, skill: str) -> tuple[int, ...]:
        """Members whose profile claims `skill`; else those who are fair at everything; else nobody."""
        strong = tuple(i for i, skills in enumerate(self.strengths) if skill in skills)
        return strong or tuple(i for i, p in enumerate(self.profiles) if p.description == GENERALIST)


def team_of(profiles: Sequence[Profile]) -> Team:
    """A pool as a team: a profile claims the skills that its description names."""
    claimed = (frozenset(re.findall(r"\w+", profile.description)) & set(SKILLS) for profile in profiles)
    return Team(tuple(profiles), tuple(claimed))


def draw_team(rng: Random) -> Team:
    """Three to eight members in random order, each strong at one to three skills, or a generalist, or the tool."""
    size = rng.randint(3, 8)
    profiles, strengths = [], []
    for name in rng.sample(NAMES, size):
        if rng.random() < 0.12:
            profiles.append(Profile(name=name, description=GENERALIST))
            strengths.append(frozenset[str]())
        else:
            skills = rng.sample(SKILLS, rng.choice((1, 2, 2, 2, 3)))
            profiles.append(Profile(name=name, description=rng.choice(_STRONG).format(", ".join(skills))))
            strengths.append(frozenset(skills))
    if rng.random() < 0.4:
        place = rng.randrange(size)
        profiles[place], strengths[place] = TOOL, frozenset()
    return Team(tuple(profiles), tuple(strengths))


@dataclass(frozen=True, slots=True)
class TeamSource:
    """Where the teams of a course's lessons come from."""

    known: Team | None = None
    made_up: float = 1.0
    """Share of lessons with a team of their own."""

    def draw(self, rng: Random) -> Team:
        """The team of one lesson."""
        if self.known is None or rng.random() < self.made_up:
            return draw_team(rng)
        return self.known


MADE_UP = TeamSource()
"""Ever new teams."""


PROMPT = PromptSettings(style="brief", pool="described", examples=0)
ONLY = "Only this: {}"
"""A part named by its own words."""
_HOP_SHARES = (0.25, 0.25, 0.25, 0.25)
_QUERIES = 14
"""Of a roll."""
_NEEDS = "needs "
_SAID = (WHOLE, WHOLE, NEXT, NEXT, FINISH, CHECK, COMPARE)
"""Subtasks that name no part; twice what a plan can begin with."""


@dataclass(frozen=True, slots=True)
class SFTExample:
    """Pieces of one text, in order."""

    prompt: str
    pieces: tuple[tuple[str, bool], ...]
    """What follows the prompt, and whether it is learned or only read."""


class Shares(Settings):
    """How often each kind of lesson comes, and of what the plans are made."""

    plan: float = Field(default=0.5, ge=0)
    team: float = Field(default=0.15, ge=0)
    reading: float = Field(default=0.2, ge=0)
    roll: float = Field(default=0.15, ge=0)
    """Among taught plans about recordings, the share that is one question at every level of cost, thoughts alone."""
    taught: float = Field(default=0.0, ge=0, le=1)
    """Of plans about recordings, the share that follow the verdicts on training questions (`worth`)."""
    relevant: float = Field(default=0.0, ge=0, le=1)
    """Of the steps of plans, the share that goes to somebody who claims what some part of the question needs,
    whichever; the others go to anybody."""
    steps: tuple[PositiveFloat, ...] = Field(default=(0.22, 0.28, 0.22, 0.16, 0.12), min_length=1)
    """Weights of plans of one step, of two and so on."""
    fitting: float = Field(default=0.0, ge=0, le=1)
    """Of plans, the share that have as many steps as the question has parts, whoever does which; the number of the
    others has nothing to do with the question."""


def draw_example(name: str, index: int, teams: TeamSource = MADE_UP, shares: Shares = Shares()) -> SFTExample:
    """One lesson of an endless course; the same arguments give the same one for ever.

    Args:
        name: of the course: two courses have different lessons.
    """
    rng = Random(f"lesson/{name}/{index}")
    plan = partial(_plan, shares=shares)
    (draw,) = rng.choices(
        (plan, _roll, _team, _reading), (shares.plan, shares.roll, shares.team, shares.reading)
    )
    return draw(rng, teams.draw(rng))


def draw_question(rng: Random) -> tuple[Question, Problem]:
    """A question of the train split with its reading."""
    tasks = EmbeddedTasks("train", size=10**9, seed=1, hop_shares=_HOP_SHARES)
    question = tasks[rng.randrange(10**9)].question
    problem = read_problem(question.text)
    assert problem is not None, question.text
    return question, problem


def thought(problem: Problem, team: Team, rng: Random) -> str:
    """For each part the skill that it needs and one who claims it: "needs dates 3, sums 0"."""
    return _needs(problem, _claimants(problem, team, rng))


def read_thought(text: str) -> list[tuple[str, str]]:
    """What a completion's thought says: skills, each with a number or "none". The inverse of `thought`."""
    named = re.split("[;\n]", text)[0].removeprefix(_NEEDS)
    return [(skill, number) for skill, _, number in (part.rpartition(" ") for part in named.split(", "))]


def _claimants(problem: Problem, team: Team, rng: Random) -> list[str]:
    """For each part the number of one who claims its skill, or "none"."""
    return [f"{rng.choice(fit)}" if (fit := team.fit(skill)) else "none" for skill in problem.skills]


def _needs(problem: Problem, claimants: Sequence[str]) -> str:
    pairs = zip(problem.skills, claimants, strict=True)
    return _NEEDS + ", ".join(f"{skill} {number}" for skill, number in pairs)


def random_workflow(
    rng: Random, problem: Problem, team: Team, *, max_steps: int = 5, shares: Shares = Shares()
) -> Workflow:
    """A valid workflow that is coherent, as a writer's plans are, but not made to be good.

    The number of steps, the workers, the manner of the subtasks and that of the access lists are drawn apart from one
    another; `shares` says how. Subtasks are numbered: a small model cannot count what bears no number.
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


def _worker(rng: Random, problem: Problem, team: Team, relevant: float) -> int:
    if relevant and rng.random() < relevant and (fit := team.fit(rng.choice(problem.skills))):
        return rng.choice(fit)
    return rng.randrange(len(team.profiles))


def _subtasks(rng: Random, problem: Problem, steps: int) -> list[str]:
    """Subtasks in one of four manners: mixed, one said again and again, parts by number, parts by their words."""
    (manner,) = rng.choices(("mixed", "same", "numbers", "words"), (0.4, 0.15, 0.2, 0.25))
    if manner == "same":
        return [rng.choice(_SAID)] * steps
    if manner == "numbers":
        return [*PARTS, rng.choice(_SAID)][:steps]
    if manner == "words":
        places = sorted(rng.choices(range(len(problem.hops)), k=steps))
        return [ONLY.format(problem.hops[place].clause) for place in places]
    return [_subtask(rng, problem) for _ in range(steps)]


def _subtask(rng: Random, problem: Problem) -> str:
    (kind,) = rng.choices(("clause", "part", "said"), (0.35, 0.25, 0.4))
    if kind == "clause":
        return ONLY.format(rng.choice(problem.hops).clause)
    return rng.choice(PARTS if kind == "part" else _SAID)


def _accesses(rng: Random, steps: int) -> list[Access]:
    """Access lists in one of four manners: all see all, nobody sees anything, each sees the one before, mixed."""
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


def _plan(rng: Random, team: Team, shares: Shares) -> SFTExample:
    question, problem = draw_question(rng)
    max_steps = rng.choice((5, 5, 5, rng.randint(1, 4)))
    (message,) = build_prompt(PlanRequest(question, team.profiles, max_steps=max_steps), PROMPT)
    workflow = random_workflow(rng, problem, team, max_steps=max_steps, shares=shares)
    text = f"{thought(problem, team, rng)}; steps {len(workflow.steps)}\n{render(workflow)}"
    return SFTExample(message.content, ((text, True),))


def _team(rng: Random, team: Team) -> SFTExample:
    question, problem = draw_question(rng)
    (message,) = build_prompt(PlanRequest(question, team.profiles), PROMPT)
    numbers = _claimants(problem, team, rng)
    # Who cannot be named is left to chance: a list of numbers has no word for nobody.
    listed = [number if number.isdecimal() else str(rng.randrange(len(team.profiles))) for number in numbers]
    prompt = message.content.removesuffix("Plan:\n") + "Team:\n"
    return SFTExample(prompt, ((f"{_needs(problem, numbers)}\nmodel_id = [{', '.join(listed)}]", True),))


def query_prompt(team: Team) -> str:
    """The head of a roll."""
    listed = "\n".join(f"{i}: {p.name}: {p.description}" for i, p in enumerate(team.profiles))
    return f"Models:\n{listed}\nNumbers:\n"


def query_line(asked: str) -> str:
    """What stands before the number of a name or of a skill."""
    return f"- {asked} "


def _roll(rng: Random, team: Team) -> SFTExample:
    pieces: list[tuple[str, bool]] = []
    for _ in range(_QUERIES):
        if rng.random() < 0.4:
            member = rng.randrange(len(team.profiles))
            pieces += [(query_line(team.profiles[member].name), False), (f"{member}", True)]
        else:
            skill = rng.choice(SKILLS)
            fit = team.fit(skill)
            pieces += [(query_line(skill), False), (f"{rng.choice(fit)}" if fit else "none", True)]
        pieces.append(("\n", False))
    return SFTExample(query_prompt(team), tuple(pieces))


def reading_prompt(question: Question) -> str:
    """The head of a reading."""
    return f"Question: {question.text}\nParts:\n"


def reading_text(problem: Problem) -> str:
    """The parts of a question, a numbered line each, with the skill of each."""
    return "\n".join(f"{i}: {hop.clause} = {hop.operation.skill}" for i, hop in enumerate(problem.hops, 1))


def _reading(rng: Random, team: Team) -> SFTExample:
    question, problem = draw_question(rng)
    return SFTExample(reading_prompt(question), ((reading_text(problem), True),))
