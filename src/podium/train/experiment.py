"""A training run as a configuration file describes it, and the one place that wires its parts together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

from pydantic import Field, model_validator

from podium.conductor.checkpoint import Checkpoint, Conducts
from podium.config import Settings
from podium.executor import Dispatcher, ExecutionSettings
from podium.orchestrator.team import open_pool
from podium.rollout import RewardSettings, Scorer
from podium.rollout.run_folder import RunFolder
from podium.tasks import Task, open_tasks, told
from podium.tasks.embedded import HOP_SHARES, EmbeddedTasks
from podium.train.display import Display
from podium.train.loop import Draw, Evaluate, train
from podium.train.random_pools import PoolDraw, PoolSource
from podium.train.settings import GRPOSettings
from podium.types import Budget
from podium.workers.paid import asks_for_real
from podium.workers.pool import Pool

_ENDLESS = 10**9


class Stage(Settings):
    """One stage of a curriculum."""

    start: int = Field(ge=0)
    """The iteration from which it holds."""
    hop_shares: tuple[float, ...]
    """Shares of questions with 1, 2, ... hops."""


class Experiment(Settings):
    """What a run of reinforcement is made of."""

    start: str = "warmstart"
    """A shipped checkpoint's name, or a checkpoint folder."""
    pool: str = "embedded"
    """A shipped pool's name, or a pool file."""
    pool_draw: PoolDraw = PoolDraw()
    tasks: str = "embedded"
    """The task set, or a recording, NAME.parquet: its training questions, each once before any comes again."""
    curriculum: tuple[Stage, ...] = (Stage(start=0, hop_shares=HOP_SHARES),)
    """Of the embedded questions."""
    grpo: GRPOSettings = GRPOSettings()
    reward: RewardSettings = RewardSettings()

    @model_validator(mode="after")
    def _begins_at_once(self) -> Experiment:
        starts = [stage.start for stage in self.curriculum]
        if not starts or starts[0] != 0 or starts != sorted(set(starts)):
            raise ValueError("the curriculum's stages must start at 0 and then later and later")
        return self


FREE = ("grpo.minutes", "grpo.eval_every", "grpo.save_every")
"""Settings that a resumed run may change: they do not change what is learned."""


Dispatch = Callable[[Pool], AbstractAsyncContextManager[Dispatcher]]
"""Opens what the calls to a pool's workers share, once the run's folder is there."""


async def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    dispatch: Dispatch = lambda pool: nullcontext(Dispatcher()),
    evaluate: Evaluate | None = None,
    display: AbstractContextManager[Display] | None = None,
    tell: Callable[[str], None] = lambda note: None,
) -> Path:
    """Train in a run folder, or go on where it was left. Returns the folder of the trained policy.

    Args:
        tell: told of what is left out of the questions, a sentence each.

    Raises:
        CheckpointError: `start` is no checkpoint that can be trained.
        ConfigError: the pool cannot be used.
        RunMismatchError: the folder belongs to another configuration.
        BudgetError: the dollars of the run or the day are spent; it goes on from its newest checkpoint.
    """
    pool = open_pool(experiment.pool)
    start = _retrained(Checkpoint.read(experiment.start), experiment, pool)
    try:
        draw = draw_of(experiment, pool, tell)
        run = RunFolder.open(folder, experiment.model_dump(mode="json"), free=FREE)
        async with dispatch(pool) as dispatcher:
            return await train(
                experiment.grpo,
                start=start,
                run=run,
                draw=draw,
                score=Scorer(
                    reward=experiment.reward,
                    cost_weights=experiment.grpo.cost_weights,
                    budget=Budget(rounds=experiment.grpo.rounds),
                    max_steps=experiment.grpo.max_steps,
                    execution=ExecutionSettings(early_stop=experiment.grpo.early_stop),
                    dispatcher=dispatcher,
                ).roll,
                evaluate=evaluate,
                display=display,
            )
    finally:
        await pool.close()


def _retrained(start: Checkpoint, experiment: Experiment, pool: Pool) -> Checkpoint:
    """The checkpoint as what it is trained on now makes it: what the policy of the run will conduct."""
    known = start.conducts
    embedded = experiment.tasks == "embedded"
    conducts = Conducts(
        questions="the embedded questions" if embedded else f"the questions of {experiment.tasks}",
        simulated=not known.ratings and not asks_for_real(pool),
        ratings=known.ratings,
        workers=pool.names if start.prompt.pool == "anonymous" else (),
    )
    return replace(start, stated=conducts)


def draw_of(experiment: Experiment, pool: Pool, tell: Callable[[str], None] = lambda note: None) -> Draw:
    """The tasks of each iteration, each with the pool it is asked over."""
    pools = PoolSource(pool, experiment.pool_draw)
    tasks_of = _embedded(experiment) if experiment.tasks == "embedded" else _in_turn(experiment, pool, tell)

    def draw(iteration: int) -> list[tuple[Task, Pool]]:
        return [
            (task, pools.draw(f"{experiment.grpo.seed}/{iteration}/{task.id}"))
            for task in tasks_of(iteration)
        ]

    return draw


def _embedded(experiment: Experiment) -> Callable[[int], list[Task]]:
    """Of endlessly many questions any, by the curriculum."""

    def tasks_of(iteration: int) -> list[Task]:
        stage = [stage for stage in experiment.curriculum if stage.start <= iteration][-1]
        tasks = EmbeddedTasks("train", size=_ENDLESS, hop_shares=stage.hop_shares)
        rng = Random(f"tasks/{experiment.grpo.seed}/{iteration}")
        return [tasks[rng.randrange(_ENDLESS)] for _ in range(experiment.grpo.questions)]

    return tasks_of


def _in_turn(experiment: Experiment, pool: Pool, tell: Callable[[str], None]) -> Callable[[int], list[Task]]:
    """Of a set that has an end all, in a new order each time round."""
    tasks = open_tasks(experiment.tasks, "train", size=_ENDLESS, pool=pool)
    for note in told(tasks):
        tell(note)
    count, seed = experiment.grpo.questions, experiment.grpo.seed

    @cache
    def order(turn: int) -> list[int]:
        places = list(range(len(tasks)))
        Random(f"tasks/{seed}/turn {turn}").shuffle(places)
        return places

    def task(place: int) -> Task:
        turn, index = divmod(place, len(tasks))
        return tasks[order(turn)[index]]

    return lambda iteration: [task(iteration * count + q) for q in range(count)]
