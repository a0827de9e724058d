"""Finds questions of one source in another: by their whole text, and by runs of words that they share.

This is the check for contamination: a question that was trained on measures nothing. Translations and paraphrases are
not found. The other source may be a table (the texts of its rows) or any text file (its paragraphs).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from podium.errors import UsageError
from podium.rows import Row, is_table, read_rows

NGRAM_WORDS = 13
"""Words in a row that two questions must share to count as one (GPT-3, Brown et al. 2020, appendix C)."""
MIN_WORDS = 8
"""A question of fewer words than `NGRAM_WORDS`, and no fewer than this, is one run as a whole (the same source)."""
MAX_QUESTIONS = 10
"""A run that more questions have (and a twentieth of them all) is how they are put, and tells none of them."""

_DRESS = r"\\(?:left|right)(?![a-z])|\\[()\[\]!]"
_NUMBER = r"\d+(?:\.\d+)+"
_WORD = r"[^\W_]+"
_SIGN = r"[^\w\s\\\"'`´‘’“”„«»$,.;:?…]|(?<!\S)_(?!\S)"
"""Marks that tell questions apart; a lone underscore is an empty place of a board."""
_TOKEN = re.compile(rf"{_DRESS}|({_NUMBER}|\\?{_WORD}|{_SIGN})")
_WORDS = re.compile(_WORD)
_DASH = re.compile(r"[‐-―−]")
_FRACTION = re.compile(r"\\[dt]frac(?![a-z])")


@dataclass(frozen=True, slots=True)
class Overlap:
    """What a question shares with another source."""

    place: int
    """Of the question among those that were looked at."""
    where: str
    """Where the text of the other source stands that has most of it."""
    same: bool
    """Whether that text is the question, but for case, marks and space."""
    shared: float
    """Of its runs of words the share that the other source has; 0 for a text that has none."""


def question_key(text: str) -> str:
    """What two questions that say the same have in common; it stays what tells them apart, as `x + 1` and `x - 1`.

    Case, space, quotes and the marks of sentences do not count, nor does how LaTeX is dressed. The splits of sets
    without splits rest on this text: another fold moves questions from one to another.
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    plain = _FRACTION.sub(r"\\frac", _DASH.sub("-", plain))
    return " ".join(filter(None, _TOKEN.findall(plain))) or " ".join(text.split())


def overlaps(texts: Sequence[str], others: Iterable[tuple[str, str]]) -> list[Overlap]:
    """Those of `texts` of which something stands in another source, the most first.

    Memory holds the runs of `texts` alone, so the other source may be of any size.

    Args:
        others: the texts of the other source, each behind the place where it stands.
    """
    asked = _Index(texts)
    met: dict[int, set[int]] = defaultdict(set)
    best: dict[int, tuple[bool, int, str]] = {}
    for where, other in others:
        same, hits = asked.meet(other)
        for place in same | hits.keys():
            met[place] |= hits.get(place, set())
            most = (place in same, len(hits.get(place, ())))
            if place not in best or most > best[place][:2]:
                best[place] = (*most, where)
    found = [
        Overlap(place, where, same, len(met[place]) / max(1, asked.ngram_counts[place]))
        for place, (same, _, where) in best.items()
    ]
    return sorted(found, key=lambda overlap: (-overlap.same, -overlap.shared, overlap.place))


class _Index:
    """Questions by their texts and by their runs of words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._whole: dict[str, set[int]] = defaultdict(set)
        self._having: dict[int, list[int]] = defaultdict(list)
        self._lengths: set[int] = set()
        for place, text in enumerate(texts):
            key = question_key(text)
            self._whole[key].add(place)
            said = _WORDS.findall(key)
            length = min(NGRAM_WORDS, len(said))
            if length >= MIN_WORDS:
                self._lengths.add(length)
                for ngram in _ngrams(said, length):
                    self._having[ngram].append(place)
        common = max(MAX_QUESTIONS, len(texts) / 20)
        self._having = {ngram: places for ngram, places in self._having.items() if len(places) <= common}
        self.ngram_counts = Counter(place for places in self._having.values() for place in places)

    def meet(self, other: str) -> tuple[set[int], dict[int, set[int]]]:
        """The questions that a text is, and the runs that it has of each question."""
        hits: dict[int, set[int]] = defaultdict(set)
        key = question_key(other)
        said = _WORDS.findall(key)
        for length in self._lengths:
            for ngram in _ngrams(said, length):
                for place in self._having.get(ngram, ()):
                    hits[place].add(ngram)
        return self._whole.get(key, set()), hits


def _ngrams(said: Sequence[str], length: int) -> set[int]:
    """Hashes of all runs of so many words."""
    return {hash(tuple(said[start : start + length])) for start in range(len(said) - length + 1)}


def read_texts(file: Path) -> Iterator[Row]:
    """The rows of a table, or the paragraphs of a text.

    Raises:
        UsageError: the file is missing, or is neither.
    """
    return read_rows(file) if is_table(file) else _paragraphs(file)


def row_texts(row: Row) -> list[str]:
    """The texts of a row: of each cell, in lists and objects too, and all of them in one."""
    texts: list[str] = []
    left: list[object] = [row.values]
    while left:
        value = left.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, Mapping | list):
            left += reversed(list(value.values()) if isinstance(value, Mapping) else value)
    return [*texts, "\n".join(texts)] if len(texts) > 1 else texts


def _paragraphs(file: Path) -> Iterator[Row]:
    lines: list[str] = []
    try:
        with file.open(encoding="utf-8-sig") as opened:
            for number, line in enumerate(opened, 1):
                if line.strip():
                    lines.append(line)
                elif lines:
                    yield _paragraph(file, number, lines)
                    lines = []
            if lines:
                yield _paragraph(file, number + 1, lines)
    except FileNotFoundError:
        raise UsageError(f"{file}: there is no such file; check the path.") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read as text: {error}.") from None


def _paragraph(file: Path, behind: int, lines: list[str]) -> Row:
    return Row(f"{file.name}, line {behind - len(lines)}", {"text": "".join(lines)})
