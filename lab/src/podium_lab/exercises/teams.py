"""Teams as SFT examples show them, how often each kind of example is drawn, and the thoughts that name workers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Self

from pydantic import Field, PositiveFloat, model_validator

from podium.config import Settings
from podium.types import Profile

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


class Shares(Settings):
    """How often each kind of example is drawn, and how its plans are made.

    `plan`, `team`, `reading` and `lookup` are weights: only their ratios count.
    """

    plan: float = Field(default=0.5, ge=0)
    team: float = Field(default=0.15, ge=0)
    """The weight of examples that list a team, as `examples` says."""
    reading: float = Field(default=0.2, ge=0)
    lookup: float = Field(default=0.15, ge=0)
    """The weight of lookups, as `examples` says."""
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
    the last step."""
    whole: float = Field(default=0.15, ge=0, le=1)
    """Share of the plans that ask the whole question in every step. Plans with too few steps for the question's parts
    do so too."""
    unfinished: float = Field(default=0.0, ge=0, le=1)
    """Share of the plans that are about a chain with more relations than a plan has steps, in one of its rounds: a plan
    stops where its steps end, and the next round goes on from its answer."""

    @model_validator(mode="after")
    def _draws_some_kind(self) -> Self:
        if not self.plan + self.team + self.reading + self.lookup:
            raise ValueError("plan, team, reading and lookup are all 0; give one of them a weight")
        return self


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


def claimants(skills: Sequence[str], team: ExampleTeam, rng: Random) -> list[str]:
    """The number of a worker that claims each skill, or "none"."""
    return [f"{rng.choice(fit)}" if (fit := team.fit(skill)) else "none" for skill in skills]
