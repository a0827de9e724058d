"""The fronts of learned routers on recorded answers, beside the Conductor's published figures.

python runs/router-fronts.py [--rehearse] [--conductor FOLDER] POOL ...
                                            (reasoning-gym-easy, -easy-six, -hard, -hard-six; all if none)

Each router learns from the training questions. Then it chooses for each validation question, at 41 prices of a dollar.
Votes stop once they are certain. A row's columns are sums of dollars for 1,000 questions: those that the Conductor cost
at its levels of cost sensitivity. A cell has the accuracy of the router that spends the most within these dollars.
FOLDER has the tables validation-POOL.md of another Conductor; without it they are those of checkpoints/recorded.
With --rehearse a router learns from half of the training questions and is measured on the other half: no look at
validation.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from podium.baselines.learned_routers import Estimates, estimate_committees, estimate_workers
from podium.baselines.predictors import METHODS, fit_calibrated
from podium.baselines.scored import ScoredAnswers
from podium.evals.plan_selection import VoterPrices
from podium.evals.stats import mean_interval
from podium.orchestrator.team import open_pool
from podium.ratings.answers import (
    Answers,
    Floats,
    committee_accuracy,
    committee_cost,
    measurable,
    read_answers,
    scored_answers,
    select,
)
from podium.tasks import ALL, open_tasks

POOLS = ("reasoning-gym-easy", "reasoning-gym-easy-six", "reasoning-gym-hard", "reasoning-gym-hard-six")
_PRICES = (0.0, *np.geomspace(0.003, 300, 40))
"""Accuracy that an answer at the mean price must bring."""
_PUBLISHED = re.compile(r"\| Conductor, thrift (\d) \| ([\d.]+) % .* \| ([\d.]+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Split:
    """The answers to some questions, and the prices by which a vote calls its workers."""

    answers: Answers
    prices: VoterPrices

    @classmethod
    def read(cls, name: str, split: str) -> Split:
        pool = open_pool(f"configs/pools/{name}.toml")
        recording = f"runs/recordings/{name.removesuffix('-six')}.parquet"
        tasks = list(open_tasks(recording, split, size=ALL, pool=pool))
        answers = asyncio.run(read_answers(tasks, measurable(pool, tasks)))
        return cls(answers, VoterPrices.of_pool(pool, answers.workers, answers.texts))

    def part(self, questions: np.ndarray) -> Split:
        prices = VoterPrices(self.prices.measured_QW[questions], self.prices.listed_QW[questions])
        return Split(select(self.answers, questions), prices)

    @property
    def scored(self) -> ScoredAnswers:
        return scored_answers(self.answers, early_stop=True, price_of=self.prices.among)


def main(names: Sequence[str], tables: Path, *, rehearse: bool) -> None:
    for name in names or POOLS:
        known = Split.read(name, "train")
        if rehearse:
            halves = np.array_split(np.random.default_rng(0).permutation(len(known.answers.texts)), 2)
            held_out, known = known.part(np.sort(halves[1])), known.part(np.sort(halves[0]))
        else:
            held_out = Split.read(name, "validation")
        show(name, tables, known, held_out, "the other half of training" if rehearse else "validation")


def show(name: str, tables: Path, known: Split, held_out: Split, split: str) -> None:
    """Print the table of one pool."""
    answers = known.answers
    best = int(answers.accuracy.argmax())
    alone_Q, usd = held_out.answers.score_QW[:, best], 1000 * held_out.answers.cost[best]
    table = (tables / f"validation-{name}.md").read_text(encoding="utf-8")
    published = [(level, float(right), float(cost)) for level, right, cost in _PUBLISHED.findall(table)]
    published.sort(key=lambda row: row[2])
    print(f"\n## {name}: {len(answers.texts):,} training questions; {len(alone_Q):,} of {split}")
    print(
        f"\n{answers.workers[best]} alone: {_percent(alone_Q)} at ${usd:.3g}. Recorded; $ for 1,000 questions.\n"
    )
    print(
        f"| planner | {' | '.join(f'${cost:.3g}' for *_, cost in published)} | best | as good as the best single |"
    )
    print(f"| --- |{' ---: |' * (len(published) + 2)}")
    conductor = " | ".join(f"{right:.1f} (level {level})" for level, right, _ in published)
    reached = [cost for _, right, cost in published if right >= 100 * alone_Q.mean()]
    print(f"| Conductor of {tables} | {conductor} | | {_dollars(reached)} |", flush=True)

    @cache
    def figures(members: tuple[str, ...]) -> tuple[Floats, Floats]:
        numbers = tuple(answers.workers.index(worker) for worker in members)
        return committee_accuracy(held_out.answers, numbers), committee_cost(
            held_out.answers, numbers, early_stop=True, price_QW=held_out.prices.among(numbers)
        )

    scored = known.scored
    for method in METHODS:
        each = fit_calibrated(method, scored.texts, scored.score_QW)
        for kind, estimate in (("router", estimate_workers), ("committee-router", estimate_committees)):
            points = front(estimate(scored, each), held_out.answers.texts, figures, answers.cost.mean())
            cells = [_percent(_within(points, cost)) for *_, cost in published]
            top = max(points, key=lambda point: point[1].mean())
            good = [1000 * cost for cost, right_Q in points if right_Q.mean() >= alone_Q.mean()]
            row = f"{' | '.join(cells)} | {_percent(top[1])} at ${1000 * top[0]:.3g} | {_dollars(good)}"
            print(f"| {kind}:{method} | {row} |", flush=True)


def front(
    estimates: Estimates,
    texts: Sequence[str],
    figures: Callable[[tuple[str, ...]], tuple[Floats, Floats]],
    usual_usd: float,
) -> list[tuple[float, Floats]]:
    """For each price of a dollar: the mean dollars, and [Q] the score; the cheapest first."""
    score_QC, usd_QC = estimates.score(texts), estimates.dollars(texts)
    points = []
    for price in _PRICES:
        chosen_Q = (score_QC - price / usual_usd * usd_QC).argmax(axis=1)
        right_Q, cost_Q = np.empty(len(texts)), np.empty(len(texts))
        for committee in np.unique(chosen_Q):
            right, cost = figures(estimates.committees[committee])
            right_Q[chosen_Q == committee] = right[chosen_Q == committee]
            cost_Q[chosen_Q == committee] = cost[chosen_Q == committee]
        points.append((float(cost_Q.mean()), right_Q))
    return sorted(points, key=lambda point: point[0])


def _within(points: Sequence[tuple[float, Floats]], usd: float) -> Floats:
    """[Q]: the scores of the router that spends the most within these dollars for 1,000 questions."""
    return max(
        ((cost, right_Q) for cost, right_Q in points if 1000 * cost <= usd),
        key=lambda point: point[0],
        default=(0.0, np.zeros(0)),
    )[1]


def _percent(right_Q: Floats) -> str:
    found = mean_interval(right_Q.tolist()) if len(right_Q) else None
    return "–" if found is None else f"{found.mean:.1%} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def _dollars(costs: Sequence[float]) -> str:
    return f"${min(costs):.3g}" if costs else "never"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The fronts of learned routers beside a Conductor's.")
    parser.add_argument("pools", nargs="*", metavar="POOL")
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--conductor", type=Path, default=Path("checkpoints/recorded"), metavar="FOLDER")
    options = parser.parse_args()
    main(options.pools, options.conductor, rehearse=options.rehearse)
