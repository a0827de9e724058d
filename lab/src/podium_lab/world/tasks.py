"""The task set `world`: questions of 1 to 6 hops over the facts of a made-up encyclopedia (`podium_lab.world`).

The same (split, seed, index) always gives the same question. Splits are disjoint by construction: the key of a problem,
which ignores its wording and its hint, decides its split. Some compositions of relations, and the wordings in clauses,
are kept for the test split.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from podium.plugin_api.tasks import GeneratedTasks, Task
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Split, named_uniform
from podium.types import Question
from podium_lab.world import (
    FIELDS,
    RELATIONS,
    Path,
    Problem,
    Relation,
    World,
    relations_of,
    word_question,
    world,
)
from podium_lab.world.problem import Join
from podium_lab.world.schema import NUMBER, YEAR

HOP_SHARES = (0.2, 0.25, 0.2, 0.15, 0.12, 0.08)
"""Shares of questions with 1 to 6 hops."""
HINT_SHARE = 0.15
"""Share of questions with a planted wrong hint."""
_KEPT_WORDINGS = 0.25
"""Share of test questions in a wording that no other split has."""
_KEPT_COMPOSITIONS = 0.15
_EXACT = Exact()
_JOINS: dict[int, tuple[Join, ...]] = {
    2: ("pair",),
    3: ("earlier", "larger", "sum", "difference"),
    4: ("pair", "count", "earlier", "sum"),
    5: ("earlier", "larger", "sum", "difference"),
    6: ("pair", "count", "earlier", "sum"),
}
"""The joins that a question of so many hops may have."""


def kept_for_test(composition: tuple[str, str]) -> bool:
    """Whether this pair of relations, one followed by the other, stands in test questions alone."""
    return named_uniform("world", "kept composition", *composition) < _KEPT_COMPOSITIONS


def split_of(problem: Problem) -> Split:
    """The split that `problem` belongs to."""
    if any(map(kept_for_test, problem.compositions)):
        return "test"
    draw = named_uniform("world", "split", problem.key)
    return "train" if draw < 0.8 else "validation" if draw < 0.9 else "test"


@dataclass(frozen=True)
class WorldTasks(GeneratedTasks):
    """Questions about the world of one split, in a fixed order."""

    set_name = "world"
    hop_shares: tuple[float, ...] = HOP_SHARES
    """Shares of questions with 1, 2, ... hops."""

    def __post_init__(self) -> None:
        if not (all(share >= 0 for share in self.hop_shares) and sum(self.hop_shares) > 0):
            raise ValueError(f"hop_shares {self.hop_shares}: give shares from 0, one of them above 0")

    def draw(self, rng: Random, index: int) -> Task:
        """Draw the task of this index. All randomness comes from `rng`."""
        (hops,) = rng.choices(range(1, len(self.hop_shares) + 1), self.hop_shares)
        facts = world()
        problem = draw_problem(rng, hops, facts, split=self.split)
        kept_wording = self.split == "test" and rng.random() < _KEPT_WORDINGS
        return Task(
            id=f"{self.name}/{self.seed}/{index}",
            question=Question(text=word_question(problem, rng, held_out=kept_wording)),
            gold=problem.answer(facts),
            grader=_EXACT,
            facts={
                "hops": hops,
                "skills": problem.fields,
                "join": problem.join,
                "hint": int(problem.hint is not None),
                "kept_wording": int(kept_wording),
                "held_out": int(any(map(kept_for_test, problem.compositions))),
            },
        )


def draw_problem(rng: Random, hops: int, facts: World, *, split: Split | None = None) -> Problem:
    """A problem with this many hops, of one split or of any."""
    while True:
        problem = _draw(rng, hops, facts)
        try:
            problem.answer(facts)
        except ValueError:
            continue  # Neither of two equal values is the larger one.
        if split in (None, split_of(problem)):
            return problem


def _draw(rng: Random, hops: int, facts: World) -> Problem:
    joins = _JOINS.get(hops, ())
    if not joins or rng.random() < 0.5:
        path = _path(rng, hops, facts)
        hint = draw_hint(rng, path, facts) if rng.random() < HINT_SHARE else None
        return Problem((path,), hint=hint)
    join = rng.choice(joins)
    if join == "pair":
        return Problem((_path(rng, hops // 2, facts), _path(rng, hops - hops // 2, facts)), join)
    if join == "count":
        return _count(rng, hops - 1, facts)
    gives = YEAR if join in ("earlier", "difference") else NUMBER
    last = rng.choice([r for r in RELATIONS.values() if r.gives == gives])
    first = (hops - 1) // 2
    return Problem(tuple(path_to(rng, last, length, facts) for length in (first, hops - 1 - first)), join)


def _path(rng: Random, length: int, facts: World) -> Path:
    """A path whose relations all but the last lead to a thing."""
    field = rng.choice(FIELDS)
    thing = rng.choice(facts.things[field])
    relations: list[str] = []
    for position in range(length):
        is_last = position == length - 1
        relation = rng.choice(relations_of(field) if is_last else relations_of(field, *FIELDS))
        relations.append(relation.name)
        field = relation.gives
    return Path(thing, tuple(relations))


def path_to(rng: Random, last: Relation, length: int, facts: World) -> Path:
    """A path of this length that ends with the relation `last`."""
    relations = [last]
    while len(relations) < length:
        before = [r for r in RELATIONS.values() if r.gives == relations[0].field]
        if not before:
            return path_to(rng, last, 1, facts)
        relations.insert(0, rng.choice(before))
    return Path(rng.choice(facts.things[relations[0].field]), tuple(r.name for r in relations))


def _count(rng: Random, paths: int, facts: World) -> Problem:
    """How many of `paths` things have a value that one of them has for certain."""
    last = rng.choice([r for r in RELATIONS.values() if r.gives not in (*FIELDS, YEAR, NUMBER)])
    things = rng.sample(facts.things[last.field], paths)
    counted_paths = [Path(thing, (last.name,)) for thing in things]
    return Problem(tuple(counted_paths), "count", counted=facts.value(last.name, rng.choice(things)))


def draw_hint(rng: Random, path: Path, facts: World) -> tuple[str, str, str]:
    """A wrong value for one relation on the path, as `Problem.hint` has it."""
    steps = list(zip(path.relations, (path.thing, *path.values(facts)), strict=False))
    relation, thing = rng.choice(steps)
    right = facts.value(relation, thing)
    others = sorted(set(facts.values[relation].values()) - {right})
    return relation, thing, rng.choice(others)
