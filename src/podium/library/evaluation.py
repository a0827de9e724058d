"""`evaluate`: how often a team is right on a task set, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from podium.evals.evaluation import Evaluation, OnProgress
from podium.evals.evaluation import evaluate as evaluate_planner
from podium.tasks import open_tasks
from podium.tasks.task import Task
from podium.team.team import Team


async def evaluate(
    team: Team,
    tasks: str | Path | Sequence[Task],
    *,
    split: str = "validation",
    questions: int = 100,
    repeats: int = 1,
    concurrency: int = 16,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """Answer and grade questions. No trace is stored.

    If planning fails, the question counts as wrong. This differs from `Team.ask`, where one worker then answers alone.

    Args:
        tasks: a task set's name, a task file (NAME.toml), a table of your own (NAME.csv, NAME.jsonl), or tasks.
        split, questions: the split, and the most questions of it; ignored if `tasks` is a sequence of tasks.
        repeats: answers to each question.
        concurrency: the most questions at once.
        seed: seeds the choice of questions and all other randomness.
        on_progress: called after each answer with (answers graded so far, all answers).

    Returns:
        The evaluation: `accuracy` with its 95 % interval, `cost_usd` and `calls` per question, and all rollouts.

    Raises:
        UsageError: the tasks are missing or cannot be read.
        BudgetExceededError: the day's budget is spent.
    """
    if isinstance(tasks, str | Path):
        tasks = list(open_tasks(str(tasks), split, size=questions, seed=seed, pool=team.pool))
    return await evaluate_planner(
        team.runner.for_evaluation(),
        tasks,
        repeats=repeats,
        concurrency=concurrency,
        seed=str(seed),
        on_progress=on_progress,
    )
