"""Figures of collapse: whether a policy still writes different plans, and whether they depend on the question.

Reinforcement can raise accuracy and yet teach only the form of a plan, or a single step or worker. Trainings and
evaluations compute these figures in the same way, and compare them with those of the start. The functions are pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from random import Random
from statistics import fmean, pstdev
from typing import Any, Self

from podium.types import FrozenModel, Profile
from podium.workflow import Workflow, edges, needed_steps

_SHUFFLES = 20
"""How often the questions' kinds are shuffled, to measure the information that chance alone shows."""
_MOST_ROWS = 5
"""The most rows at each end of a training that are compared."""


class PlanStructure(FrozenModel):
    """A plan without its subtasks. It is empty if the plan cannot be read, or accepts an earlier answer."""

    workers: tuple[str, ...] = ()
    """The name of the worker of each step."""
    topology: str = ""
    """Which earlier steps each step reads, such as "-;0;0,1"."""
    steps: int = 0
    """How many steps the answer needs."""

    @classmethod
    def of(cls, workflow: Workflow | None, pool: Sequence[Profile]) -> Self:
        """The structure of a workflow over the workers of a pool."""
        if workflow is None:
            return cls()
        names = tuple(pool[step.worker].name for step in workflow.steps)
        return cls(workers=names, topology=edges(workflow), steps=len(needed_steps(workflow)))


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What the figures need to know about one plan."""

    kind: str
    """The kind of its question (`question_kind`)."""
    readable: bool
    correct: bool | None
    """Whether the answer is right. None if the grader failed."""
    structure: PlanStructure


def question_kind(task_id: str) -> str:
    """The kind of a question: its id without the last part and the numbers before it. The kind of
    "reasoning-gym/gcd/0/21" is "reasoning-gym/gcd"."""
    *kind, _ = task_id.split("/")
    while kind and kind[-1].isdecimal():
        kind.pop()
    return "/".join(kind) or task_id


def collapse_figures(plans: Sequence[PlanFacts]) -> dict[str, float]:
    """The figures of these plans. A mean of nothing is 0.

    - "valid": share of plans that can be read. "accuracy": share of right answers among those with a verdict.
      "accuracy_readable": the same given a plan that can be read.
    - "steps", "steps_std": mean and standard deviation of the steps that the answer needs.
    - "worker_entropy" over all steps, "first_worker_entropy" and "topology_entropy" over plans, in nats.
    - "plan_information": the mutual information of the question's kind and the plan (its workers and topology), in
      nats, less what chance shows: the mean over shuffled kinds. 0: the plan does not depend on the kind.
    - "commonest_plan": share of the commonest workers and topology together. Subtasks do not count.
    """
    with_steps = [plan for plan in plans if plan.structure.workers]
    steps = [plan.structure.steps for plan in with_steps]
    shapes = [(plan.structure.workers, plan.structure.topology) for plan in with_steps]
    commonest = Counter(shapes).most_common(1)
    return {
        "valid": mean(plan.readable for plan in plans),
        "accuracy": mean(plan.correct for plan in plans if plan.correct is not None),
        "accuracy_readable": mean(
            plan.correct for plan in plans if plan.readable and plan.correct is not None
        ),
        "steps": mean(steps),
        "steps_std": pstdev(steps) if steps else 0.0,
        "worker_entropy": entropy(worker for plan in with_steps for worker in plan.structure.workers),
        "first_worker_entropy": entropy(plan.structure.workers[0] for plan in with_steps),
        "topology_entropy": entropy(plan.structure.topology for plan in with_steps),
        "plan_information": _information([plan.kind for plan in with_steps], shapes),
        "commonest_plan": commonest[0][1] / len(shapes) if commonest else 0.0,
    }


def entropy(values: Iterable[Hashable]) -> float:
    """The entropy of the values' shares, in nats. It is 0 if all are equal, or if there are none."""
    counts = Counter(values)
    total = counts.total()
    return -sum(count / total * log(count / total) for count in counts.values()) if total else 0.0


def _information(kinds: Sequence[Hashable], shapes: Sequence[Hashable]) -> float:
    """The mutual information of pairs in nats, minus its mean over shuffled kinds. It is at least 0.

    Shuffling does not change the entropies of kinds and of shapes, so only the pairs' entropies are compared.
    """
    random, shuffled = Random("collapse"), list(kinds)
    by_chance = []
    for _ in range(_SHUFFLES):
        random.shuffle(shuffled)
        by_chance.append(entropy(zip(shuffled, shapes, strict=True)))
    return max(0.0, fmean(by_chance) - entropy(zip(kinds, shapes, strict=True)))


_ALARMS = (
    ("failed", 0.5, "of the plans earned nothing, since workers or the grader failed"),
    ("commonest_plan", 0.95, "of the readable plans name the same workers in the same topology"),
    ("zero_variance_groups", 0.95, "of the groups have equal rewards, and teach nothing"),
    ("unreadable", 0.5, "of the plans cannot be read"),
)
_COMPARED_WITH_START = {"steps", "first_worker_entropy", "plan_information", "accuracy", "accuracy_readable"}


def first_and_last_means(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, float], dict[str, float]]:
    """The mean figures of the first and of the last rows of a training: a quarter of the rows, at most five."""
    count = max(1, min(_MOST_ROWS, len(rows) // 4))
    return _mean_row(rows[:count]), _mean_row(rows[-count:])


def collapse_warnings(
    row: Mapping[str, Any], start: Mapping[str, float], *, before: str = "the start"
) -> list[str]:
    """A sentence for each sign of collapse in the figures of a policy.

    Args:
        row: the figures now.
        start: the figures of the policy before training, or of another model that was not trained.
        before: what the sentences call the policy or model of `start`.
    """
    sentences = [f"{row[key]:.0%} {words}." for key, limit, words in _ALARMS if row.get(key, 0.0) > limit]
    if not row.keys() >= _COMPARED_WITH_START or not start.keys() >= _COMPARED_WITH_START:
        return sentences
    if row["steps"] < 1.05 and start["steps"] > 1.5:
        sentences.append(f"Plans have one step, where those of {before} had {start['steps']:.1f}.")
    if row["first_worker_entropy"] < 0.1 and start["first_worker_entropy"] > 0.5:
        sentences.append(f"Nearly all plans begin with the same worker, where those of {before} did not.")
    if row["plan_information"] < start["plan_information"] / 4 and start["plan_information"] > 0.05:
        sentences.append(f"The plan no longer depends on the kind of question, as those of {before} did.")
    gain = row["accuracy"] - start["accuracy"]
    if gain > 0.05 and row["accuracy_readable"] - start["accuracy_readable"] < gain / 4:
        sentences.append(
            f"Accuracy is {100 * gain:.0f} points above that of {before}, and that of readable plans hardly: the "
            "policy learned the form of a plan, and not the choice."
        )
    return sentences


def _mean_row(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    numbers = [
        {key: float(value) for key, value in row.items() if isinstance(value, int | float)} for row in rows
    ]
    shared = set.intersection(*map(set, numbers)) if numbers else set()
    return {key: fmean(row[key] for row in numbers) for key in sorted(shared)}


def mean(values: Iterable[float]) -> float:
    """The mean of values. It is 0 if there are none."""
    listed = list(values)
    return fmean(listed) if listed else 0.0
