"""The fields of the world and their relations, with the words for each. `encyclopedia` draws the facts.

A field is a kind of thing: persons, firms, places. A relation gives, for a thing of its field, one value: a thing of
the same or another field, a year, a number, or one of a few words.
"""

# ruff: noqa: E501 - the table below has a relation on each line.
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

YEAR, NUMBER = "year", "number"
"""What relations give that do not give a thing or a word."""
FIELDS = ("person", "firm", "place", "work", "species", "law", "dish", "ship")

WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "profession": ("baker", "doctor", "painter", "judge", "sailor", "farmer", "printer", "mason"),
        "product": ("glass", "paper", "rope", "clocks", "bricks", "lamps", "wool", "knives"),
        "river": ("Alder", "Brenna", "Corve", "Dun", "Eskel", "Fyle", "Garn", "Hesper"),
        "genre": ("novel", "poem", "play", "diary", "opera", "fable", "essay", "ballad"),
        "colour": ("red", "blue", "green", "yellow", "black", "white", "brown", "grey"),
        "subject": ("fishing", "taxes", "schools", "roads", "trade", "forests", "mines", "markets"),
        "spice": ("pepper", "mint", "ginger", "thyme", "cumin", "saffron", "garlic", "dill"),
        "cargo": ("coal", "timber", "grain", "salt", "iron", "tea", "cotton", "oil"),
    }
)
"""The values of relations that give a word."""


@dataclass(frozen=True, slots=True)
class Relation:
    """One question that can be asked of everything in a field."""

    name: str
    """Unique in the world, such as "firm.founder"."""
    gives: str
    """A field, a key of `WORDS`, "year" or "number"."""
    noun: str
    """What the value is called, as in "the founder of Rado Mill"."""
    clause: str
    """The value in a clause about {x}, as in "the person who founded {x}"."""
    ask: str
    """The direct question about {x}."""
    tell: str
    """The fact as a sentence about {x} and its value {y}."""

    @property
    def field(self) -> str:
        """The field whose things it is asked of."""
        return self.name.partition(".")[0]


_TABLE = """
person.birthplace | place | birthplace | the place where {x} was born | Where was {x} born? | {x} was born in {y}.
person.birth year | year | birth year | the year in which {x} was born | When was {x} born? | {x} was born in the year {y}.
person.profession | profession | profession | the work that {x} does | What does {x} do for a living? | {x} works as a {y}.
person.teacher | person | teacher | the person who taught {x} | Who taught {x}? | {y} taught {x}.
person.favourite dish | dish | favourite dish | the dish that {x} likes best | What does {x} like to eat best? | {x} likes {y} best.
firm.founder | person | founder | the person who founded {x} | Who founded {x}? | {y} founded {x}.
firm.seat | place | seat | the place where {x} works | Where does {x} have its seat? | {x} has its seat in {y}.
firm.founding year | year | founding year | the year in which {x} was founded | When was {x} founded? | {x} was founded in the year {y}.
firm.product | product | product | the goods that {x} makes | What does {x} make? | {x} makes {y}.
firm.staff | number | staff | the number of people who work for {x} | How many people work for {x}? | {y} people work for {x}.
place.mayor | person | mayor | the person who governs {x} | Who governs {x}? | {y} governs {x}.
place.emblem | species | emblem | the animal on the flag of {x} | Which animal stands on the flag of {x}? | The flag of {x} shows the {y}.
place.river | river | river | the river that flows through {x} | Which river flows through {x}? | The {y} flows through {x}.
place.charter year | year | charter year | the year in which {x} became a town | When did {x} become a town? | {x} became a town in the year {y}.
place.bridges | number | bridge count | the number of bridges in {x} | How many bridges are there in {x}? | {x} has {y} bridges.
work.author | person | author | the person who wrote {x} | Who wrote {x}? | {y} wrote {x}.
work.setting | place | setting | the place where {x} is set | Where is {x} set? | {x} is set in {y}.
work.publication year | year | publication year | the year in which {x} came out | When did {x} come out? | {x} came out in the year {y}.
work.genre | genre | genre | the kind of writing that {x} is | What kind of writing is {x}? | {x} is a kind of {y}.
work.chapters | number | chapter count | the number of chapters in {x} | How many chapters does {x} have? | {x} has {y} chapters.
species.discoverer | person | discoverer | the person who discovered the {x} | Who discovered the {x}? | {y} discovered the {x}.
species.habitat | place | habitat | the place where the {x} lives | Where does the {x} live? | The {x} lives near {y}.
species.discovery year | year | discovery year | the year in which the {x} was discovered | When was the {x} discovered? | The {x} was discovered in the year {y}.
species.colour | colour | colour | the colour that the {x} has | What colour is the {x}? | The {x} is {y}.
species.eggs | number | egg count | the number of eggs that the {x} lays | How many eggs does the {x} lay? | The {x} lays {y} eggs.
law.proposer | person | proposer | the person who proposed the {x} | Who proposed the {x}? | {y} proposed the {x}.
law.home | place | home | the place where the {x} is in force | Where is the {x} in force? | The {x} is in force in {y}.
law.passing year | year | passing year | the year in which the {x} was passed | When was the {x} passed? | The {x} was passed in the year {y}.
law.subject | subject | subject | the matter that the {x} rules | What is the {x} about? | The {x} is about {y}.
law.articles | number | article count | the number of articles in the {x} | How many articles does the {x} have? | The {x} has {y} articles.
dish.inventor | person | inventor | the person who invented {x} | Who invented {x}? | {y} invented {x}.
dish.origin | place | origin | the place that {x} comes from | Where does {x} come from? | {x} comes from {y}.
dish.first year | year | first year | the year in which {x} was first served | When was {x} first served? | {x} was first served in the year {y}.
dish.spice | spice | spice | the spice that {x} is made with | With which spice is {x} made? | {x} is made with {y}.
dish.minutes | number | cooking time | the number of minutes that {x} cooks | How many minutes does {x} cook? | {x} cooks for {y} minutes.
ship.builder | firm | builder | the firm that built the {x} | Which firm built the {x}? | {y} built the {x}.
ship.captain | person | captain | the person who commands the {x} | Who commands the {x}? | {y} commands the {x}.
ship.home port | place | home port | the place where the {x} lies at anchor | Where does the {x} lie at anchor? | The {x} lies at anchor in {y}.
ship.launch year | year | launch year | the year in which the {x} was launched | When was the {x} launched? | The {x} was launched in the year {y}.
ship.cargo | cargo | cargo | the goods that the {x} carries | What does the {x} carry? | The {x} carries {y}.
ship.crew | number | crew size | the number of sailors on the {x} | How many sailors does the {x} have? | The {x} has {y} sailors.
"""


def _read(line: str) -> Relation:
    name, gives, noun, clause, ask, tell = (part.strip() for part in line.split("|"))
    return Relation(name, gives, noun, clause, ask, tell)


RELATIONS: Mapping[str, Relation] = MappingProxyType(
    {relation.name: relation for relation in map(_read, _TABLE.strip().splitlines())}
)
"""Every relation by its name."""
ARTICLE = frozenset({"species", "law", "ship"})
"""Fields whose names stand with "the" in a sentence: "the Grey Heron"."""


def relations_of(field: str, *gives: str) -> tuple[Relation, ...]:
    """The relations of a field, in order; with `gives`, those that give one of these."""
    return tuple(r for r in RELATIONS.values() if r.field == field and (not gives or r.gives in gives))
