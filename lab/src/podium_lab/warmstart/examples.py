"""SFT examples for a policy that leads a team: texts, with the parts that count in the loss marked.

There are four kinds. A *plan* is the policy's own prompt, then a thought, then a random plan; the thought names for
each part of the question the skill that it needs and a worker that claims the skill. A *lookup* asks repeatedly for the
number of a worker's name or of a skill. A *team* has the same thought, then the list of the numbers that it named, and
no plan. A *reading* copies the parts of a question and names their skills.

A `Laboratory` says what the questions, parts, skills and teams are: `podium_lab.small_workers` has one. All questions
come from the train split.

Teams are either one fixed pool or synthetic, a new one in each example. A policy that sees only one team memorises
which number is which worker; a policy that sees many has to read the profiles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, Protocol, TypeVar

from pydantic import Field, PositiveFloat

from podium.conductor.checkpoint import TrainingScope
from podium.conductor.prompt import PromptSettings, build_prompt
from podium.config import Settings
from podium.planner import PlanRequest
from podium.types import Profile, Question
from podium.workflow import Acceptance, Workflow, render

PROMPT = PromptSettings(style="brief", pool="described", examples=0)
_QUERIES_PER_LOOKUP = 14
"""Numbers that one lookup example queries."""
_NEEDS = "needs "


@dataclass(frozen=True, slots=True)
class ExampleTeam:
    """A pool as a prompt shows it, and what its profiles claim."""

    profiles: tuple[Profile, ...]
    claims: tuple[Mapping[str, float], ...]
    """How much of each skill the profile of each member claims. 1: all of it; a skill that is missing: nothing."""

    def fit(self, skill: str) -> tuple[int, ...]:
        """The members who claim the most of `skill`; () if no member claims it."""
        most = max((claims.get(skill, 0.0) for claims in self.claims), default=0.0)
        return tuple(i for i, claims in enumerate(self.claims) if most and claims.get(skill, 0.0) == most)


@dataclass(frozen=True, slots=True)
class TeamSource:
    """Draws the team of each example."""

    synthetic: Callable[[Random], ExampleTeam]
    """Draws a synthetic team."""
    known: ExampleTeam | None = None
    """The team of the other examples. None if all teams are synthetic."""
    synthetic_teams: float = 1.0
    """Share of the examples with a synthetic team."""

    def draw(self, rng: Random) -> ExampleTeam:
        """The team of one example."""
        if self.known is None or rng.random() < self.synthetic_teams:
            return self.synthetic(rng)
        return self.known


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
    """The weight of examples that list a team (see above), which only a laboratory's questions have."""
    reading: float = Field(default=0.2, ge=0)
    lookup: float = Field(default=0.15, ge=0)
    """The weight of lookups (see above), which only a laboratory's questions have."""
    relevant: float = Field(default=0.0, ge=0, le=1)
    """Share of the steps whose worker claims a skill that some part of the question needs. The other steps get a random
    worker."""
    steps: tuple[PositiveFloat, ...] = Field(default=(0.22, 0.28, 0.22, 0.16, 0.12), min_length=1)
    """Weights of plans with one step, with two steps and so on."""
    fitting: float = Field(default=0.0, ge=0, le=1)
    """Share of the plans that have as many steps as the question has parts. `steps` draws the length of the others."""
    saving: float = Field(default=0.0, ge=0, le=1)
    """Share of those plans that have a step fewer for each level of cost sensitivity. A plan that is too short for the
    question's parts then asks the whole question. Above 0, the thought of a plan also repeats the level and names
    the last step. Of the made-up world only."""
    whole: float = Field(default=0.15, ge=0, le=1)
    """Share of the plans that ask the whole question in every step. Plans with too few steps for the question's parts
    do so too. Of the made-up world only."""
    unfinished: float = Field(default=0.0, ge=0, le=1)
    """Share of the plans that are about a chain with more relations than a plan has steps, in one of its rounds: a plan
    stops where its steps end, and the next round goes on from its answer. Of the made-up world only."""


class Parts(Protocol):
    """A question without its words."""

    @property
    def skills(self) -> Sequence[str]:
        """The skill of each part, in order."""
        ...


P = TypeVar("P", bound=Parts)


@dataclass(frozen=True, slots=True)
class PlanCase(Generic[P]):
    """A request, and the decision that an example shows for it."""

    request: PlanRequest
    problem: P
    """The parts of the question that are still to be answered."""
    decision: Workflow | Acceptance
    thought: str
    """The line that stands before the decision."""
    prompt: PromptSettings = PROMPT


class Laboratory(Protocol[P]):
    """Questions whose parts are known, and the teams that answer them."""

    @property
    def skills(self) -> Sequence[str]:
        """All skills."""
        ...

    @property
    def prompt(self) -> PromptSettings:
        """How policies over such questions are prompted."""
        ...

    @property
    def scope(self) -> TrainingScope:
        """What a policy over such questions can conduct."""
        ...

    @property
    def spelled(self) -> Collection[str]:
        """Words, in small letters, that the tokenizer spells in pieces. A small model copies a rare name faster in
        pieces that many names share than as one token that it seldom sees."""
        ...

    def draw_team(self, rng: Random) -> ExampleTeam:
        """A synthetic team."""
        ...

    def draw_question(self, rng: Random) -> tuple[Question, P]:
        """A question of the train split, and its parts."""
        ...

    def unseen_question(self, seed: int, index: int) -> tuple[Question, P]:
        """A question of the validation split, and its parts."""
        ...

    def draw_plan(self, rng: Random, team: ExampleTeam, shares: Shares) -> PlanCase[P]:
        """A question and a valid plan that is not chosen to be good."""
        ...

    def reading_text(self, problem: P) -> str:
        """The parts as the completion of a reading: a line for each, which ends with " = " and the part's skill."""
        ...


def draw_example(
    laboratory: Laboratory[P], name: str, index: int, *, teams: TeamSource, shares: Shares = Shares()
) -> SFTExample:
    """Draw one example. The same arguments always give the same example.

    Args:
        name: names a sequence of examples; another name gives other examples.
        index: the example's index in that sequence.
    """
    rng = Random(f"lesson/{name}/{index}")
    (draw,) = rng.choices(
        (_plan, _lookup, _team, _reading), (shares.plan, shares.lookup, shares.team, shares.reading)
    )
    return draw(laboratory, rng, teams.draw(rng), shares)


def skill_thought(parts: Sequence[str], numbers: Sequence[str], gap: str = " ") -> str:
    """Name for each part the skill that it needs and a worker: "needs dates 3, sums 0".

    Args:
        parts: what each part is called; the last word is its skill.
        gap: what stands between a part and its number.
    """
    return _NEEDS + ", ".join(f"{part}{gap}{number}" for part, number in zip(parts, numbers, strict=True))


def read_thought(text: str) -> list[tuple[str, str]]:
    """Parse what `skill_thought` writes: the skill of each part, the last of its words, with a number or "none"."""
    named = re.split("[;\n]", text)[0].removeprefix(_NEEDS)
    matches = (re.search(r"(\w*?) ?(\d+|none)$", part) for part in named.split(", "))
    return [(match[1], match[2]) if match else ("", "") for match in matches]


def claimants(problem: Parts, team: ExampleTeam, rng: Random) -> list[str]:
    """The number of a worker that claims the skill of each part, or "none"."""
    return [f"{rng.choice(fit)}" if (fit := team.fit(skill)) else "none" for skill in problem.skills]


def _plan(laboratory: Laboratory[P], rng: Random, team: ExampleTeam, shares: Shares) -> SFTExample:
    case = laboratory.draw_plan(rng, team, shares)
    (message,) = build_prompt(case.request, case.prompt)
    return SFTExample(message.content, ((f"{case.thought}\n{render(case.decision)}", True),))


def _team(laboratory: Laboratory[P], rng: Random, team: ExampleTeam, shares: Shares) -> SFTExample:
    question, problem = laboratory.draw_question(rng)
    (message,) = build_prompt(PlanRequest(question, team.profiles), laboratory.prompt)
    numbers = claimants(problem, team, rng)
    # A list of numbers cannot say "none", so a random worker stands for a part that no worker fits.
    listed = [number if number.isdecimal() else str(rng.randrange(len(team.profiles))) for number in numbers]
    prompt = message.content.removesuffix("Plan:\n") + "Team:\n"
    return SFTExample(
        prompt, ((f"{skill_thought(problem.skills, numbers)}\nmodel_id = [{', '.join(listed)}]", True),)
    )


def query_prompt(team: ExampleTeam) -> str:
    """The beginning of a lookup example."""
    listed = "\n".join(f"{i}: {p.name}: {p.description}" for i, p in enumerate(team.profiles))
    return f"Models:\n{listed}\nNumbers:\n"


def query_line(key: str) -> str:
    """A line of a lookup up to the number that the policy completes; `key` is a worker's name or a skill."""
    return f"- {key} "


def _lookup(laboratory: Laboratory[P], rng: Random, team: ExampleTeam, shares: Shares) -> SFTExample:
    pieces: list[tuple[str, bool]] = []
    for _ in range(_QUERIES_PER_LOOKUP):
        if rng.random() < 0.4:
            member = rng.randrange(len(team.profiles))
            pieces += [(query_line(team.profiles[member].name), False), (f"{member}", True)]
        else:
            skill = rng.choice(laboratory.skills)
            fit = team.fit(skill)
            pieces += [(query_line(skill), False), (f"{rng.choice(fit)}" if fit else "none", True)]
        pieces.append(("\n", False))
    return SFTExample(query_prompt(team), tuple(pieces))


def reading_prompt(question: Question) -> str:
    """The message that asks for the parts of a question."""
    return f"Question: {question.text}\nParts:\n"


def _reading(laboratory: Laboratory[P], rng: Random, team: ExampleTeam, shares: Shares) -> SFTExample:
    question, problem = laboratory.draw_question(rng)
    return SFTExample(reading_prompt(question), ((laboratory.reading_text(problem), True),))
