"""Operations of the skill "facts": small things one knows."""

from __future__ import annotations

from podium.operations.lore import ANIMALS, CAPITALS, ELEMENTS, OPPOSITES, PLANETS
from podium.operations.operation import Operation


def operations() -> tuple[Operation, ...]:
    """The operations of this skill."""
    lands = {city: country for country, city in CAPITALS.items()}
    return (
        Operation("capital_of", "facts", ("country",), "city", lambda x: CAPITALS[x],
                  ("name the capital of {x}", "say which city governs {x}", "give the seat of government of {x}")),
        Operation("land_of", "facts", ("city",), "country", lambda x: lands[x],
                  ("name the country whose capital is {x}", "say which country {x} governs",
                   "give the land that {x} is the capital of")),
        Operation("planet_at", "facts", ("int",), "planet", lambda x: _entry(PLANETS, x),
                  ("name planet number {x} from the sun", "say which planet is in place {x} from the sun",
                   "give the planet with number {x} in the solar system")),
        Operation("planet_number", "facts", ("planet",), "int", lambda x: PLANETS.index(x) + 1,
                  ("say what number {x} has, counted from the sun", "give the place of {x} among the planets",
                   "count the planets from the sun up to {x}")),
        Operation("element_at", "facts", ("int",), "element", lambda x: _entry(ELEMENTS, x),
                  ("name the element with atomic number {x}", "say which element has {x} protons",
                   "give the chemical element in place {x} of the periodic table")),
        Operation("atomic_number", "facts", ("element",), "int", lambda x: ELEMENTS.index(x) + 1,
                  ("give the atomic number of {x}", "say how many protons an atom of {x} has",
                   "find the place of {x} in the periodic table")),
        Operation("legs_of", "facts", ("animal",), "int", lambda x: ANIMALS[x][0],
                  ("say how many legs the animal {x} has", "count the legs of the animal {x}",
                   "give the number of legs of the animal {x}")),
        Operation("young_of", "facts", ("animal",), "word", lambda x: ANIMALS[x][1],
                  ("name the young of the animal {x}", "say what the young of the animal {x} is called",
                   "give the word for the offspring of the animal {x}")),
        Operation("opposite_of", "facts", ("quality",), "quality", lambda x: OPPOSITES[x],
                  ("give the opposite of {x}", "name the contrary of {x}", "say what is the reverse of being {x}")),
    )  # fmt: skip


def _entry(table: tuple[str, ...], place: int) -> str:
    if not 1 <= place <= len(table):
        raise ValueError(f"no place {place}")
    return table[place - 1]
