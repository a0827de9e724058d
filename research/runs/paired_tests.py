"""How often the intervals and tests of a comparison err, on simulated answers whose true effects are known.

python runs/paired_tests.py [SIMULATIONS]

Simulated. Each question has a difficulty that all planners share, and each planner has strengths and weaknesses of its
own on it, which all repeats of the question share; the rest is the luck of one answer. The functions that are tested
are those of `podium.evals.stats` that every comparison uses:

- the 95 % interval of a paired difference should hold the true difference in 95 % of the simulations,
- the permutation test should call a difference that is none in 5 % of them,
- of ten planners that are compared with a first one, in at most 5 % of them any that does not differ should be called
  different after Holm's adjustment.

A second table has other intervals beside it: by the t distribution, and BCa. A third repeats the test alone, five times
as often.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from itertools import product
from statistics import NormalDist

import numpy as np
from scipy.stats import bootstrap, t

from podium.evals.stats import adjusted_p_values, paired_difference, permutation_test

BASE = 0.6
"""Accuracy of the first planner."""
LEVEL = 0.05
KINDS = {"often": (1.0, 0.7), "seldom": (4.0, 1.0), "rarely": (40.0, 2.0)}
"""How often two planners differ on a question -> standard deviations of the shared difficulty and of each planner's own
part, where that of luck is 1."""


@dataclass(frozen=True)
class Setting:
    """One cell of the table."""

    questions: int
    repeats: int
    differ: str
    """A key of `KINDS`."""
    effects: tuple[float, ...]
    """How much more accurate each other planner truly is than the first."""


@dataclass(frozen=True)
class Errors:
    """Shares of the simulations."""

    covered: float
    """The interval of the only other planner holds its true difference; NaN: there are several."""
    called: float
    """The test of the first other planner calls a difference."""
    any_false: float
    """The test of any planner calls a difference that is none."""
    any_false_by_holm: float
    """The same after Holm's adjustment for all other planners."""


def answers(rng: np.random.Generator, setting: Setting) -> np.ndarray:
    """[planner, question]: shares of right answers; the first row is the first planner's."""
    shared, own = KINDS[setting.differ]
    planners = 1 + len(setting.effects)
    spread = math.sqrt(shared**2 + own**2 + 1)
    need_P = [-spread * NormalDist().inv_cdf(BASE + effect) for effect in (0.0, *setting.effects)]
    ease_PQ = shared * rng.normal(size=setting.questions) + own * rng.normal(
        size=(planners, setting.questions)
    )
    luck_PQR = rng.normal(size=(planners, setting.questions, setting.repeats))
    right_PQR = ease_PQ[:, :, None] + luck_PQR > np.reshape(need_P, (-1, 1, 1))
    return right_PQR.mean(axis=2)


def errors(setting: Setting, simulations: int) -> Errors:
    """Simulate, and count what goes wrong."""
    rng = np.random.default_rng(list(f"paired-tests/{setting}".encode()))
    none = np.array(setting.effects) == 0
    counts = np.zeros(4)
    for _ in range(simulations):
        first, *others = answers(rng, setting)
        covered = math.nan
        if len(others) == 1:
            interval = paired_difference(others[0], first)
            assert interval is not None
            covered = interval.low - 1e-9 <= setting.effects[0] <= interval.high + 1e-9
        p_values = [permutation_test(other, first) for other in others]
        called = np.array(p_values) <= LEVEL
        by_holm = np.array(adjusted_p_values(p_values)) <= LEVEL
        counts += covered, called[0], called[none].any(), by_holm[none].any()
    return Errors(*counts / simulations)


def settings() -> Iterator[Setting]:
    """The sizes that Podium uses: two planners, and tables of eleven, of which all or half do not differ."""
    for effects in ((0.0,), (0.05,), (0.0,) * 10, (0.1,) * 5 + (0.0,) * 5):
        yield from (Setting(*size, effects) for size in product((100, 400, 600), (1, 3), ("often", "seldom")))


def main(simulations: int = 2000) -> None:
    """Print the tables in Markdown."""
    print(f"{simulations} simulations; shares in percent.\n")
    headings = (
        "questions",
        "repeats",
        "they differ",
        "true effects",
        "interval holds it",
        "called different",
    )
    _print_row(*headings, "any false call", "after Holm")
    _print_row(*["---"] * (len(headings) + 2))
    cells = list(settings())
    with ProcessPoolExecutor() as pool:
        for cell, found in zip(cells, pool.map(errors, cells, [simulations] * len(cells)), strict=True):
            sizes = sorted({*cell.effects}, reverse=True)
            effects = ", ".join(f"{cell.effects.count(size)} of {size * 100:g}" for size in sizes)
            _print_row(cell.questions, cell.repeats, cell.differ, effects, *map(_percent, astuple(found)))
        print(f"\n{simulations // 4} simulations; how often each interval holds the true difference.\n")
        _print_row(*headings[:4], "differ on", "bootstrap", "t", "BCa")
        _print_row(*["---"] * 8)
        cells = [Setting(*size, (0.02,)) for size in product((100, 400), (1, 3), KINDS)]
        every = zip(cells, pool.map(coverages, cells, [simulations // 4] * len(cells)), strict=True)
        for cell, shares in every:
            _print_row(cell.questions, cell.repeats, cell.differ, "1 of 2", *map(_percent, shares))
        print(
            f"\n{simulations * 5} simulations; differences called between two planners that do not differ.\n"
        )
        _print_row(*headings[:3], headings[5])
        _print_row(*["---"] * 4)
        cells = [Setting(*size, (0.0,)) for size in product((100, 400, 600), (1, 3), KINDS)]
        for cell, share in zip(
            cells, pool.map(false_calls, cells, [simulations * 5] * len(cells)), strict=True
        ):
            _print_row(cell.questions, cell.repeats, cell.differ, _percent(share))


def coverages(setting: Setting, simulations: int) -> tuple[float, ...]:
    """The share of questions on which two planners differ, and the shares of simulations in which the bootstrap, t and
    BCa intervals hold the true difference."""
    rng = np.random.default_rng(list(f"paired-tests/others/{setting}".encode()))
    counts = np.zeros(4)
    for _ in range(simulations):
        first, second = answers(rng, setting)
        difference = second - first
        used = paired_difference(second, first)
        assert used is not None
        mean, error = difference.mean(), difference.std(ddof=1) / math.sqrt(len(difference))
        half = t.ppf(0.975, len(difference) - 1) * error
        bounds = [(used.low, used.high), (mean - half, mean + half), (mean, mean)]
        if error > 0:
            accelerated = bootstrap((difference,), np.mean, method="BCa", n_resamples=2000, rng=rng)
            bounds[2] = accelerated.confidence_interval
        held = [low - 1e-9 <= setting.effects[0] <= high + 1e-9 for low, high in bounds]
        counts += (difference != 0).mean(), *held
    return tuple(counts / simulations)


def false_calls(setting: Setting, simulations: int) -> float:
    """The share of simulations in which the test calls a difference between two planners that are equally good."""
    rng = np.random.default_rng(list(f"paired-tests/false/{setting}".encode()))
    return sum(permutation_test(*answers(rng, setting)) <= LEVEL for _ in range(simulations)) / simulations


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{share * 100:.1f}"


def _print_row(*columns: object) -> None:
    print(f"| {' | '.join(map(str, columns))} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
