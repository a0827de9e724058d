"""What is asked of the process that runs the library, and what it says: lines of JSON."""

from __future__ import annotations

import hashlib
from typing import Literal

from podium.types import Value


class Variety(Value):
    """A generator at one difficulty."""

    generator: str
    level: int | None = None
    """Of its curriculum; None, and for a generator without one: the library's own settings."""
    config: str = "{}"
    """Further settings of the generator, as JSON with sorted keys."""

    @property
    def name(self) -> str:
        """As task ids have it: "sudoku", "sudoku-level-2", "sudoku-3fa4bc12"."""
        level = "" if self.level is None else f"-level-{self.level}"
        settings = "" if self.config == "{}" else f"-{digest(self.config)[:8]}"
        return f"{self.generator}{level}{settings}"


class Draw(Value):
    """The name of one question: it gives that question for ever."""

    variety: Variety
    seed: int
    number: int

    @property
    def name(self) -> str:
        """As task ids have it."""
        return f"{self.variety.name}/{self.seed}/{self.number}"


class Drawn(Value):
    """A question that was made."""

    question: str
    gold: str
    """An answer that is right; empty for the generators that know none (`library.WITHOUT_GOLD`)."""
    category: str
    difficulty: str
    """ "default", or the level of the curriculum, as in "level 2"."""
    sound: bool
    """Whether it may be asked: its gold answer, where it should have one, is right by its own verifier."""


class Order(Value):
    """What is to be done."""

    do: Literal["names", "make", "judge"]
    draw: Draw | None = None
    answer: str = ""
    digest: str = ""
    """Of the question that was answered."""


class Reply(Value):
    """What came of it."""

    names: tuple[str, ...] = ()
    drawn: Drawn | None = None
    score: float = 0.0
    refusal: str = ""
    """Why it is not done, in one sentence."""
    spent: bool = False
    """Whether it took all the processor seconds that there are for it."""


def digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
