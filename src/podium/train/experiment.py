"""Runs the training that a configuration file describes. Only this module connects the pool, tasks, scorer and loop.

`settings` has the settings, `loop` the iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

from podium.conductor.checkpoint import Checkpoint, Conducts, is_llama
from podium.conductor.prompt import numbered_pool
from podium.executor import Dispatcher, ExecutionSettings
from podium.rollout import Scorer
from podium.rollout.random_pools import PoolSource
from podium.rollout.run_data import RunData
from podium.rollout.run_folder import RunFolder
from podium.shipped import shipped_checkpoint
from podium.tasks import Task, open_tasks
from podium.tasks.generated import GeneratedTasks
from podium.tasks.open import generated_names, generated_set
from podium.tasks.task import warnings_of
from podium.team.opening import open_pool
from podium.train.display import Display
from podium.train.loop import DrawTasks, Evaluate, train
from podium.train.settings import CHANGEABLE_ON_RESUME, Experiment
from podium.types import Budget
from podium.workers.pool import Pool

_ENDLESS = 10**9
_MOST_PARAMETERS = 50_000_000
"""Of a policy that the small engine trains."""

Dispatch = Callable[[Pool], AbstractAsyncContextManager[Dispatcher]]
"""Opens the dispatcher of a pool's workers. It is called after the run folder has been made."""


async def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    dispatch: Dispatch = lambda pool: nullcontext(Dispatcher()),
    evaluate: Evaluate | None = None,
    display: AbstractContextManager[Display] | None = None,
    on_warning: Callable[[str], None] = lambda warning: None,
) -> Path:
    """Train in a run folder, or resume the run that is in it. Returns the folder of the trained policy.

    Args:
        dispatch: opens the dispatcher, with its limits, cache and budget; by default a plain one.
        on_warning: called with a sentence about each sort of question that is left out.

    Raises:
        CheckpointError: this trainer cannot train the checkpoint `start`.
        ConfigError: the pool cannot be used.
        RunMismatchError: the folder was made with another configuration.
        BudgetError: the budget of the run or the day is spent. The same call later resumes from the newest checkpoint.
    """
    start = Checkpoint.read(experiment.start)
    pool = numbered_pool(open_pool(experiment.pool), start.prompt)
    start = _with_conducts(start, experiment, pool)
    try:
        tasks = finite_tasks(experiment, pool, on_warning)
        draw_tasks = make_draw_tasks(experiment, pool, tasks)
        data = RunData.of(tasks, pool)
        run = RunFolder.open(folder, experiment, changeable=CHANGEABLE_ON_RESUME, data=data)
        async with dispatch(pool) as dispatcher:
            return await train(
                experiment.grpo,
                start=start,
                run=run,
                draw_tasks=draw_tasks,
                score=Scorer(
                    reward=experiment.reward,
                    cost_weights=experiment.grpo.cost_weights,
                    budget=Budget(rounds=experiment.grpo.rounds),
                    max_steps=experiment.grpo.max_steps,
                    discount=experiment.grpo.discount,
                    execution=ExecutionSettings(early_stop=experiment.grpo.early_stop),
                    dispatcher=dispatcher,
                ).roll,
                evaluate=evaluate,
                display=display,
            )
    finally:
        await pool.close()


def can_train(start: str) -> bool:
    """Whether the small engine can train this start.

    It can if the checkpoint is Llama- or Qwen2-shaped, has few parameters in one file, and reads plain text.
    """
    if not shipped_checkpoint(start) and not Path(start).is_dir():
        return False
    checkpoint = Checkpoint.read(start)
    parameters = checkpoint.parameters()
    return (
        not checkpoint.chats
        and len(checkpoint.ends) == 1
        and is_llama(checkpoint.config)
        and parameters is not None
        and parameters <= _MOST_PARAMETERS
    )


def _with_conducts(start: Checkpoint, experiment: Experiment, pool: Pool) -> Checkpoint:
    """The checkpoint, whose `podium.json` now states which questions and pools the trained policy can conduct."""
    conducts = Conducts.trained(
        experiment.tasks,
        pool,
        anonymous=start.prompt.pool == "anonymous",
        random_pools=experiment.pool_draw.random,
        ratings=start.conducts.ratings,
    )
    return replace(start, stated=conducts)


def finite_tasks(
    experiment: Experiment, pool: Pool, on_warning: Callable[[str], None] = lambda warning: None
) -> list[Task]:
    """The training questions of a set that ends; none of an endless one."""
    if experiment.tasks in generated_names():
        return []
    tasks = open_tasks(experiment.tasks, "train", size=_ENDLESS, pool=pool)
    for warning in warnings_of(tasks):
        on_warning(warning)
    return list(tasks)


def make_draw_tasks(experiment: Experiment, pool: Pool, tasks: Sequence[Task] = ()) -> DrawTasks:
    """Make the function that draws the tasks of an iteration, each with the pool that may answer it.

    Args:
        tasks: the `finite_tasks`.
    """
    pools = PoolSource(pool, experiment.pool_draw)
    generated = generated_set(experiment.tasks)
    tasks_of = (
        _recorded_tasks(experiment, tasks) if generated is None else _generated_tasks(experiment, generated)
    )

    def draw_tasks(iteration: int) -> list[tuple[Task, Pool]]:
        return [
            (task, pools.draw(f"{experiment.grpo.seed}/{iteration}/{task.id}"))
            for task in tasks_of(iteration)
        ]

    return draw_tasks


def _generated_tasks(
    experiment: Experiment, tasks_with: Callable[..., GeneratedTasks]
) -> Callable[[int], list[Task]]:
    """Draws random questions of an endless set. If there is a curriculum, its stage gives their hop shares."""
    stages = experiment.curriculum if "curriculum" in experiment.model_fields_set else ()

    def tasks_of(iteration: int) -> list[Task]:
        shares = [{"hop_shares": stage.hop_shares} for stage in stages if stage.start <= iteration]
        tasks = tasks_with("train", size=_ENDLESS, **(shares[-1] if shares else {}))
        rng = Random(f"tasks/{experiment.grpo.seed}/{iteration}")
        return [tasks[rng.randrange(_ENDLESS)] for _ in range(experiment.grpo.questions)]

    return tasks_of


def _recorded_tasks(experiment: Experiment, tasks: Sequence[Task]) -> Callable[[int], list[Task]]:
    """Draws every question of a finite task set once in each epoch, in a new order each time."""
    count, seed = experiment.grpo.questions, experiment.grpo.seed

    @cache
    def order(epoch: int) -> list[int]:
        indices = list(range(len(tasks)))
        Random(f"tasks/{seed}/turn {epoch}").shuffle(indices)
        return indices

    def task(position: int) -> Task:
        epoch, index = divmod(position, len(tasks))
        return tasks[order(epoch)[index]]

    return lambda iteration: [task(iteration * count + q) for q in range(count)]
