"""The grader of lists whose order does not count: all items, and no others."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Literal

from pydantic import Field

from podium.tasks.graders.base import PureGrader
from podium.tasks.graders.extraction import Place, find
from podium.tasks.graders.normalised import plain
from podium.tasks.task import Grade

Items = Counter[str | Decimal]

_NUMBER = re.compile(r"[-+]?(?:\d{1,100}(?:\.\d{0,100})?|\.\d{1,100})(?:[eE][-+]?\d{1,3})?")
_BULLET = re.compile(r"^[ \t]*(?:[-*•]|\d{1,4}[.)])[ \t]+", re.MULTILINE)
_BRACKETS = (("\\{", "\\}"), ("{", "}"), ("[", "]"), ("(", ")"))


class SetOf(PureGrader):
    """1 when the answer lists the items of the gold answer, in whatever order: none missing, none too many.

    The answer is what stands at `answer`: items between separators or line breaks, in brackets or not, with bullets
    or not, and with an `and` before the last one or not; or a JSON list. Numbers are compared by value (`1.50` is
    `1.5`; `1/2` is a text), other items by words, as `normalised` does. Not accepted: `a or b`, items in prose, a
    number with separators inside (`1,000` is two items), and items that are lists themselves: for pairs and
    intervals take `math`.
    """

    kind: Literal["set"] = "set"
    answer: Place = "final"
    """Where the answer stands in the response."""
    separator: str = Field(default=",", min_length=1)
    """What stands between items, in the gold answer and in the response."""
    repeats: bool = False
    """Whether it counts how often an item is listed."""

    def complaint(self, gold: str) -> str | None:
        return None if self._items(gold) else f"the gold answer {gold!r} is no list of items"

    def judge(self, response: str, gold: str) -> Grade:
        found = find(response, self.answer)
        if found is None:
            return Grade(0.0)
        wanted = self._items(gold)
        return Grade(float(bool(wanted) and wanted in map(self._items, self._readings(found))), found)

    def _readings(self, text: str) -> Iterator[str]:
        """The answer; and the same with a separator for the last `and`."""
        yield text
        first, joined, last = text.rpartition(" and ")
        if joined:
            yield first + self.separator + last

    def _items(self, text: str) -> Items:
        """What a text lists; nothing where that is not clear."""
        listed = _json_list(text)
        if listed is None:
            whole = _BULLET.sub("", text.strip().strip("$").strip())
            listed = next(filter(_closed, map(self._split, (_unbracketed(whole), whole))), [])
        items = Counter(item for item in map(_item, listed) if item is not None)
        return items if self.repeats else Counter(dict.fromkeys(items, 1))

    def _split(self, text: str) -> list[str]:
        return text.replace("\n", self.separator).split(self.separator)


def _item(text: str) -> str | Decimal | None:
    """What an item is compared by; None where it is nothing but marks."""
    bare = text.strip().strip("$`*").removesuffix(".").strip().removeprefix("and ").replace("−", "-")
    return Decimal(bare) if _NUMBER.fullmatch(bare) else plain(bare) or None


def _json_list(text: str) -> list[str] | None:
    """The texts and numbers of a JSON list; None: it is none."""
    if not text.lstrip().startswith("["):
        return None
    try:
        listed: Any = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    return listed if isinstance(listed, list) and all(isinstance(item, str) for item in listed) else None


def _unbracketed(text: str) -> str:
    """Without one pair of brackets round all of it."""
    bare = text.removesuffix(".")
    for opening, closing in _BRACKETS:
        if bare.startswith(opening) and bare.endswith(closing):
            return bare.removeprefix(opening).removesuffix(closing)
    return text


def _closed(items: Iterable[str]) -> bool:
    """Whether no item holds one bracket of a pair alone: then the text was cut inside a list."""
    return all(item.count(opening) == item.count(closing) for item in items for opening, closing in _BRACKETS)
