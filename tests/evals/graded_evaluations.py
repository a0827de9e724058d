"""Evaluations whose verdicts, dollars and plans are given."""

from collections.abc import Mapping, Sequence

from evals.handmade_evaluations import rollout
from podium.evals import Evaluation
from podium.tasks.task import Grade
from podium.trace import Plan, RoundTrace, Span
from podium.types import Spent


def graded(
    planner: str,
    verdicts: Mapping[str, Sequence[bool | None]],
    *,
    usd: float = 1.0,
    plans: Mapping[str, Sequence[int]] | None = None,
) -> Evaluation:
    """From the verdict of each repeat of each question, which is None if the grader failed.

    Args:
        usd: dollars of each answer.
        plans: for each question the workers of the chain that answers it; one worker where it is not named.
    """
    rollouts = []
    for task_id, given in verdicts.items():
        for verdict in given:
            made = rollout(task_id, (plans or {}).get(task_id, (0,)))
            grade = Grade(0.0, failure="down") if verdict is None else Grade(float(verdict))
            workflow = made.trace.rounds[0].workflow
            span = Span(position=0, worker="a", subtask="Do it.", status="done", spent=Spent(cost_usd=usd))
            round_ = RoundTrace(plan=Plan("...", workflow), spans=(span,))
            trace = made.trace.model_copy(update={"rounds": (round_,), "planner": planner})
            rollouts.append(made.model_copy(update={"trace": trace, "grade": grade}))
    return Evaluation(tuple(rollouts))


def column(*verdicts: bool | None) -> dict[str, list[bool | None]]:
    """One answer to each question q0, q1, ..."""
    return {f"q{number}": [verdict] for number, verdict in enumerate(verdicts)}
