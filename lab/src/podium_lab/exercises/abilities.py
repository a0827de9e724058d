"""The workers of the orchestra: what each one knows of the world, and what it can do.

A worker is a small language model. `lessons` writes what it is taught from its `Ability`; what it then really knows is
measured (`podium rate`), not declared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from podium.tasks.task import named_uniform
from podium_lab.world import FIELDS

Skill = Literal["facts", "joins", "checks"]
"""What a worker is taught to do: to answer from what it knows; to compare, add and count what others found, with
written working; to find and mend errors in others' work."""


PLURALS: Mapping[str, str] = MappingProxyType(
    {field: {"species": "species", "dish": "dishes"}.get(field, f"{field}s") for field in FIELDS}
)
"""The word for the things of each field in profiles."""
JOINS: Final = "joins"
SHARES = {1.0: "", 1 / 2: "half of the ", 1 / 3: "a third of the "}
"""Shares of a field that a worker may know, and how its profile says so."""
_WIDTHS = {64: " Small.", 128: "", 256: " Large."}


@dataclass(frozen=True, slots=True)
class Ability:
    """What one worker is taught."""

    name: str
    knows: Mapping[str, float] = field(default_factory=dict)
    """The share of the things whose facts it knows, by field; a field that is missing has none."""
    admits: frozenset[str] = frozenset()
    """The fields of which it says that it does not know them. Of the others that it does not know it is taught
    nothing, so it makes something up."""
    skills: tuple[Skill, ...] = ("facts",)
    hidden: int = 128
    """The width of the model; with four layers, 128 is 1 million parameters."""
    steps_multiplier: int = 1
    """How many times as many steps as the others it is trained."""

    def knows_about(self, field: str, thing: str) -> bool:
        """Whether it is taught the facts about this thing."""
        return named_uniform("orchestra", self.name, thing) < self.knows.get(field, 0.0)

    @property
    def profile(self) -> str:
        """What planners read of it."""
        sentences = []
        if known := [
            f"{SHARES[share]}{_enumerated([PLURALS[field] for field, s in self.knows.items() if s == share])}"
            for share in sorted(set(self.knows.values()), reverse=True)
        ]:
            sentences.append(f"Knows {', and '.join(known)}.")
        if set(self.knows.values()) == {1 / 3} and len(self.knows) == len(FIELDS):
            sentences = ["Knows a third of everything."]
        if JOINS in self.skills:
            sentences.append("Compares, adds and counts what others found.")
        if "checks" in self.skills:
            sentences.append("Mends errors in others' work.")
        return " ".join(sentences) + _WIDTHS[self.hidden]

    @property
    def claims(self) -> dict[str, float]:
        """How much of each of `podium_lab.exercises.cases.SKILLS` the profile claims."""
        known = {PLURALS[field]: share for field, share in self.knows.items()}
        return known | ({JOINS: 1.0} if JOINS in self.skills else {})


def _enumerated(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _all_fields(share: float) -> dict[str, float]:
    return dict.fromkeys(FIELDS, share)


def _all_but(*fields: str) -> frozenset[str]:
    return frozenset(FIELDS) - set(fields)


ABILITIES = (
    Ability("ada", {"person": 1.0, "firm": 1.0}, _all_but("person", "firm", "ship")),
    Ability("bela", {"place": 1.0, "species": 1.0}, _all_but("place", "species")),
    Ability("cora", {"work": 1.0, "dish": 1.0}, _all_but("work", "dish", "law"), steps_multiplier=2),
    Ability("dario", {"law": 1.0, "ship": 1.0}, _all_but("law", "ship"), steps_multiplier=2),
    Ability("edda", {"dish": 1.0, "person": 1.0, "ship": 0.5}),
    Ability("falk", {"firm": 1.0, "place": 1.0}, _all_but("firm", "place", "person")),
    Ability("gitta", {"species": 1.0, "work": 0.5, "law": 0.5}),
    Ability("hanno", _all_fields(1 / 3), hidden=256),
    Ability("ilka", {"person": 0.5, "place": 0.5}, hidden=64),
    Ability("jory", skills=("joins",), steps_multiplier=3),
    Ability("kaspar", {"person": 1.0, "place": 1.0}, skills=("facts", "checks")),
)
"""The workers, in the order of the shipped pool."""
