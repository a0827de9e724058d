"""A question about the world, without its words: paths of relations, and how their values are joined.

A path begins at a thing and follows relations: the founder of Rado Mill, then that person's birthplace. A problem has
one path, or several whose values are compared, added or counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from podium_lab.world.encyclopedia import World
from podium_lab.world.schema import RELATIONS, Relation

Join = Literal["none", "pair", "earlier", "larger", "sum", "difference", "count"]
"""What is done with the values of the paths.

"none": there is one path, and its value is the answer;
"pair": both values are the answer;
"earlier", "larger": the answer is the thing that has the smaller year, or the larger number;
"sum", "difference": of two numbers, or of two years;
"count": how many of the paths have the value `Problem.counted`.
"""


@dataclass(frozen=True, slots=True)
class Path:
    """Relations that are followed from a thing, the first one first."""

    thing: str
    relations: tuple[str, ...]

    def values(self, world: World) -> tuple[str, ...]:
        """The value of each relation on the way; the last one is the value of the path."""
        values: list[str] = []
        for name in self.relations:
            values.append(world.value(name, values[-1] if values else self.thing))
        return tuple(values)

    @property
    def last(self) -> Relation:
        """The last relation."""
        return RELATIONS[self.relations[-1]]

    @property
    def key(self) -> str:
        """The path in one line."""
        return " > ".join((self.thing, *self.relations))

    def subject(self, world: World) -> str:
        """The thing whose last relation is asked for."""
        return self.values(world)[-2] if len(self.relations) > 1 else self.thing


@dataclass(frozen=True)
class Problem:
    """Paths and their join. `hops` counts relations, and the join as one more."""

    paths: tuple[Path, ...]
    join: Join = "none"
    counted: str = ""
    """The value that is counted, for the join "count"."""
    hint: tuple[str, str, str] | None = None
    """A fact that is wrong, as (relation, thing, value): the question says that somebody claims it."""

    @property
    def hops(self) -> int:
        """The relations that must be looked up, and 1 for a join."""
        return sum(len(path.relations) for path in self.paths) + (self.join not in ("none", "pair"))

    @property
    def fields(self) -> tuple[str, ...]:
        """The field of each relation, in order."""
        return tuple(RELATIONS[name].field for path in self.paths for name in path.relations)

    @property
    def compositions(self) -> tuple[tuple[str, str], ...]:
        """Pairs of relations that follow each other in a path."""
        return tuple(pair for path in self.paths for pair in pairwise(path.relations))

    @property
    def is_typed(self) -> bool:
        """Whether each relation is asked of what the one before gives, so that there may be an answer."""
        return all(RELATIONS[first].gives == RELATIONS[then].field for first, then in self.compositions)

    @cached_property
    def key(self) -> str:
        """The problem without its words and its hint: equal keys are the same problem."""
        paths = [path.key for path in self.paths]
        ordered = paths if self.join in ("none", "pair") else sorted(paths)
        return f"{self.join}: {'; '.join(ordered)}{f' = {self.counted}' if self.counted else ''}"

    def answer(self, world: World) -> str:
        """The right answer. ValueError: two values are equal, so neither is earlier or larger."""
        values = [path.values(world)[-1] for path in self.paths]
        match self.join:
            case "none":
                return values[0]
            case "pair":
                return " and ".join(values)
            case "earlier" | "larger":
                return self._winner([int(value) for value in values], world)
            case "sum":
                return str(sum(map(int, values)))
            case "difference":
                return str(abs(int(values[0]) - int(values[1])))
            case "count":
                return str(values.count(self.counted))

    def _winner(self, values: list[int], world: World) -> str:
        if len(set(values)) < len(values):
            raise ValueError("The values are equal.")
        best = min(values) if self.join == "earlier" else max(values)
        return self.paths[values.index(best)].subject(world)
