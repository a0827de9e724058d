"""Chooses the pool of each question: the whole pool, or a random part of it in a random order.

A policy that is trained on a single pool memorises the numbers of workers. A policy that is trained on many pools has
to read the profiles. A policy whose workers sometimes fail learns not to depend on a single worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Literal

from pydantic import Field

from podium.config import Settings, suggestion
from podium.errors import ConfigError
from podium.workers.pool import Pool
from podium.workers.replacements import FailingWorker

NAMES = (
    "ada", "bram", "cleo", "dora", "egon", "gus", "hana", "ivo", "jana", "kai", "lena", "milo", "nora", "otto",
    "pia", "quin", "rosa", "sven", "tara", "udo", "vera", "wim", "xena", "yuri", "zoe", "alma", "boris", "celia",
    "dirk", "elsa", "fritz", "greta", "hugo", "iris", "jonas", "karla", "luis", "maja", "nils", "olga", "paul",
    "rita", "simon", "tilda", "ursa", "viktor", "wanda", "yara",
)  # fmt: skip
"""Names of the members of synthetic teams, and of workers whose own names planners must not know."""


class PoolSampling(Settings):
    """How the pool of a question is drawn from the workers of the team file."""

    random: bool = False
    """Whether each question gets a random pool. If not, each question gets all workers in the order of the file."""
    min_workers: int = Field(default=4, ge=1)
    """The fewest workers of a random pool."""
    max_workers: int = Field(default=7, ge=1)
    """The most workers of a random pool."""
    without: tuple[str, ...] = ()
    """Names of workers that are never drawn, so that a test can offer workers that the policy has never seen."""
    subsets: Literal["all", "train", "test"] = "all"
    """Which sets of workers are drawn. "train" leaves out a quarter of all sets, whatever their order. "test" draws
    only from that quarter, so that a test can offer sets that a training with "train" has never seen."""
    renamed: bool = False
    """Whether the planner sees random names of the workers in each question, except for tools. Then a policy has to
    read the descriptions. A policy that learned the names could not use a new worker."""
    failure_probability: float = Field(default=0.0, ge=0, lt=1)
    """The probability that a drawn worker fails all calls of a question, in all rollouts of that question. Votes,
    calculators and code tools never fail in this way."""

    def offered(self, pool: Pool) -> list[int]:
        """The numbers of the workers of `pool` that questions may have."""
        return [number for number, name in enumerate(pool.names) if name not in self.without]


class PoolSampler:
    """Draws the pool of each question.

    Raises:
        ConfigError: no worker has a name in `without`, or there are too few workers for `min_workers`, `max_workers` or
            `subsets`.
    """

    def __init__(self, pool: Pool, settings: PoolSampling) -> None:
        for name in settings.without:
            if name not in pool.names:
                raise ConfigError(
                    f"pool_sampling.without names {name!r}, which is not in the pool; {suggestion(name, pool.names)}"
                )
        offered = settings.offered(pool)
        if settings.random and not settings.min_workers <= settings.max_workers <= len(offered):
            raise ConfigError(
                f"Random pools of {settings.min_workers} to {settings.max_workers} cannot be drawn from {len(offered)} "
                "workers; set pool_sampling.min_workers and pool_sampling.max_workers to fit."
            )
        if settings.renamed and len(offered) > len(NAMES):
            raise ConfigError(
                f"There are names for {len(NAMES)} workers; leave renamed out, or some workers."
            )
        if settings.subsets != "all" and not settings.random:
            raise ConfigError(
                'pool_sampling.subsets is for random pools; set random = true, or subsets = "all".'
            )
        self._pool, self._settings, self._kept = pool, settings, offered
        self._drawn("")  # This raises now and not in the middle of a run.

    def draw(self, name: str) -> Pool:
        """The pool of the question with this name. The same name always gives the same pool, with the same workers
        failing."""
        pool = self._pool.subset(self._drawn(name))
        if self._settings.renamed:
            workers = pool.answering
            pool = pool.aliased(
                dict(zip(workers, Random(f"names/{name}").sample(NAMES, len(workers)), strict=True))
            )
        rate = self._settings.failure_probability
        if not rate:
            return pool
        return pool.replaced(
            {
                worker.profile.name: FailingWorker(worker)
                for worker in pool
                if not worker.is_tool and Random(f"failing/{name}/{worker.profile.name}").random() < rate
            }
        )

    def _drawn(self, name: str) -> Sequence[int]:
        if not self._settings.random:
            return self._kept
        rng = Random(f"pool/{name}")
        for _ in range(_TRIES):
            drawn = rng.sample(
                self._kept, rng.randint(self._settings.min_workers, self._settings.max_workers)
            )
            if self._settings.subsets in ("all", _part(self._pool.names[i] for i in drawn)):
                return drawn
        raise ConfigError(
            f"No set of {self._settings.min_workers} to {self._settings.max_workers} workers of this pool is in the "
            f'part "{self._settings.subsets}"; draw from more workers, or set subsets = "all".'
        )


_TRIES = 10_000
_TEST_SHARE = 0.25
"""The share of the sets of workers that are for tests."""


def _part(names: Iterable[str]) -> str:
    """The part to which a set of workers belongs, which depends only on the names."""
    return "test" if Random(f"subset/{sorted(names)}").random() < _TEST_SHARE else "train"
