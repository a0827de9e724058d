"""Evaluations made by hand, whose right statistics are known."""

from collections.abc import Sequence

from podium.evals import Evaluation
from podium.rollout import Reward, Rollout
from podium.tasks.task import Grade
from podium.trace import Plan, RoundTrace, Trace
from podium.types import Profile, Question
from podium.workflow import Access, Step, Workflow

POOL = tuple(Profile(name=name) for name in ("a", "b", "c", "d"))


def rollout(task_id: str, workers: Sequence[int], *, correct: bool = True) -> Rollout:
    """A chain of steps, each by the worker given."""
    chain = tuple(Step(worker, "Do it.", Access(all=position > 0)) for position, worker in enumerate(workers))
    trace = Trace(
        id="0" * 32,
        question=Question(text=task_id),
        pool=POOL,
        planner="made",
        seed="0",
        rounds=(RoundTrace(plan=Plan("...", Workflow(chain))),),
        status="ok",
        started_at="2026-01-01T00:00:00Z",
        seconds=0.0,
    )
    return Rollout(task_id, trace, Grade(float(correct)), Reward(format=0.5))


def evaluation(questions: Sequence[tuple[Sequence[str], Sequence[Sequence[int]]]]) -> Evaluation:
    """From (skills needed, the workers of each repeat's plan) of each question."""
    rollouts = tuple(rollout(f"q/{k}", plan) for k, (_, plans) in enumerate(questions) for plan in plans)
    facts = {
        f"q/{k}": {"hops": len(skills), "skills": tuple(skills)} for k, (skills, _) in enumerate(questions)
    }
    return Evaluation("made", tuple(p.name for p in POOL), "0", rollouts, facts)
