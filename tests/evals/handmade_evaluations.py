"""Evaluations made by hand, whose right statistics are known."""

from collections.abc import Sequence

from podium.evals import Evaluation
from podium.rollout import Rollout
from podium.tasks.task import Grade
from podium.trace import Plan, RoundTrace, Trace
from podium.types import Profile, Question
from podium.workflow import Access, Step, Workflow

POOL = tuple(Profile(name=name) for name in ("a", "b", "c", "d"))


def rollout(
    task_id: str, workers: Sequence[int], *, correct: bool = True, skills: Sequence[str] = ()
) -> Rollout:
    """A chain of steps, each by the worker given.

    Args:
        skills: those that the question needs.
    """
    chain = tuple(Step(worker, "Do it.", Access(all=position > 0)) for position, worker in enumerate(workers))
    trace = Trace(
        id="0" * 32,
        question=Question(text=task_id),
        pool=POOL,
        planner="made",
        seed=f"evaluation/0/{task_id}/0",
        rounds=(RoundTrace(plan=Plan("...", Workflow(chain))),),
        status="ok",
        started_at="2026-01-01T00:00:00Z",
        seconds=0.0,
    )
    facts = {"hops": len(skills), "skills": tuple(skills)}
    return Rollout(task=task_id, sample=0, grade=Grade(float(correct)), facts=facts, trace=trace)


def evaluation(questions: Sequence[tuple[Sequence[str], Sequence[Sequence[int]]]]) -> Evaluation:
    """From (skills needed, the workers of each repeat's plan) of each question."""
    return Evaluation(
        tuple(
            rollout(f"q/{k}", plan, skills=skills)
            for k, (skills, plans) in enumerate(questions)
            for plan in plans
        )
    )
