"""The grader of short texts: names and phrases, whatever their case, articles, marks and accents."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Literal

from podium.tasks.graders.base import PureGrader
from podium.tasks.graders.extraction import Place, find
from podium.tasks.task import Grade

_DASHES = re.compile("[\u2010-\u2015\u2212]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_MARK = re.compile(r"[^\w\s]|_")
_IN_NUMBER = re.compile(r"(?<![^\W\d_])[-.,:/*](?=\.?\d)")
_ACCENT = re.compile("[\u0300-\u036f]")
_ARTICLE = re.compile(r"^[\W_]*(?:a|an|the)\s+(?=\W*\w)")
_DROPPED = frozenset(".!?'\"`‘’“”„´")
"""Marks that part no words: `U.S.A.` is `USA`."""
_KEPT = frozenset("%#&@§‰\\")
"""Marks that mean something: `C#` is not `C`."""
_KEPT_FORMS = ("<super>", "<sub>", "<fraction>")
"""Characters that mean another thing once they are unfolded: `10²` is not `102`."""


class Normalised(PureGrader):
    """1 when the answer is one of the accepted ones, compared by words.

    The answer is what stands at `answer`, all of it: `Paris, France` and `Paris or Lyon` are not `Paris`. What does
    not count: case, width and accents of letters, a leading article, spaces, and marks, but for those of numbers and
    those that mean something. So `-5`, `1/2`, `3.5`, `45 %` and `C#` keep theirs, unlike in SQuAD's normalisation
    (Rajpurkar et al. 2016), which this follows else. Not for formulas: for them take `math`.

    The gold answer is a text; or a JSON list of texts, each of which is accepted; or, with `separator`, several.
    """

    kind: Literal["normalised"] = "normalised"
    answer: Place = "final"
    """Where the answer stands in the response."""
    accents: bool = False
    """Whether accents count."""
    separator: str | None = None
    """What stands between accepted answers in the gold one, such as "|"; None: nothing does."""

    def complaint(self, gold: str) -> str | None:
        accepted = self._accepted(gold)
        if not accepted or not all(self._words(text) for text in accepted):
            return f"the gold answer {gold!r} holds an answer without words"
        return None

    def judge(self, response: str, gold: str) -> Grade:
        found = find(response, self.answer)
        if found is None:
            return Grade(0.0)
        said = self._words(found)
        return Grade(float(bool(said) and said in map(self._words, self._accepted(gold))), found)

    def _words(self, text: str) -> str:
        return plain(text, accents=self.accents)

    def _accepted(self, gold: str) -> list[str]:
        if gold.lstrip().startswith("["):
            try:
                listed = json.loads(gold)
            except (ValueError, RecursionError):
                listed = None
            if isinstance(listed, list) and all(isinstance(text, str) for text in listed):
                return listed
        return [gold] if not self.separator else gold.split(self.separator)


def plain(text: str, *, accents: bool = False) -> str:
    """What texts that say the same have in common; empty where there is nothing but marks.

    A dollar at either end is LaTeX's as often as money, and `extraction` takes it off: it does not count.
    """
    text = "".join(map(_unfolded, text.strip().strip("$"))).casefold()
    if not accents:
        text = _ACCENT.sub("", unicodedata.normalize("NFD", text))
    text = _THOUSANDS.sub("", _DASHES.sub("-", unicodedata.normalize("NFC", text)))
    return " ".join(_MARK.sub(_mark, _ARTICLE.sub("", text)).split())


def _unfolded(character: str) -> str:
    if unicodedata.decomposition(character).startswith(_KEPT_FORMS):
        return character
    return unicodedata.normalize("NFKC", character)


def _mark(match: re.Match[str]) -> str:
    """What stands for a mark: itself, nothing, or a space."""
    mark = match[0]
    if mark in _KEPT or not unicodedata.category(mark).startswith("P"):
        return mark
    if _IN_NUMBER.match(match.string, match.start()):
        return mark
    return "" if mark in _DROPPED else " "
