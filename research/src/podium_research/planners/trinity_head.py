"""TRINITY's head: text to features, features to a worker and a role, and the training by sep-CMA-ES.

`trinity` is the planner. It imports this module only where it opens a head, since this one loads NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from podium.errors import ConfigError
from podium.evals.json_file import JsonFile
from podium.planners.answer_matrix import AnswerMatrix, Floats
from podium_research.planners.routers import text_features

Role = Literal["thinker", "worker", "verifier"]
ROLES: tuple[Role, ...] = ("thinker", "worker", "verifier")
_TEXT_FEATURES = len(text_features(""))
FEATURES = _TEXT_FEATURES + len(ROLES) + 1
"""Hashed words of all that was written, then one that is 1: the last turn's role, or that there was none."""
GENERATIONS = 60
"""How long the paper trains a head."""


class Head(JsonFile):
    """A bias-free linear head."""

    description = "a head of TRINITY"

    workers: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    """[W + 3, FEATURES]: a row for each worker, then one for each role."""

    @classmethod
    def untrained(cls, workers: Sequence[str]) -> Self:
        """Always the first worker. It answers, and then verifies; after a REVISE it answers again."""
        weights = np.zeros((len(workers) + len(ROLES), FEATURES))
        answers, verifies = len(workers) + ROLES.index("worker"), len(workers) + ROLES.index("verifier")
        weights[answers, _TEXT_FEATURES:] = 1.0
        weights[verifies, _TEXT_FEATURES + ROLES.index("worker")] = 2.0
        return cls.of(workers, weights)

    @classmethod
    def of(cls, workers: Sequence[str], weights: Floats) -> Self:
        return cls(workers=tuple(workers), weights=tuple(map(tuple, weights.tolist())))

    @model_validator(mode="after")
    def _fits(self) -> Self:
        rows = len(self.workers) + len(ROLES)
        if [len(row) for row in self.weights] != [FEATURES] * rows or not self.workers:
            raise ValueError(
                f"a head of {len(self.workers)} workers needs {rows} rows of {FEATURES} weights; train one"
            )
        return self

    def choose(self, text: str, last: Role | None) -> tuple[str, Role]:
        """The worker and the role with the highest logits.

        Args:
            text: the question with all responses so far.
            last: the role of the turn before, or None if there was none.
        """
        logits = np.asarray(self.weights) @ features_of(text, last)
        count = len(self.workers)
        return self.workers[int(np.argmax(logits[:count]))], ROLES[int(np.argmax(logits[count:]))]


def features_of(text: str, last: Role | None) -> Floats:
    """[FEATURES] of the question with all responses so far, and of the last turn's role."""
    state = np.zeros(len(ROLES) + 1)
    state[-1 if last is None else ROLES.index(last)] = 1.0
    return np.concatenate([text_features(text), state])


def sep_cma() -> Any:
    """The class of the package `cmaes`; `ConfigError` if it is not installed."""
    try:
        from cmaes import SepCMA  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise ConfigError(
            "A head is trained with cmaes, which is not installed: pip install 'podium-research[trinity]'."
        ) from None
    return SepCMA


class Evolution:
    """sep-CMA-ES: `ask` returns the weights of a generation, and `tell` gets the reward of each.

    The defaults are the paper's, which averages 16 replications for a reward. The same arguments and rewards give the
    same weights.

    Args:
        start: the mean of the first generation.
        population: how many weights a generation has.
        sigma: the standard deviation of each weight in the first generation.

    Raises:
        ConfigError: the package `cmaes` is not installed.
    """

    def __init__(self, start: Floats, *, population: int = 32, sigma: float = 0.03, seed: int = 0) -> None:
        self._shape = start.shape
        self._search = sep_cma()(start.ravel(), sigma, population_size=population, seed=seed)
        self._asked: list[Floats] = []

    def ask(self) -> list[Floats]:
        """The weights of the next generation, each in the shape of `start`."""
        self._asked = [self._search.ask() for _ in range(self._search.population_size)]
        return [weights.reshape(self._shape) for weights in self._asked]

    def tell(self, rewards: Sequence[float]) -> None:
        """Learn from the rewards of the weights that `ask` returned last."""
        losses = [-reward for reward in rewards]
        self._search.tell(list(zip(self._asked, losses, strict=True)))

    @property
    def mean(self) -> Floats:
        """The weights around which the next generation is drawn."""
        return np.asarray(self._search.mean).reshape(self._shape)


def train_head(scored: AnswerMatrix, *, seed: int = 0) -> Head:
    """A head whose rows of workers are trained on scored answers; single answers cannot train the rows of roles."""
    x_QF = np.stack([features_of(text, None) for text in scored.texts])
    count, questions = len(scored.workers), np.arange(len(scored.texts))
    head = Head.untrained(scored.workers)
    search = Evolution(np.zeros((count, FEATURES)), seed=seed)
    for _ in range(GENERATIONS):
        chosen_PQ = [(x_QF @ rows.T).argmax(axis=1) for rows in search.ask()]
        search.tell([float(scored.score_QW[questions, chosen_Q].mean()) for chosen_Q in chosen_PQ])
    return Head.of(scored.workers, np.vstack([search.mean, np.asarray(head.weights)[count:]]))
