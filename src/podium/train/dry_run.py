"""Forecasts the calls, dollars and GPU of a run before it starts, and tries each worker on one question.

The forecast calls no worker; it uses what `preflight` opened. The trial calls each worker at least once, and pays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from podium.calls import Dispatcher
from podium.executor.estimate import Range, estimate_answer
from podium.rollout.rollout import run_rollout
from podium.tasks import Task
from podium.team import Runner
from podium.train.gpu_estimate import (
    ASSUMED_GPU,
    GPU,
    GPUS,
    SHAPES,
    Memory,
    TrainingSize,
    generation_seconds,
    gpu_named,
    memory,
    update_seconds,
)
from podium.train.preflight import Preflight
from podium.train.settings import TrainSettings
from podium.train.shape import ModelShape
from podium.workers.build import UnreadyWorker
from podium.workers.pool import Pool
from podium.workers.traits import has_paid_workers, has_real_workers

PROMPT_TOKENS = 2000
"""Of the longest prompt, where the tasks cannot be opened."""


@dataclass(frozen=True, slots=True)
class WorkerForecast:
    """The calls of workers in the whole run, and what they would cost."""

    plans: int
    """Plans of the run: one for each completion, if all can be read."""
    calls: float
    tokens: Range
    """With their interval from short responses to long ones, as `cost_usd`."""
    cost_usd: Range
    cost_by_steps: Mapping[int, float]
    """Likely dollars if all plans had so many steps."""
    iteration_s: float
    """Seconds that the workers of one iteration take."""
    paid: bool
    """False: all workers are scripted or recorded, so the calls cost nothing."""


@dataclass(frozen=True, slots=True)
class GPUForecast:
    """Memory and time of the run on one kind of GPU."""

    gpu: GPU
    seen: bool
    """Whether this machine has it; else it is assumed."""
    ranks: int
    parameters: int
    trained: int
    memory: Memory
    shared_by_8: Memory
    """The same on each of eight, as FSDP or ZeRO-3 share it out."""
    generation_s: float
    """Seconds of generation of an iteration, as the next."""
    update_s: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is known of a run before it begins."""

    iterations: int
    refusals: tuple[str, ...]
    tasks: int
    longest_prompt: int
    """Tokens."""
    workers: WorkerForecast | None
    """None: pool or tasks could not be opened."""
    gpu: GPUForecast | None
    """None: the model is not known."""

    @property
    def hours(self) -> float | None:
        """Hours of the whole run, if workers begin when the last plan is written; None: the model is not known."""
        if self.gpu is None:
            return None
        workers = 0.0 if self.workers is None else self.workers.iteration_s
        return self.iterations * (self.gpu.generation_s + self.gpu.update_s + workers) / 3600


def forecast(settings: TrainSettings, found: Preflight, *, ranks: int = 1) -> Forecast:
    """What a run is expected to need, of what its preflight found."""
    plans = settings.plans
    workers = None
    if (one := found.workers) is not None:
        workers = WorkerForecast(
            plans=plans,
            calls=one.workload.calls * plans,
            tokens=one.workload.tokens.times(plans),
            cost_usd=one.workload.cost_usd.times(plans),
            cost_by_steps={steps: usd * plans for steps, usd in one.by_steps.items()},
            iteration_s=one.workload.seconds(settings.batch),
            paid=one.paid,
        )
    return Forecast(
        iterations=settings.grpo.iterations,
        refusals=tuple(map(str, found.refusals)),
        tasks=len(found.tasks),
        longest_prompt=found.longest_prompt,
        workers=workers,
        gpu=_forecast_gpu(settings, found, ranks),
    )


def _forecast_gpu(settings: TrainSettings, found: Preflight, ranks: int) -> GPUForecast | None:
    shape = SHAPES.get(settings.start) if found.start is None else ModelShape.sizes(found.start.config)
    if shape is None:
        return None
    seen = _gpu_here()
    gpu = seen or next(gpu for gpu in GPUS if gpu.name == ASSUMED_GPU)
    training = TrainingSize.of(settings, shape, found.longest_prompt or PROMPT_TOKENS)
    return GPUForecast(
        gpu=gpu,
        seen=seen is not None,
        ranks=ranks,
        parameters=shape.parameters,
        trained=training.trained,
        memory=memory(training, gpu=gpu, ranks=ranks),
        shared_by_8=memory(training, gpu=gpu, ranks=8),
        generation_s=generation_seconds(training, gpu=gpu, ranks=ranks),
        update_s=update_seconds(training, gpu=gpu, ranks=ranks),
    )


def _gpu_here() -> GPU | None:
    import torch  # noqa: PLC0415

    return gpu_named(torch.cuda.get_device_name()) if torch.cuda.is_available() else None


@dataclass(frozen=True, slots=True)
class WorkerTrial:
    """How one worker answered one of the run's tasks, and how its grader judged the answer."""

    worker: str
    task: str
    answered: bool
    seconds: float
    """As the reply claims, else by the clock."""
    cost_usd: float
    """Dollars of answer and verdict."""
    paid: bool
    """False: the worker is scripted or recorded, so its dollars are not paid."""
    score: float | None
    """None: there was nothing to grade, or the grader failed."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """Which worker is tried on which task: each worker at least once, and each part of the task set."""

    pairs: tuple[tuple[int, Task], ...]
    """Numbers of workers, each with its task."""
    pool: Pool

    @classmethod
    def of(cls, pool: Pool, tasks: Mapping[str, Task]) -> Trial:
        """Workers and parts of the task set in turns; one task stands for each part, since a part has one grader."""
        by_part: dict[object, Task] = {}
        for task in tasks.values():
            by_part.setdefault((type(task.grader), task.facts.get("set")), task)
        chosen = list(by_part.values())
        rounds = max(len(pool), len(chosen))
        return cls(tuple((k % len(pool), chosen[k % len(chosen)]) for k in range(rounds)), pool)

    @property
    def paid(self) -> bool:
        """Whether any worker costs money."""
        return has_paid_workers(self.pool)

    @property
    def cost_usd(self) -> Range:
        """What the answers are likely to cost; graders that are models come on top."""
        return Range.sum(
            estimate_answer(self.pool, worker, task.question).dollars
            for worker, task in self.pairs
            if not isinstance(self.pool[worker], UnreadyWorker)
        )

    async def run(self, dispatcher: Dispatcher) -> tuple[WorkerTrial, ...]:
        """Ask all at once.

        Raises:
            BudgetError: the dollars of the day are spent.
        """
        async with asyncio.TaskGroup() as group:
            trials = [
                group.create_task(_try_worker(worker, task, self.pool, dispatcher))
                for worker, task in self.pairs
            ]
        return tuple(trial.result() for trial in trials)


async def _try_worker(worker: int, task: Task, pool: Pool, dispatcher: Dispatcher) -> WorkerTrial:
    runner = Runner.alone(pool.names[worker], pool, dispatcher)
    rollout = await run_rollout(runner, task, seed=f"dry run/{worker}")
    trace = rollout.trace
    spans = [span for round_ in trace.rounds for span in round_.spans]
    answered = trace.answer is not None
    return WorkerTrial(
        worker=pool[worker].profile.name,
        task=task.id,
        answered=answered,
        seconds=sum(span.seconds for span in spans),
        cost_usd=trace.cost_usd + rollout.grade.cost_usd,
        paid=has_real_workers([pool[worker]]),
        score=rollout.grade.score if answered and rollout.grade.failure is None else None,
        error=rollout.grade.failure
        if answered
        else next((span.error for span in spans if span.error), trace.error),
    )
