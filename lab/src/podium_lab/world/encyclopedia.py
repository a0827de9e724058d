"""The facts of the world: made-up things with made-up values, drawn by a seed.

The same seed and size always give the same facts. No fact says anything about the real world, so a language model knows
one only if it was taught.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from random import Random
from types import MappingProxyType

from podium_lab.world.schema import FIELDS, NUMBER, RELATIONS, WORDS, YEAR, Relation

THINGS = 150
"""Things of each field."""
_GIVEN = [
    "Ada",
    "Bela",
    "Cora",
    "Dario",
    "Edda",
    "Falk",
    "Gitta",
    "Hanno",
    "Ilka",
    "Jory",
    "Kaspar",
    "Lena",
    "Miro",
    "Nela",
    "Otto",
    "Pia",
    "Quirin",
    "Rosa",
    "Sven",
    "Tilda",
]
_START = [
    "al",
    "bar",
    "cor",
    "del",
    "ern",
    "fal",
    "gor",
    "hal",
    "ist",
    "jor",
    "kal",
    "lun",
    "mar",
    "nor",
    "ost",
    "per",
    "rad",
    "sal",
    "tor",
    "ulm",
    "var",
    "wen",
    "yor",
    "zel",
]
_END = ["a", "en", "ik", "o", "us", "and", "eth", "im", "on", "ur", "ale", "ess", "ing"]
_FORMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "firm": ("Mill", "Works", "Brothers", "Forge", "House"),
        "place": ("ford", "haven", "stead", "mouth", "berg", "field"),
        "species": ("finch", "toad", "moth", "hare", "perch", "crab"),
        "law": ("Act", "Charter", "Decree", "Code"),
        "dish": ("pie", "soup", "stew", "bread", "cake"),
    }
)
_TITLES = [
    "Song",
    "Tale",
    "Book",
    "Dream",
    "Fall",
    "Return",
    "House",
    "Winter",
    "Garden",
    "Road",
    "Voyage",
    "Night",
]
_OF = [
    "Salt",
    "Glass",
    "Crows",
    "Ashes",
    "Lanterns",
    "Bells",
    "Foxes",
    "Rain",
    "Thorns",
    "Mirrors",
    "Pearls",
    "Smoke",
    "Wolves",
    "Honey",
    "Stones",
    "Feathers",
    "Ivy",
    "Embers",
]
_ADJECTIVES = [
    "Grey",
    "Swift",
    "Bold",
    "Silver",
    "Quiet",
    "Proud",
    "Lone",
    "Northern",
    "Crimson",
    "Merry",
    "Iron",
    "Early",
    "Golden",
    "Blue",
]
_BIRDS = [
    "Heron",
    "Gull",
    "Falcon",
    "Swan",
    "Tern",
    "Petrel",
    "Raven",
    "Curlew",
    "Kestrel",
    "Plover",
    "Osprey",
    "Puffin",
]
_YEARS = range(1500, 1990)
_NUMBERS = range(11, 100)


@dataclass(frozen=True)
class World:
    """An encyclopedia.

    Args:
        things: the names of each field's things, in the order of the alphabet.
        values: for each relation's name, the value of each thing.
    """

    things: Mapping[str, tuple[str, ...]]
    values: Mapping[str, Mapping[str, str]]

    def value(self, relation: str, thing: str) -> str:
        """The value of `relation` for `thing`."""
        return self.values[relation][thing]

    def facts(self) -> Iterator[tuple[Relation, str, str]]:
        """(relation, thing, value) of every fact."""
        for relation in RELATIONS.values():
            for thing, value in self.values[relation.name].items():
                yield relation, thing, value

    @cached_property
    def sources(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        """The (relation, thing) of which each thing that is a value is the value."""
        sources: dict[str, list[tuple[str, str]]] = {}
        for relation, thing, value in self.facts():
            if relation.gives in self.things:
                sources.setdefault(value, []).append((relation.name, thing))
        return {value: tuple(pairs) for value, pairs in sources.items()}


@cache
def world(seed: int = 0, things: int = THINGS) -> World:
    """The world of a seed, with this many things in each field."""
    rng = Random(f"world/{seed}")
    names = {field: _names(field, rng, things) for field in FIELDS}
    values = {
        relation.name: MappingProxyType(
            {thing: _value(relation, thing, names, rng) for thing in names[relation.field]}
        )
        for relation in RELATIONS.values()
    }
    return World(MappingProxyType(names), MappingProxyType(values))


def made_up_words() -> frozenset[str]:
    """The words that names may be made of and that no language has, in small letters: "toreth", "halonmouth"."""
    stems = [start + end for start, end in product(_START, _END)]
    return frozenset((*stems, *(stem + form for stem, form in product(stems, _FORMS["place"]))))


def _names(field: str, rng: Random, count: int) -> tuple[str, ...]:
    stems = [start + end for start, end in product(_START, _END)]
    match field:
        case "person":
            known = [f"{given_name} {stem.title()}" for given_name, stem in product(_GIVEN, stems)]
        case "work":
            known = [f"{title} of {of}" for title, of in product(_TITLES, _OF)]
        case "ship":
            known = [f"{adjective} {bird}" for adjective, bird in product(_ADJECTIVES, _BIRDS)]
        case "place":
            known = [f"{stem.title()}{end}" for stem, end in product(stems, _FORMS["place"])]
        case "firm" | "law":
            known = [f"{stem.title()} {form}" for stem, form in product(stems, _FORMS[field])]
        case _:
            known = [f"{stem} {form}" for stem, form in product(stems, _FORMS[field])]
    return tuple(sorted(rng.sample(known, count)))


def _value(relation: Relation, thing: str, names: Mapping[str, tuple[str, ...]], rng: Random) -> str:
    if relation.gives == YEAR:
        return str(rng.choice(_YEARS))
    if relation.gives == NUMBER:
        return str(rng.choice(_NUMBERS))
    known = names.get(relation.gives) or WORDS[relation.gives]
    return rng.choice([value for value in known if value != thing])
