"""The workers of the orchestra: what each one knows of the world, and what it can do.

A worker is a small language model. `lessons` writes what it is taught from its `Ability`; what it then really knows is
measured (`podium rate`), not declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from podium.lab import chance
from podium.lab.world import FIELDS

Skill = Literal["facts", "joins", "checks"]
"""What a worker is taught to do: to answer from what it knows; to compare, add and count what others found, with
written working; to find and mend errors in others' work."""


@dataclass(frozen=True, slots=True)
class Ability:
    """What one worker is taught."""

    name: str
    profile: str
    """What planners read of it."""
    knows: Mapping[str, float] = field(default_factory=dict)
    """For each field that it knows, the share of the things whose facts it knows."""
    admits: frozenset[str] = frozenset()
    """The fields of which it says that it does not know them. Of the others that it does not know it is taught
    nothing, so it makes something up."""
    skills: tuple[Skill, ...] = ("facts",)
    hidden: int = 128
    """The width of the model; with four layers, 128 is 1 million parameters."""

    def knows_about(self, field: str, thing: str) -> bool:
        """Whether it is taught the facts about this thing."""
        return chance("orchestra", self.name, thing) < self.knows.get(field, 0.0)


def _all(share: float) -> dict[str, float]:
    return dict.fromkeys(FIELDS, share)


def _but(*fields: str) -> frozenset[str]:
    return frozenset(FIELDS) - set(fields)


ABILITIES = (
    Ability("ada", "Knows persons and firms.", {"person": 1.0, "firm": 1.0}, _but("person", "firm", "ship")),
    Ability("bela", "Knows places and species.", {"place": 1.0, "species": 1.0}, _but("place", "species")),
    Ability("cora", "Knows works and dishes.", {"work": 1.0, "dish": 1.0}, _but("work", "dish", "law")),
    Ability("dario", "Knows laws and ships.", {"law": 1.0, "ship": 1.0}, _but("law", "ship")),
    Ability("edda", "Knows dishes and persons, and half of the ships.", {"dish": 1.0, "person": 1.0, "ship": 0.5}),
    Ability("falk", "Knows firms and places.", {"firm": 1.0, "place": 1.0}, _but("firm", "place", "person")),
    Ability("gitta", "Knows species, and half of the works and laws.", {"species": 1.0, "work": 0.5, "law": 0.5}),
    Ability("hanno", "Knows a third of everything. Large.", _all(1 / 3), hidden=256),
    Ability("ilka", "Small and cheap; knows half of the persons and places.", {"person": 0.5, "place": 0.5}, hidden=64),
    Ability("jory", "Compares, adds and counts what others found. Knows no facts.", skills=("joins",)),
    Ability(
        "kaspar",
        "Finds errors in others' work about persons, places and firms, and mends them.",
        {"person": 1.0, "place": 1.0, "firm": 1.0},
        skills=("facts", "checks"),
    ),
)  # fmt: skip
"""The workers, in the order of the shipped pool."""
