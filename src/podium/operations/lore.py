"""The small tables that the embedded questions draw on, and Roman numerals."""

from __future__ import annotations

MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
PLANETS = ("mercury", "venus", "earth", "mars", "jupiter", "saturn", "uranus", "neptune")
ELEMENTS = (
    "hydrogen", "helium", "lithium", "beryllium", "boron", "carbon", "nitrogen", "oxygen", "fluorine", "neon",
    "sodium", "magnesium", "aluminium", "silicon", "phosphorus", "sulfur", "chlorine", "argon", "potassium",
    "calcium",
)  # fmt: skip
"""In the order of their atomic numbers, from 1."""
CAPITALS = {
    "france": "paris", "italy": "rome", "spain": "madrid", "portugal": "lisbon", "germany": "berlin",
    "austria": "vienna", "poland": "warsaw", "norway": "oslo", "sweden": "stockholm", "finland": "helsinki",
    "greece": "athens", "egypt": "cairo", "kenya": "nairobi", "japan": "tokyo", "china": "beijing",
    "peru": "lima", "chile": "santiago", "cuba": "havana", "canada": "ottawa", "ireland": "dublin",
}  # fmt: skip
ANIMALS = {
    "horse": (4, "foal"), "cow": (4, "calf"), "dog": (4, "puppy"), "cat": (4, "kitten"), "sheep": (4, "lamb"),
    "goose": (2, "gosling"), "duck": (2, "duckling"), "frog": (4, "tadpole"), "goat": (4, "kid"),
    "swan": (2, "cygnet"), "deer": (4, "fawn"), "eagle": (2, "eaglet"), "spider": (8, "spiderling"),
    "butterfly": (6, "caterpillar"), "bee": (6, "larva"), "owl": (2, "owlet"),
}  # fmt: skip
"""Each with its number of legs and the name of its young."""
OPPOSITES = {
    "hot": "cold", "cold": "hot", "big": "small", "small": "big", "early": "late", "late": "early",
    "wet": "dry", "dry": "wet", "dark": "light", "light": "dark", "open": "shut", "shut": "open",
    "full": "empty", "empty": "full", "soft": "hard", "hard": "soft", "fast": "slow", "slow": "fast",
}  # fmt: skip
WORDS = (
    "planet", "garden", "window", "bridge", "candle", "pepper", "silver", "marble", "ribbon", "tunnel",
    "lantern", "harvest", "blanket", "compass", "cottage", "village", "thunder", "whisper", "journey", "pilgrim",
    "river", "stone", "cloud", "bread", "chair", "apple", "table", "music", "paper", "grape",
    "orchard", "mountain", "notebook", "sandwich", "umbrella", "elephant", "hospital", "triangle", "dinosaur",
    "calendar", "lemon", "melon", "olive", "onion", "tiger", "zebra", "camel", "piano", "violin", "trumpet",
    "anchor", "basket", "button", "carpet", "desert", "engine", "feather", "guitar", "hammer", "island",
    "jacket", "kettle", "ladder", "magnet", "needle", "orange", "pencil", "rabbit", "saddle", "temple",
)  # fmt: skip
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


def roman(number: int) -> str:
    """`number` (1 to 3999) in lower-case Roman numerals."""
    if not 1 <= number <= 3999:
        raise ValueError(f"no Roman numeral for {number}")
    written = []
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        written.append(letters * count)
    return "".join(written)


def unroman(text: str) -> int:
    """The number that lower-case Roman numerals stand for; ValueError when they are not canonical."""
    values = {letters: value for value, letters in _ROMAN if len(letters) == 1}
    if not text or any(letter not in values for letter in text):
        raise ValueError(f"not a Roman numeral: {text!r}")
    numbers = [values[letter] for letter in text]
    total = sum(-one if one < after else one for one, after in zip(numbers, [*numbers[1:], 0], strict=True))
    if roman(total) != text:
        raise ValueError(f"not a Roman numeral: {text!r}")
    return total
