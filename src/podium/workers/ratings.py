"""The ratings file of a pool: each worker's measured accuracy and cost, by cluster of questions.

A *cluster* (`kinds` in the file) is a group of questions that share words; a question's words alone decide its cluster.
A worker's *tally* counts, for each cluster, the measured questions, the right answers and the dollars. To add a worker,
add its tally: planners that read ratings need no new training.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, FiniteFloat, ValidationError, model_validator

from podium.config import Settings
from podium.errors import ConfigError
from podium.types import Profile, Rating

WORD = re.compile(r"[^\W\d_]{2,}")
"""What counts as a word of a question: letters, two or more."""
Kinds = Mapping[str, Mapping[str, FiniteFloat]]
"""Name of a cluster -> the weight of each of its words."""
_TRUST = 3.0
"""Pseudo-counts: each cluster gets so many further questions at the worker's overall accuracy, since it has few."""


class Tally(Settings):
    """One worker's results on one cluster."""

    right: float = Field(ge=0, allow_inf_nan=False)
    """Right answers; a question that was sampled several times counts with its share of right answers."""
    questions: int = Field(ge=0)
    cost_usd: float = Field(ge=0, allow_inf_nan=False)
    """Dollars of all answers together, one for each question."""

    @model_validator(mode="after")
    def _at_most_all(self) -> Self:
        if self.right > self.questions:
            raise ValueError("more right answers than questions")
        return self

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            right=self.right + other.right,
            questions=self.questions + other.questions,
            cost_usd=self.cost_usd + other.cost_usd,
        )


class Ratings(Settings):
    """A ratings file."""

    format: Literal[1] = 1
    kinds: Kinds
    workers: Mapping[str, Mapping[str, Tally]]
    """Name of a worker in the pool -> cluster -> tally."""

    @classmethod
    def open(cls, path: Path) -> Ratings:
        """Read a file.

        Raises:
            ConfigError: it cannot be read, or is no ratings file.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}.") from None
        except ValidationError as error:
            raise ConfigError(f"{path} is no ratings file; make one with: podium rate.") from error

    def joined(self, other: Ratings) -> Ratings:
        """These ratings with the other's workers added. Where both have a worker, the other's tallies win."""
        return Ratings(kinds=self.kinds, workers={**self.workers, **other.workers})

    def kind_of(self, question: str) -> str:
        """The cluster with the highest weight of the question's words; empty if it has no word of any."""
        return self._found(question)

    def rated(self, profile: Profile, question: str) -> Profile:
        """The profile with the worker's rating for this question; unchanged for a worker that was not measured."""
        tallies = self.workers.get(profile.name)
        if tallies is None:
            return profile
        kind = self.kind_of(question)
        own = tallies.get(kind, Tally(right=0, questions=0, cost_usd=0))
        everywhere = self.totals[profile.name]
        share = _TRUST / max(1, everywhere.questions)
        joined = own.questions + _TRUST
        rating = Rating(
            kind=kind,
            accuracy=(own.right + share * everywhere.right) / joined,
            cost_usd=(own.cost_usd + share * everywhere.cost_usd) / joined,
            questions=own.questions,
        )
        return profile.model_copy(update={"rating": rating})

    @cached_property
    def totals(self) -> Mapping[str, Tally]:
        """Each worker's tally over all clusters."""
        none = Tally(right=0, questions=0, cost_usd=0)
        return {name: sum(tallies.values(), none) for name, tallies in self.workers.items()}

    @cached_property
    def _by_word(self) -> Mapping[str, list[tuple[str, float]]]:
        found: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for kind, words in self.kinds.items():
            for word, weight in words.items():
                found[word].append((kind, weight))
        return found

    @cached_property
    def _found(self) -> Callable[[str], str]:
        """`_find` with a cache, since it is slow and is called several times for each question."""
        return lru_cache(maxsize=4096)(self._find)

    def _find(self, question: str) -> str:
        scores: dict[str, float] = defaultdict(float)
        for word, count in Counter(WORD.findall(question.lower())).items():
            for kind, weight in self._by_word.get(word, ()):
                scores[kind] += (1 + math.log(count)) * weight
        return max(scores, key=lambda kind: scores[kind], default="")
