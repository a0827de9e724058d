"""Measures whether a planner chooses workers by the skills that a question needs, and more steps for more hops.

The first measure is the mutual information of skill and worker, tested by permuting plans among questions; the second
is the rank correlation of hops and steps. Both use `Task.facts` ("hops", "skills"), which no planner sees. Tests
compare them with scipy and scikit-learn.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from podium.evals.evaluation import Evaluation
from podium.evals.stats import Interval
from podium.types import FrozenModel
from podium.workflow import Workflow, needed_steps

Alignment = Literal["in order", "one step a hop", "one hop"]
"""Which step is assumed to do which hop. A plan does not say, so there are three alignments:
"in order": step i does hop i. It uses all plans, but is wrong for a plan with another order of work;
"one step a hop": the same, only for plans with as many steps as the question has hops: more exact, for fewer plans;
"one hop": only questions with one hop, whose first step does it: nothing can be misaligned."""

ALIGNMENTS: tuple[Alignment, ...] = ("in order", "one step a hop", "one hop")

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Routing(FrozenModel):
    """Mutual information, in nats, of the skill that a hop needs and the worker of its step."""

    alignment: Alignment
    pairs: int
    """Pairs of skill and worker that were counted."""
    nats: float
    null_mean: float
    """The mean of `nats` when plans are permuted among questions with the same number of hops."""
    null_high: float
    """95 % of the permutations stay below this."""

    @property
    def excess(self) -> float:
        """`nats` above chance: by chance alone, mutual information is above zero, the more so for larger tables."""
        return self.nats - self.null_mean

    @property
    def bits(self) -> float:
        """`nats` in bits."""
        return self.nats / math.log(2)

    @property
    def by_question(self) -> bool:
        """Whether `nats` is above 95 % of the permutations."""
        return self.pairs > 0 and self.nats > self.null_high


def measure_routing(
    evaluation: Evaluation, *, alignment: Alignment = "in order", permutations: int = 500, seed: str = "0"
) -> Routing:
    """Measure how much the choice of workers depends on the skills that a question needs.

    Under the null hypothesis, all plans of a question are given unchanged to another question with the same number of
    hops. Whatever depends only on the number of hops or on the position in a plan stays the same, so a constant plan,
    or a planner that looks only at hops, has no excess.
    """
    skills, questions = _skills(evaluation)
    rows, columns, workers = _pairs(evaluation, questions, alignment)
    if not len(rows):
        return Routing(alignment=alignment, pairs=0, nats=0.0, null_mean=0.0, null_high=0.0)
    observed = mutual_information(skills[rows, columns], workers)
    rng = np.random.default_rng(list(f"routing/{alignment}/{seed}".encode()))
    hops = (skills >= 0).sum(axis=1)
    null = np.empty(permutations)
    for permutation in range(permutations):
        permuted = np.arange(len(skills))
        for count in np.unique(hops):
            same = np.flatnonzero(hops == count)
            permuted[same] = rng.permutation(same)
        null[permutation] = mutual_information(skills[permuted[rows], columns], workers)
    return Routing(
        alignment=alignment,
        pairs=len(rows),
        nats=observed,
        null_mean=float(null.mean()),
        null_high=float(np.quantile(null, 0.95)),
    )


def mutual_information(first: Ints, second: Ints) -> float:
    """Mutual information, in nats, of two labels (small integers from 0) observed together."""
    width = int(second.max()) + 1
    table = np.bincount(first * width + second, minlength=(int(first.max()) + 1) * width).astype(float)
    joint = table.reshape(-1, width) / len(first)
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return max(0.0, float((joint[seen] * np.log(joint[seen] / independent[seen])).sum()))


def steps_by_hops(evaluation: Evaluation, *, resamples: int = 1000, seed: str = "0") -> Interval | None:
    """Spearman's rank correlation of a question's hops and its mean number of steps.

    The interval is a percentile bootstrap over questions. Returns None if all questions have the same number of hops,
    or all plans the same number of steps.
    """
    hops = np.array([_hops(evaluation, task_id) for task_id in evaluation.by_question], dtype=float)
    steps = np.array(evaluation.scores(lambda rollout: rollout.steps))
    rho = rank_correlation(hops, steps)
    if rho is None:
        return None
    rng = np.random.default_rng(list(f"steps-by-hops/{seed}".encode()))
    draws = [rng.integers(len(hops), size=len(hops)) for _ in range(resamples)]
    # The correlation is not defined for a resample in which all hops or all steps are equal: it is left out.
    resampled = [
        correlation
        for rows in draws
        if (correlation := rank_correlation(hops[rows], steps[rows])) is not None
    ]
    low, high = np.quantile(resampled or [rho], [0.025, 0.975])
    return Interval(mean=rho, low=float(low), high=float(high))


def rank_correlation(first: Floats, second: Floats) -> float | None:
    """Spearman's rho, with the mean rank for equal values. None if all values of one side are equal."""
    ranks = np.stack([_ranks(first), _ranks(second)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    spread = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float(ranks[0] @ ranks[1]) / spread if spread > 0 else None


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks


def _hops(evaluation: Evaluation, task_id: str) -> int:
    return len(_needed(evaluation, task_id))


def _needed(evaluation: Evaluation, task_id: str) -> tuple[str, ...]:
    """The skills of a question's hops, in order; empty if the task does not state them."""
    skills = evaluation.by_question[task_id][0].facts.get("skills", ())
    return skills if isinstance(skills, tuple) else ()


def _skills(evaluation: Evaluation) -> tuple[Ints, dict[str, int]]:
    """The skill number of each question (row) and hop (column), -1 after its last hop; and the row of each question."""
    needed = {task_id: _needed(evaluation, task_id) for task_id in evaluation.by_question}
    numbers: dict[str, int] = defaultdict(lambda: len(numbers))
    table = np.full((len(needed), max(map(len, needed.values()), default=0)), -1, dtype=np.int64)
    for row, skills in enumerate(needed.values()):
        table[row, : len(skills)] = [numbers[skill] for skill in skills]
    return table, {task_id: row for row, task_id in enumerate(needed)}


def _pairs(
    evaluation: Evaluation, questions: dict[str, int], alignment: Alignment
) -> tuple[Ints, Ints, Ints]:
    """Every pair of skill and worker in the alignment: the row and column of the skill, and the worker's number."""
    pairs: list[tuple[int, int, int]] = []
    numbers: dict[str, int] = defaultdict(lambda: len(numbers))
    for rollout in evaluation.rollouts:
        workflow = rollout.trace.rounds[0].workflow if rollout.trace.rounds else None
        if workflow is None:
            continue
        chosen = [numbers[rollout.trace.pool[k].name] for k in _workers(workflow)]
        hops = _hops(evaluation, rollout.task)
        if (alignment == "one step a hop" and len(chosen) != hops) or (alignment == "one hop" and hops != 1):
            continue
        row = questions[rollout.task]
        pairs.extend((row, hop, worker) for hop, worker in enumerate(chosen[:hops]))
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 3).T
    return columns[0], columns[1], columns[2]


def _workers(workflow: Workflow) -> Sequence[int]:
    return [workflow.steps[position].worker for position in needed_steps(workflow)]
