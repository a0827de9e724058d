"""How often each planner calls a worker that turns bad during the test, before and after; and where a planner that
leaves the worker gains and loses: on questions for which it is called otherwise, and on the others.

    python lab/runs/decline.py RUN

RUN is the folder of a suite whose pool has `degradation` and whose first row leaves the worker (`quarantine_failing`).
Only questions that came at least 50 after the worker turned bad count; until then the first row may still call it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from podium.evals.answer_files import AnswerFiles
from podium.evals.evaluation import Evaluation, accuracy, seed_of
from podium.evals.suite.comparisons import evaluations_of, share_text
from podium.evals.suite.manifest import SUITE, SuiteManifest
from podium.evals.suite.suite_settings import WorkerDegradation
from podium.rollout import Rollout

SOON = 50
"""So many questions after a worker turned bad are counted apart from the later ones. A worker without a call in so many
in a row was left."""


def before_and_after(decline: WorkerDegradation, evaluations: Mapping[str, Evaluation]) -> Iterator[str]:
    """How often each row calls the worker, and how often it is right, before and after the worker turns bad."""
    for label, evaluation in evaluations.items():
        by_seed = in_order(evaluation)
        bounds = (0, decline.at, decline.at + SOON, None)
        told = []
        for begin, end in pairwise(bounds):
            part = [rollout for rollouts in by_seed.values() for rollout in rollouts[begin:end]]
            calling = sum(calls_worker(rollout, decline.worker) for rollout in part)
            told.append((calling / max(1, len(part)), accuracy(part)))
        called, right = (
            ", ".join(share_text(share, 0) for share in shares) for shares in zip(*told, strict=True)
        )
        left: list[str] = []
        for (seed, _), rollouts in by_seed.items():
            calls = [calls_worker(rollout, decline.worker) for rollout in rollouts]
            after = left_after(calls[decline.at :])
            usual = 100 * sum(calls[: decline.at]) / max(1, decline.at)
            left.append(f"seed {seed} {'never' if after is None else after} ({usual:.0f} %)")
        yield (
            f"{label}: it calls {decline.worker} for {called} % of the questions before {decline.worker} turns bad, of "
            f"the next {SOON}, and of the others; of these {right} % are answered rightly. After so many questions "
            f"{SOON} in a row do without {decline.worker} (in brackets: its share of calls before): {', '.join(left)}."
        )


def in_order(evaluation: Evaluation) -> dict[tuple[str, str], list[Rollout]]:
    """The rollouts of each seed and repeat, by both, in the order in which the questions were asked."""
    by_seed: dict[tuple[str, str], list[Rollout]] = defaultdict(list)
    for rollout in evaluation.rollouts:
        by_seed[seed_of(rollout), rollout.trace.seed.split("/")[-1]].append(rollout)
    for rollouts in by_seed.values():
        rollouts.sort(key=lambda rollout: rollout.trace.started_at)
    return by_seed


def calls_worker(rollout: Rollout, worker: str) -> bool:
    """Whether a step of the question was given to the worker."""
    return any(span.worker == worker for span in rollout.trace.spans)


def left_after(calls: Sequence[bool]) -> int | None:
    """After how many questions the first `SOON` in a row have no call, or None if nowhere so many have none."""
    return next((k for k in range(len(calls) - SOON + 1) if not any(calls[k : k + SOON])), None)


def show(run: Path) -> None:
    """A table for each table of the suite with a worker that turns bad."""
    for table in SuiteManifest.load(run / SUITE).tables:
        decline = table.settings.pool.degradation
        if decline is None:
            continue
        worker, begin = decline.worker, decline.at + SOON
        evaluations = evaluations_of(table, AnswerFiles(run))
        print("\n\n".join(before_and_after(decline, evaluations)))
        (first, leaving), *others = evaluations.items()
        print(f"{table.label}: questions from the {begin}th on\n")
        print(f"| row | seed | questions | calls {worker} | right | {first}: right on these |")
        print("| --- | ---: | ---: | --- | ---: | ---: |")
        left = {
            (key, rollout.task): rollout
            for key, rollouts in in_order(leaving).items()
            for rollout in rollouts
        }
        for label, evaluation in others:
            for key, rollouts in in_order(evaluation).items():
                for needs in (True, False):
                    part = [rollout for rollout in rollouts[begin:] if calls_worker(rollout, worker) == needs]
                    same = [left[key, rollout.task] for rollout in part]
                    right = [f"{share_text(accuracy(found), 1)} %" for found in (part, same)]
                    cells = (label, key[0], str(len(part)), "yes" if needs else "no", *right)
                    print(f"| {' | '.join(cells)} |")
        print()


if __name__ == "__main__":
    show(Path(sys.argv[1]))
