"""Finds questions of one source in another: equal texts, and texts that share n-grams.

This is the check for contamination: a question from the training data measures nothing. It does not find translations
and paraphrases.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NGRAM_WORDS = 13
"""Words of an n-gram; texts that share one overlap (GPT-3, Brown et al. 2020, appendix C)."""
MIN_WORDS = 8
"""A question of fewer words than `NGRAM_WORDS`, but at least this many, is one n-gram as a whole (the same source)."""
MAX_QUESTIONS = 10
"""N-grams in more questions than this, and in more than a twentieth of them, are common and do not count."""

_IGNORED = r"\\(?:left|right)(?![a-z])|\\[()\[\]!]"
_NUMBER = r"\d+(?:\.\d+)+"
_WORD = r"[^\W_]+"
_SIGN = r"[^\w\s\\\"'`´‘’“”„«»$,.;:?…]|(?<!\S)_(?!\S)"
"""Signs that distinguish questions; an underscore alone is an empty place of a board."""
_TOKEN = re.compile(rf"{_IGNORED}|({_NUMBER}|\\?{_WORD}|{_SIGN})")
_WORDS = re.compile(_WORD)
_DASH = re.compile(r"[‐-―−]")
_FRACTION = re.compile(r"\\[dt]frac(?![a-z])")


@dataclass(frozen=True, slots=True)
class Overlap:
    """The overlap of a question with another source."""

    index: int
    """The index of the question."""
    location: str
    """The location of the text in the other source that overlaps most."""
    is_equal: bool
    """Whether that text equals the question, apart from case, punctuation and space."""
    shared: float
    """The share of its n-grams that the other source contains; 0 if it has none."""


def question_key(text: str) -> str:
    """The normalised text by which questions are compared.

    Case, space, quotes, punctuation and LaTeX's spacing do not count; signs do, so `x + 1` and `x - 1` differ. The hash
    of this text decides the split of a question where a source has no splits: any change here moves questions.
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    plain = _FRACTION.sub(r"\\frac", _DASH.sub("-", plain))
    return " ".join(filter(None, _TOKEN.findall(plain))) or " ".join(text.split())


def overlaps(texts: Sequence[str], others: Iterable[tuple[str, str]]) -> list[Overlap]:
    """Find the questions that overlap with another source, those that overlap most first.

    Memory holds only the n-grams of `texts`, so the other source may be of any size.

    Args:
        texts: the questions.
        others: pairs of a location in the other source and the text there.
    """
    ngram_index = _NgramIndex(texts)
    shared_ngrams: dict[int, set[int]] = defaultdict(set)
    best: dict[int, tuple[bool, int, str]] = {}
    for location, other in others:
        key = question_key(other)
        equal, hits = ngram_index.by_key.get(key, set()), ngram_index.shared_with(key)
        for index in equal | hits.keys():
            shared_ngrams[index] |= hits[index]
            most = (index in equal, len(hits[index]))
            if index not in best or most > best[index][:2]:
                best[index] = (*most, location)
    overlaps = [
        Overlap(
            index, location, is_equal, len(shared_ngrams[index]) / max(1, ngram_index.ngram_counts[index])
        )
        for index, (is_equal, _, location) in best.items()
    ]
    return sorted(overlaps, key=lambda overlap: (-overlap.is_equal, -overlap.shared, overlap.index))


class _NgramIndex:
    """Questions by their whole text and by their n-grams, without n-grams that are common among them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.by_key: dict[str, set[int]] = defaultdict(set)
        """The indices of the questions, by `question_key`."""
        self._lengths: set[int] = set()
        by_ngram: dict[int, list[int]] = defaultdict(list)
        for index, text in enumerate(texts):
            key = question_key(text)
            self.by_key[key].add(index)
            words = _WORDS.findall(key)
            length = min(NGRAM_WORDS, len(words))
            if length >= MIN_WORDS:
                self._lengths.add(length)
                for ngram in _ngrams(words, length):
                    by_ngram[ngram].append(index)
        common = max(MAX_QUESTIONS, len(texts) / 20)
        self._by_ngram = {ngram: indices for ngram, indices in by_ngram.items() if len(indices) <= common}
        self.ngram_counts = Counter(index for indices in self._by_ngram.values() for index in indices)
        """How many n-grams each question has."""

    def shared_with(self, key: str) -> dict[int, set[int]]:
        """The n-grams that each question shares with a text, given the text's key."""
        words = _WORDS.findall(key)
        shared: dict[int, set[int]] = defaultdict(set)
        for length in self._lengths:
            for ngram in _ngrams(words, length):
                for index in self._by_ngram.get(ngram, ()):
                    shared[index].add(ngram)
        return shared


def _ngrams(words: Sequence[str], length: int) -> set[int]:
    """Hashes of all n-grams of this many words."""
    return {hash(tuple(words[start : start + length])) for start in range(len(words) - length + 1)}
