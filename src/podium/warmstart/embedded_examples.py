"""SFT examples about embedded questions: texts, with the parts that count in the loss marked.

There are four kinds. A *plan* is the policy's own prompt, then a thought, then a random plan
(`draw_coherent_workflow`); the thought names for each part of the question the skill that it needs and a worker that
claims the skill. A *lookup* asks repeatedly for the number of a worker's name or of a skill. A *team* has the same
thought, then the list of the numbers that it named, and no plan. A *reading* copies the parts of a question and names
their skills. All questions come from the train split.

Teams are either one fixed pool or synthetic, a new one in each example. A policy that sees only one team memorises
which number is which worker; a policy that sees many has to read the profiles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from pydantic import AliasChoices, Field, PositiveFloat

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
class ExampleTeam:
    """A pool as a prompt shows it, and the skills that its profiles claim."""

    profiles: tuple[Profile, ...]
    strengths: tuple[frozenset[str], ...]
    """For each member, the skills that its profile claims."""

    def fit(self, skill: str) -> tuple[int, ...]:
        """Members whose profile claims `skill`. If there are none: generalists. If there are no generalists: ()."""
        strong = tuple(i for i, skills in enumerate(self.strengths) if skill in skills)
        return strong or tuple(i for i, p in enumerate(self.profiles) if p.description == GENERALIST)


def team_of(profiles: Sequence[Profile]) -> ExampleTeam:
    """Make a team of a pool. A profile claims the skills that its description names."""
    claimed = (frozenset(re.findall(r"\w+", profile.description)) & set(SKILLS) for profile in profiles)
    return ExampleTeam(tuple(profiles), tuple(claimed))


def draw_team(rng: Random) -> ExampleTeam:
    """Draw a synthetic team of three to eight members: specialists in one to three skills, generalists, the vote."""
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
    return ExampleTeam(tuple(profiles), tuple(strengths))


@dataclass(frozen=True, slots=True)
class TeamSource:
    """Draws the team of each example."""

    known: ExampleTeam | None = None
    """The team of the other examples; None: all teams are synthetic."""
    synthetic_teams: float = 1.0
    """Share of the examples with a synthetic team."""

    def draw(self, rng: Random) -> ExampleTeam:
        """The team of one example."""
        if self.known is None or rng.random() < self.synthetic_teams:
            return draw_team(rng)
        return self.known


SYNTHETIC_TEAMS = TeamSource()
"""A new synthetic team for every example."""


PROMPT = PromptSettings(style="brief", pool="described", examples=0)
ONLY = "Only this: {}"
"""A subtask that quotes one part of the question."""
_HOP_SHARES = (0.25, 0.25, 0.25, 0.25)
_QUERIES = 14
"""Numbers that one lookup example queries."""
_NEEDS = "needs "
_GENERAL = (WHOLE, WHOLE, NEXT, NEXT, FINISH, CHECK, COMPARE)
"""Subtasks that name no part. Those with which a plan can begin stand here twice."""


@dataclass(frozen=True, slots=True)
class SFTExample:
    """One training text: a prompt and the pieces that follow it."""

    prompt: str
    pieces: tuple[tuple[str, bool], ...]
    """Each piece, and whether its tokens count in the loss."""


class Shares(Settings):
    """How often each kind of example is drawn, and how its plans are made.

    `plan`, `team`, `reading` and `lookup` are weights: only their ratios count.
    """

    plan: float = Field(default=0.5, ge=0)
    team: float = Field(default=0.15, ge=0)
    """Of embedded questions only."""
    reading: float = Field(default=0.2, ge=0)
    lookup: float = Field(default=0.15, ge=0)
    """Of embedded questions only."""
    level_sweep: float = Field(default=0.15, ge=0)
    """Share of the plans chosen by verdicts that are replaced by a level sweep: one question at every level of cost
    sensitivity, with thoughts and without plans. Of recordings only."""
    from_verdicts: float = Field(
        default=0.0, ge=0, le=1, validation_alias=AliasChoices("from_verdicts", "taught")
    )
    """Share of the plans that are chosen by the verdicts on training questions (`committee_value`); the others are
    random. Of recordings only."""
    relevant: float = Field(default=0.0, ge=0, le=1)
    """Share of the steps whose worker claims a skill that some part of the question needs. The other steps get a random
    worker."""
    steps: tuple[PositiveFloat, ...] = Field(default=(0.22, 0.28, 0.22, 0.16, 0.12), min_length=1)
    """Weights of plans with one step, with two steps and so on."""
    fitting: float = Field(default=0.0, ge=0, le=1)
    """Share of the plans that have as many steps as the question has parts. `steps` draws the length of the others."""


def draw_embedded_example(
    name: str, index: int, teams: TeamSource = SYNTHETIC_TEAMS, shares: Shares = Shares()
) -> SFTExample:
    """Draw one example. The same arguments always give the same example.

    Args:
        name: names a sequence of examples; another name gives other examples.
        index: the example's place in that sequence.
    """
    rng = Random(f"lesson/{name}/{index}")
    plan = partial(_plan, shares=shares)
    (draw,) = rng.choices(
        (plan, _lookup, _team, _reading), (shares.plan, shares.lookup, shares.team, shares.reading)
    )
    return draw(rng, teams.draw(rng))


def draw_question(rng: Random) -> tuple[Question, Problem]:
    """Draw a question of the train split. Returns it with its parts."""
    tasks = EmbeddedTasks("train", size=10**9, seed=1, hop_shares=_HOP_SHARES)
    question = tasks[rng.randrange(10**9)].question
    problem = read_problem(question.text)
    assert problem is not None, question.text
    return question, problem


def skill_thought(problem: Problem, team: ExampleTeam, rng: Random) -> str:
    """Name for each part the skill that it needs and a worker that claims it: "needs dates 3, sums 0"."""
    return _needs(problem, _claimants(problem, team, rng))


def read_thought(text: str) -> list[tuple[str, str]]:
    """Parse a completion's thought into skills, each with a number or "none". The inverse of `skill_thought`."""
    named = re.split("[;\n]", text)[0].removeprefix(_NEEDS)
    return [(skill, number) for skill, _, number in (part.rpartition(" ") for part in named.split(", "))]


def _claimants(problem: Problem, team: ExampleTeam, rng: Random) -> list[str]:
    """For each part, the number of a worker that claims its skill, or "none"."""
    return [f"{rng.choice(fit)}" if (fit := team.fit(skill)) else "none" for skill in problem.skills]


def _needs(problem: Problem, claimants: Sequence[str]) -> str:
    pairs = zip(problem.skills, claimants, strict=True)
    return _NEEDS + ", ".join(f"{skill} {number}" for skill, number in pairs)


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


def _plan(rng: Random, team: ExampleTeam, shares: Shares) -> SFTExample:
    question, problem = draw_question(rng)
    max_steps = rng.choice((5, 5, 5, rng.randint(1, 4)))
    (message,) = build_prompt(PlanRequest(question, team.profiles, max_steps=max_steps), PROMPT)
    workflow = draw_coherent_workflow(rng, problem, team, max_steps=max_steps, shares=shares)
    text = f"{skill_thought(problem, team, rng)}; steps {len(workflow.steps)}\n{render(workflow)}"
    return SFTExample(message.content, ((text, True),))


def _team(rng: Random, team: ExampleTeam) -> SFTExample:
    question, problem = draw_question(rng)
    (message,) = build_prompt(PlanRequest(question, team.profiles), PROMPT)
    numbers = _claimants(problem, team, rng)
    # A list of numbers cannot say "none", so a random worker stands for a part that no worker fits.
    listed = [number if number.isdecimal() else str(rng.randrange(len(team.profiles))) for number in numbers]
    prompt = message.content.removesuffix("Plan:\n") + "Team:\n"
    return SFTExample(prompt, ((f"{_needs(problem, numbers)}\nmodel_id = [{', '.join(listed)}]", True),))


def query_prompt(team: ExampleTeam) -> str:
    """The beginning of a lookup example."""
    listed = "\n".join(f"{i}: {p.name}: {p.description}" for i, p in enumerate(team.profiles))
    return f"Models:\n{listed}\nNumbers:\n"


def query_line(key: str) -> str:
    """A line of a lookup up to the number that the policy completes; `key` is a worker's name or a skill."""
    return f"- {key} "


def _lookup(rng: Random, team: ExampleTeam) -> SFTExample:
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
    """The prompt of a reading."""
    return f"Question: {question.text}\nParts:\n"


def reading_text(problem: Problem) -> str:
    """The completion of a reading: a numbered line for each part, with the part's skill."""
    return "\n".join(f"{i}: {hop.clause} = {hop.operation.skill}" for i, hop in enumerate(problem.hops, 1))


def _reading(rng: Random, team: ExampleTeam) -> SFTExample:
    question, problem = draw_question(rng)
    return SFTExample(reading_prompt(question), ((reading_text(problem), True),))
