"""Where a planner that leaves a worker which turned bad gains and loses: on questions for which the worker is called
otherwise, and on the others.

    python lab/runs/decline.py RUN

RUN is the folder of a suite whose pool has `decline` and whose first row leaves the worker (`quarantine_failing`). Only
questions that came at least 50 after the worker turned bad count; until then the first row may still call it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from podium.evals.evaluation import accuracy
from podium.evals.suite.manifest import SUITE, Manifest
from podium.evals.suite.results import Results
from podium.evals.suite.tables import SOON, calls_worker, evaluations_of, in_order, points


def show(run: Path) -> None:
    """A table for each table of the suite with a worker that turns bad."""
    for table in Manifest.load(run / SUITE).tables:
        if table.decline is None:
            continue
        worker, begin = table.decline.worker, table.decline.at + SOON
        (first, leaving), *others = evaluations_of(table, Results(run)).items()
        print(f"{table.label}: questions from the {begin}th on\n")
        print(f"| row | seed | questions | calls {worker} | right | {first}: right on these |")
        print("| --- | ---: | ---: | --- | ---: | ---: |")
        left = {
            (key, rollout.task_id): rollout
            for key, rollouts in in_order(leaving).items()
            for rollout in rollouts
        }
        for label, evaluation in others:
            for key, rollouts in in_order(evaluation).items():
                for needs in (True, False):
                    part = [rollout for rollout in rollouts[begin:] if calls_worker(rollout, worker) == needs]
                    same = [left[key, rollout.task_id] for rollout in part]
                    right = [f"{points(accuracy(found), 1)} %" for found in (part, same)]
                    cells = (label, key[0], str(len(part)), "yes" if needs else "no", *right)
                    print(f"| {' | '.join(cells)} |")
        print()


if __name__ == "__main__":
    show(Path(sys.argv[1]))
