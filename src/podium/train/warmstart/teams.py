"""Teams for lessons: a pool that is known, and made-up ones that change from lesson to lesson.

A policy that always sees one team learns its numbers by heart; one that sees many must read the profiles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from podium.operations import SKILLS
from podium.types import Profile

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
