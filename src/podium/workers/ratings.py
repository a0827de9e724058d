"""Ratings: a file, named by a pool, with the measured figures of each worker on each cluster of questions.

A *cluster* is a group of questions with words in common. Only the wording of a question decides its cluster. A worker's
*tally* says for a cluster how many questions were measured, how many the worker answered rightly, and what the answers
cost. A new worker needs only tallies: a planner that reads ratings does not have to be trained again.
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

from podium.config import Settings, read_file
from podium.errors import ConfigError
from podium.types import Profile, Rating

WORD = re.compile(r"[^\W\d_]{2,}")
"""Matches a word of a question, which has two letters or more."""
ClusterWords = Mapping[str, Mapping[str, FiniteFloat]]
"""For each cluster, by name, the weight of each of its words."""
_PSEUDO_COUNT = 3.0
"""How many questions at the worker's overall accuracy are added to each cluster, since a cluster has few questions."""


class WordWeights(Settings):
    """A linear model of accuracy: what each word of a question adds to a worker's overall accuracy."""

    idf: Mapping[str, FiniteFloat]
    """The inverse document frequency of each word that the model knows."""
    weights: Mapping[str, Mapping[str, FiniteFloat]]
    """For each worker, by name, the weight of each word."""

    def gain(self, worker: str, question: str) -> float:
        """The accuracy that the question's words add for the worker. 0 for a worker that the model does not know."""
        weights = self.weights.get(worker, {})
        return sum(value * weights.get(word, 0.0) for word, value in self._cached_vector(question).items())

    @cached_property
    def _cached_vector(self) -> Callable[[str], Mapping[str, float]]:
        """`_tfidf` with a cache, since a question's vector is needed once for each worker."""
        return lru_cache(maxsize=4096)(self._tfidf)

    def _tfidf(self, question: str) -> Mapping[str, float]:
        """The question's TF-IDF vector, of length 1. It is empty if the model knows none of the question's words."""
        counts = Counter(word for word in WORD.findall(question.lower()) if word in self.idf)
        values = {word: (1 + math.log(count)) * self.idf[word] for word, count in counts.items()}
        length = math.hypot(*values.values())
        return {word: value / length for word, value in values.items()}


class Tally(Settings):
    """One worker's figures on one cluster."""

    right: float = Field(ge=0, allow_inf_nan=False)
    """Right answers. A question that was sampled several times counts with its share of right answers."""
    questions: int = Field(ge=0)
    cost_usd: float = Field(ge=0, allow_inf_nan=False)
    """Dollars for one answer to each of the questions."""

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
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
    clusters: ClusterWords
    workers: Mapping[str, Mapping[str, Tally]]
    """For each worker, by its name in the pool, the tally of each cluster."""
    words: WordWeights | None = None
    """Predicts accuracies from a question's words. If it is None, the accuracies of the question's cluster hold."""

    @classmethod
    def open(cls, path: Path) -> Ratings:
        """Read a file.

        Raises:
            ConfigError: the file cannot be read, or is no ratings file.
        """
        try:
            return cls.model_validate_json(read_file(path))
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}.") from None
        except ValidationError as error:
            raise ConfigError(f"{path} is no ratings file; make one with: podium rate.") from error

    @property
    def document(self) -> bytes:
        """The content of a file that `open` reads."""
        return self.model_dump_json(indent=1, exclude_none=True).encode() + b"\n"

    def joined(self, other: Ratings) -> Ratings:
        """The ratings of the workers in both, with the clusters of these. For a worker in both, the tallies of `other`
        count."""
        return Ratings(clusters=self.clusters, workers={**self.workers, **other.workers})

    def rated(self, profile: Profile, question: str) -> Profile:
        """The profile with the worker's rating for this question. A worker that was not measured keeps its profile."""
        tallies = self.workers.get(profile.name)
        if tallies is None:
            return profile
        cluster = self.cluster_of(question)
        own = tallies.get(cluster, Tally(right=0, questions=0, cost_usd=0))
        everywhere = self.totals[profile.name]
        share = _PSEUDO_COUNT / max(1, everywhere.questions)
        joined = own.questions + _PSEUDO_COUNT
        accuracy = (own.right + share * everywhere.right) / joined
        if self.words is not None:
            overall = everywhere.right / max(1, everywhere.questions)
            accuracy = min(1.0, max(0.0, overall + self.words.gain(profile.name, question)))
        rating = Rating(
            cluster=cluster,
            accuracy=accuracy,
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
        """For each word, the clusters that have it, with its weight in them."""
        by_word: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for cluster, words in self.clusters.items():
            for word, weight in words.items():
                by_word[word].append((cluster, weight))
        return by_word

    @cached_property
    def cluster_of(self) -> Callable[[str], str]:
        """A function that gives the cluster whose words have the most weight in a question, or "" if it has none of the
        words. Results are cached, since each question's cluster is needed several times."""
        return lru_cache(maxsize=4096)(self._find_cluster)

    def _find_cluster(self, question: str) -> str:
        scores: dict[str, float] = defaultdict(float)
        for word, count in Counter(WORD.findall(question.lower())).items():
            for cluster, weight in self._by_word.get(word, ()):
                scores[cluster] += (1 + math.log(count)) * weight
        return max(scores, key=lambda cluster: scores[cluster], default="")
