"""Whether a planner keeps its answers and its plans when a question is put in other words."""

from __future__ import annotations

from collections.abc import Mapping

from podium.errors import UsageError
from podium.evals.evaluation import Evaluation
from podium.evals.stats import Interval, paired_difference
from podium.rollout import Rollout
from podium.types import FrozenModel
from podium.workflow import edges


class Robustness(FrozenModel):
    """One planner on pairs of a question and its paraphrase. Repeat r of one is compared with repeat r of the other."""

    pairs: int
    """Pairs of which both answers were graded."""
    accuracy: float
    """Accuracy on the original questions of these pairs."""
    paraphrased: float
    """Accuracy on the paraphrases of these questions."""
    change: Interval | None
    """Accuracy on paraphrases minus accuracy on originals, paired. None if there is one pair."""
    same_verdict: float
    """The share of answers that are right on both or wrong on both. Two wrong answers may differ."""
    same_plan: float | None
    """The share of paraphrases whose first plan has the same workers and access lists; RouterArena's robustness
    (arXiv 2510.00202) asks the same of routers. None if there are no plans."""


def measure_robustness(evaluation: Evaluation, paraphrases: Mapping[str, str]) -> Robustness | None:
    """The robustness of one planner, or None if no pair has two graded answers.

    Args:
        paraphrases: maps a paraphrase's task id to the original question's. An original may have several.

    Raises:
        UsageError: a question of a pair was not evaluated.
    """
    by_question = evaluation.by_question
    for task_id in (id_ for pair in paraphrases.items() for id_ in pair):
        if task_id not in by_question:
            raise UsageError(
                f"The question {task_id!r} of a paraphrase was not evaluated: evaluate originals and paraphrases."
            )
    rows: list[tuple[float, float, float]] = []
    plans: list[bool] = []
    for paraphrase, original in paraphrases.items():
        both = [*zip(by_question[original], by_question[paraphrase], strict=False)]
        graded = [
            (a.correct, b.correct) for a, b in both if a.grade.failure is None and b.grade.failure is None
        ]
        shapes = [(_shape(a), _shape(b)) for a, b in both]
        plans += [a == b for a, b in shapes if a is not None or b is not None]
        if graded:
            first, second = zip(*graded, strict=True)
            same = sum(a == b for a, b in graded)
            rows.append((sum(first) / len(graded), sum(second) / len(graded), same / len(graded)))
    if not rows:
        return None
    first_P, second_P, same_P = zip(*rows, strict=True)
    return Robustness(
        pairs=len(rows),
        accuracy=sum(first_P) / len(rows),
        paraphrased=sum(second_P) / len(rows),
        change=paired_difference(second_P, first_P),
        same_verdict=sum(same_P) / len(rows),
        same_plan=sum(plans) / len(plans) if plans else None,
    )


def _shape(rollout: Rollout) -> tuple[str, ...] | None:
    """Workers and access lists of the first plan, or None if there is no plan."""
    workflow = rollout.trace.rounds[0].workflow if rollout.trace.rounds else None
    if workflow is None:
        return None
    return (*(rollout.trace.pool[step.worker].name for step in workflow.steps), edges(workflow))
