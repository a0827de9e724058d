"""Where a planner that leaves a worker which turned bad gains and loses: on questions for which the worker is called
otherwise, and on the others.

    python runs/decline.py RUN

RUN is the folder of a suite whose pool has `decline` and whose first row leaves the worker (`leave_failing`). Only
questions that came at least 50 after the worker turned bad count; until then the first row may still call it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from podium.evals.evaluation import Evaluation
from podium.evals.suite.manifest import SUITE, Manifest
from podium.evals.suite.results import Results
from podium.evals.suite.tables import evaluations_of
from podium.rollout import Rollout

LATER = 50
"""Questions after the worker turned bad that do not count."""


def by_seed(evaluation: Evaluation) -> dict[str, list[Rollout]]:
    """The rollouts of each seed in the order in which they were asked."""
    seeds: dict[str, list[Rollout]] = {}
    for rollout in sorted(evaluation.rollouts, key=lambda rollout: rollout.trace.started_at):
        seeds.setdefault(rollout.trace.seed.split("/")[1], []).append(rollout)
    return seeds


def calls(rollout: Rollout, worker: str) -> bool:
    return any(span.worker == worker for span in rollout.trace.spans)


def percent(rollouts: list[Rollout]) -> str:
    return f"{100 * sum(rollout.correct for rollout in rollouts) / max(1, len(rollouts)):.1f} %"


def show(run: Path) -> None:
    """A table for each table of the suite with a worker that turns bad."""
    for table in Manifest.load(run / SUITE).tables:
        if table.decline is None:
            continue
        worker, begin = table.decline.worker, table.decline.at + LATER
        (first, leaving), *others = evaluations_of(table, Results(run)).items()
        print(f"{table.label}: questions from the {begin}th on\n")
        print(f"| row | seed | questions | calls {worker} | right | {first}: right on these |")
        print("| --- | ---: | ---: | --- | ---: | ---: |")
        left = {
            (seed, rollout.task_id): rollout
            for seed, rollouts in by_seed(leaving).items()
            for rollout in rollouts
        }
        for label, evaluation in others:
            for seed, rollouts in by_seed(evaluation).items():
                for needs in (True, False):
                    part = [rollout for rollout in rollouts[begin:] if calls(rollout, worker) == needs]
                    same = [left[seed, rollout.task_id] for rollout in part]
                    cells = (label, seed, len(part), "yes" if needs else "no", percent(part), percent(same))
                    print(f"| {' | '.join(map(str, cells))} |")
        print()


if __name__ == "__main__":
    show(Path(sys.argv[1]))
