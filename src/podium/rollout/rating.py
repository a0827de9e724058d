"""Rates workers by what a recording holds of them: for each kind of question how many they answered rightly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from podium.rollout.answers import Answers, read_answers
from podium.tasks.task import Task
from podium.workers.base import Worker
from podium.workers.calculator import CalculatorWorker
from podium.workers.ratings import Kinds, Ratings, Tally
from podium.workers.replay import ReplayWorker

_FIGURES = 5
"""Significant figures of dollars."""


def rate(answers: Answers, kinds: Kinds) -> Ratings:
    """The tallies of all workers over these kinds."""
    empty = Ratings(kinds=kinds, workers={})
    kind_Q = np.array([empty.kind_of(text) for text in answers.texts])
    return Ratings(
        kinds=kinds,
        workers={
            worker: {
                str(kind): Tally(
                    right=round(float(answers.score_QW[kind_Q == kind, number].sum()), 3),
                    questions=int((kind_Q == kind).sum()),
                    cost_usd=float(f"{answers.cost_QW[kind_Q == kind, number].sum():.{_FIGURES}g}"),
                )
                for kind in np.unique(kind_Q)
            }
            for number, worker in enumerate(answers.workers)
        },
    )


async def rate_pool(workers: Iterable[Worker], tasks: Sequence[Task], kinds: Kinds) -> Ratings:
    """The tallies of those of whom something tells how right they are.

    Recorded workers are rated on all questions, calculators on those with a gold answer; where there is none, and of
    other workers, nothing is said.

    Args:
        tasks: `RecordedTasks` of these workers.
    """
    pool = list(workers)
    recorded = [worker for worker in pool if isinstance(worker, ReplayWorker)]
    calculators = [worker for worker in pool if isinstance(worker, CalculatorWorker)]
    ratings = Ratings(kinds=kinds, workers={})
    for measured, asked in ((recorded, tasks), (calculators, with_gold(tasks))):
        if measured and asked:
            ratings = ratings.joined(rate(await read_answers(asked, measured), kinds))
    names = [worker.profile.name for worker in pool]
    return Ratings(
        kinds=kinds, workers={name: ratings.workers[name] for name in names if name in ratings.workers}
    )


def with_gold(tasks: Iterable[Task]) -> list[Task]:
    """Those that have a gold answer: by them anybody's answer can be judged."""
    return [task for task in tasks if task.gold]
