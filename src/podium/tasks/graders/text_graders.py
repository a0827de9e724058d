"""Graders of short texts: `exact`, `normalised`, `set` and `regex`.

Each finds the answer in the response (`extraction`) and compares it with the gold answer as text. None credits an
answer that merely contains the gold one. Numbers and formulas have graders of their own (`math_graders`).
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from podium.errors import ConfigError, GraderError
from podium.tasks.graders.base import GraderSettings, PureGrader
from podium.tasks.graders.extraction import AnswerPlace, extract
from podium.tasks.graders.hedges import states_one_answer
from podium.tasks.task import Grade
from podium.text.answer import normalise, strip_markup, to_nfkc
from podium.text.same_answer import normalised_words

if TYPE_CHECKING:
    from regex import Pattern


class Exact(PureGrader):
    """1 when the answer is the gold answer, apart from case, outer space, a final dot, and emphasis, backticks and a
    box around either of them."""

    kind: Literal["exact"] = "exact"
    answer: AnswerPlace = "final"
    """Where the answer stands in the response."""

    def gold_problem(self, gold: str) -> str | None:
        return None if normalise(strip_markup(gold)) else "the gold answer is empty"

    def judge(self, response: str, gold: str) -> Grade:
        answer = extract(response, self.answer)
        if answer is None:
            return Grade(0.0)
        return Grade(float(normalise(strip_markup(answer)) == normalise(strip_markup(gold))), answer)


class Normalised(PureGrader):
    """1 when the answer is one of the accepted ones, compared by words.

    All of the answer is compared: `Paris, France` and `Paris or Lyon` are not `Paris`. These do not count: case, width
    and accents of letters, a leading article, spaces, and punctuation, except in numbers and where it has a meaning. So
    `-5`, `1/2`, `3.5`, `45 %` and `C#` keep their marks, unlike in SQuAD's normalisation (Rajpurkar et al. 2016), which
    this follows otherwise. For formulas use `math`.

    The gold answer is a text; or a JSON list of texts, each of which is accepted; or several texts with `separator`.
    """

    kind: Literal["normalised"] = "normalised"
    answer: AnswerPlace = "final"
    """Where the answer stands in the response."""
    accents: bool = False
    """Whether accents of letters count."""
    separator: str | None = None
    """What separates accepted answers in the gold one, such as "|". Without it, the gold answer is one answer."""

    def gold_problem(self, gold: str) -> str | None:
        accepted = self._accepted(gold)
        if not accepted or not all(self._words(text) for text in accepted):
            return f"the gold answer {gold!r} holds an answer without words"
        return None

    def judge(self, response: str, gold: str) -> Grade:
        answer = extract(response, self.answer)
        if answer is None:
            return Grade(0.0)
        words = self._words(answer) if _may_equal(answer, gold) else ""
        return Grade(float(bool(words) and words in map(self._words, self._accepted(gold))), answer)

    def _words(self, text: str) -> str:
        return normalised_words(text, accents=self.accents)

    def _accepted(self, gold: str) -> list[str]:
        if gold.lstrip().startswith("["):
            try:
                listed = json.loads(gold)
            except (ValueError, RecursionError):
                listed = None
            if isinstance(listed, list) and all(isinstance(text, str) for text in listed):
                return listed
        return [gold] if not self.separator else gold.split(self.separator)


def _may_equal(answer: str, gold: str) -> bool:
    """Whether an answer is short enough to say the same as the gold one. Comparing a far longer one takes seconds."""
    return len(answer) <= 1000 + 4 * len(gold)


Items = Counter[str | Decimal]

_NUMBER = re.compile(r"[-+]?(?:\d{1,100}(?:\.\d{0,100})?|\.\d{1,100})(?:[eE][-+]?\d{1,3})?")
_BULLET = re.compile(r"^[ \t]*(?:[-*•]|\d{1,4}[.)])[ \t]+", re.MULTILINE)
_ELLIPSIS = re.compile(r"\.{3}|…|\\[lc]?dots(?![a-z])")
_BRACKETS = (("\\{", "\\}"), ("{", "}"), ("[", "]"), ("(", ")"))


class SetOf(PureGrader):
    """1 when the answer lists exactly the items of the gold answer, in any order.

    Items stand between separators or line breaks, with or without brackets, bullets and an `and` before the last one;
    or in a JSON list. Numbers are compared by value (`1.50` is `1.5`; `1/2` is a text), other items by words, as
    `normalised` does. Not accepted: `a or b`, items in prose, a number with separators inside (`1,000` is two items),
    and items that are lists themselves: for pairs and intervals use `math`.
    """

    kind: Literal["set"] = "set"
    answer: AnswerPlace = "final"
    """Where the answer stands in the response."""
    separator: str = Field(default=",", min_length=1)
    """What separates items, in the gold answer and in the response."""
    repeats: bool = False
    """Whether the number of times that an item is listed counts."""

    def gold_problem(self, gold: str) -> str | None:
        return None if self._items(gold) else f"the gold answer {gold!r} is no list of items"

    def judge(self, response: str, gold: str) -> Grade:
        answer = extract(response, self.answer)
        if answer is None:
            return Grade(0.0)
        if not _may_equal(answer, gold) or not states_one_answer(answer, gold):
            return Grade(0.0, answer)
        wanted = self._items(gold)
        return Grade(float(bool(wanted) and wanted in map(self._items, self._readings(answer))), answer)

    def _readings(self, text: str) -> Iterator[str]:
        yield text
        first, joined, last = text.rpartition(" and ")
        if joined:
            yield first + self.separator + last

    def _items(self, text: str) -> Items:
        text = to_nfkc(text)
        listed = _json_list(text)
        if listed is None:
            whole = _BULLET.sub("", text.strip().strip("$").strip())
            readings = (
                text.replace("\n", self.separator).split(self.separator)
                for text in (_unbracketed(whole), whole)
            )
            listed = next(filter(_closed, readings), [])
        values = [_item(item) for item in listed if item.strip()]
        if _ELLIPSIS.search(text) or None in values:
            return Counter()  # an open list, or one with a gap
        items = Counter(item for item in values if item is not None)
        return items if self.repeats else Counter(dict.fromkeys(items, 1))


def _item(text: str) -> str | Decimal | None:
    """The number or the words by which an item is compared; None if it has only marks."""
    bare = to_nfkc(text).strip().strip("$`*").removesuffix(".").strip().removeprefix("and ").replace("−", "-")
    return Decimal(bare) if _NUMBER.fullmatch(bare) else normalised_words(bare) or None


def _json_list(text: str) -> list[str] | None:
    if not text.lstrip().startswith("["):
        return None
    try:
        listed: Any = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    return listed if isinstance(listed, list) and all(isinstance(item, str) for item in listed) else None


def _unbracketed(text: str) -> str:
    bare = text.removesuffix(".")
    for opening, closing in _BRACKETS:
        if bare.startswith(opening) and bare.endswith(closing):
            return bare.removeprefix(opening).removesuffix(closing)
    return text


def _closed(items: Iterable[str]) -> bool:
    """Whether the brackets in each item match; if not, the text was divided inside of brackets."""
    return all(item.count(opening) == item.count(closing) for item in items for opening, closing in _BRACKETS)


MAX_PATTERN = 1000
_MAX_COPIES = 500_000
"""A pattern's characters times the counts that its repeats demand, at most: `regex` writes `a{1000}` out."""
_COUNT = re.compile(r"\{(\d+)")
_SECONDS = 1.0
_SHOWN_CHARS = 60
_NONSENSE = "qx7 ☃ 41, (zw)"


class Regex(GraderSettings):
    """1 when the gold answer, a pattern, matches the answer from its first character to its last.

    With `answer = "final"`, bold, backticks and dollars around the answer are removed before. A match of only a part of
    the answer earns nothing. Patterns have the syntax of the `regex` package, which knows all that `re` knows; case
    counts unless the pattern begins with `(?i)`. A pattern that matches anything, or has over 1,000 characters, is
    refused. A pattern that takes too long raises GraderError, since that is the fault of its author and not of the
    answer.
    """

    kind: Literal["regex"] = "regex"
    answer: AnswerPlace = "final"
    """Where the answer stands in the response."""

    def gold_problem(self, gold: str) -> str | None:
        if not gold.strip():
            return "the gold answer is empty"
        try:
            if matches(gold, _NONSENSE):
                return f"the gold answer {_short(gold)} is a pattern that matches anything"
        except GraderError as error:
            return f"the gold answer cannot be used: {error}".rstrip(".")
        return None

    async def __call__(self, response: str, gold: str) -> Grade:
        answer = extract(response, self.answer)
        if answer is None:
            return Grade(0.0)
        # In a thread, since a match may take a second; it releases the interpreter's lock.
        same = await asyncio.to_thread(matches, gold, answer) or (
            to_nfkc(answer) != answer and await asyncio.to_thread(matches, gold, to_nfkc(answer))
        )
        return Grade(float(same), answer)


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern matches all of a text.

    Raises:
        GraderError: the pattern is invalid, or takes too long.
        ConfigError: the package regex is not installed.
    """
    compiled = _compiled(pattern)
    try:
        return compiled.fullmatch(text, timeout=_SECONDS, concurrent=True) is not None
    except TimeoutError:
        raise GraderError(
            f"{_short(pattern)} takes more than {_SECONDS:g} s on an answer; write it without repeats in repeats."
        ) from None


def _compiled(pattern: str) -> Pattern[str]:
    try:
        import regex  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise ConfigError(
            "Patterns need the package regex, which is not installed: pip install 'podium-conductor[tasks]'."
        ) from None
    if len(pattern) > MAX_PATTERN:
        raise GraderError(
            f"{_short(pattern)} has {len(pattern)} characters; a pattern has at most {MAX_PATTERN}."
        )
    if len(pattern) * math.prod(max(1, int(count)) for count in _COUNT.findall(pattern)) > _MAX_COPIES:
        raise GraderError(f"{_short(pattern)} repeats too often; write smaller numbers in braces.")
    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        raise GraderError(f"{_short(pattern)} is no pattern: {error}.") from None


def _short(pattern: str) -> str:
    return repr(pattern if len(pattern) <= _SHOWN_CHARS else f"{pattern[:_SHOWN_CHARS]}...")
