"""The training loop: draw tasks, roll them out, score the rollouts, update the policy; again.

It wires the parts and owns none of their work. What draws tasks, runs and scores a rollout and evaluates a policy
is handed in. Everything random is named by the seed and the iteration, so a run that was killed and resumed
goes on as if it had not been.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Protocol

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import Codec
from podium.errors import CheckpointError, ConfigError
from podium.planner import Planner
from podium.rollout import Rollout
from podium.rollout.run_folder import RunFolder
from podium.tasks.task import Task
from podium.train.advantage import advantages
from podium.train.batched_policy import BatchedPolicy
from podium.train.checkpoints import Checkpoints, Place
from podium.train.display import Display
from podium.train.grpo import update
from podium.train.metrics import metrics_row
from podium.train.model import PolicyModel
from podium.train.optimizer import OPTIMIZERS, Optimizers, learning_rate
from podium.train.precision import resolve
from podium.train.reference import Reference, kl_weight
from podium.train.rollout_sampler import RolloutSampler
from podium.train.settings import GRPOSettings
from podium.train.weights import read_model
from podium.workers.pool import Pool

Draw = Callable[[int], Sequence[tuple[Task, Pool]]]
"""The tasks of an iteration, each with the pool it is asked over; the same iteration gives the same ones."""

Evaluate = Callable[[Path], Awaitable[Mapping[str, Any]]]
"""Judges the policy in a folder; what it returns stands in the iteration's row, under "evaluation"."""


class Score(Protocol):
    """Runs and grades what a planner plans, as `podium.rollout.Scorer.roll` does."""

    async def __call__(
        self, planner: Planner, task: Task, pool: Pool, *, seed: str, cost_sensitivity: int = 0
    ) -> Rollout | None: ...


async def train(
    settings: GRPOSettings,
    *,
    start: Checkpoint,
    run: RunFolder,
    draw: Draw,
    score: Score,
    evaluate: Evaluate | None = None,
    display: AbstractContextManager[Display] | None = None,
) -> Path:
    """Train from `start`, or from the run's newest checkpoint if it has one.

    Returns:
        The folder of the trained policy, `<run>/policy`.

    Raises:
        CheckpointError: `start` cannot be trained by this loop.
        ConfigError: a prompt is too long for the policy, or it knows other levels of cost sensitivity.
    """
    course = _Course.of(settings, start, draw, score)
    rows = run.rows()
    checkpoints = Checkpoints(run.path / "checkpoints", start)
    model = read_model(start)
    model.dtype = resolve(settings.dtype)
    reference = Reference(model, settings.temperature) if settings.kl or settings.kl_end else None
    optimizers = OPTIMIZERS[settings.optimizer](model)
    latest = checkpoints.latest()
    place = Place(0, 0.0) if latest is None else checkpoints.restore(latest, model, optimizers)
    rows.truncate(place.iteration)

    with display or _Silent() as shown:
        shown.begin(rows.read(), elapsed_s=place.elapsed_s)
        while place.iteration < settings.iterations and not _out_of_time(place, settings.minutes):
            began = time.perf_counter()
            row = await course.iterate(place.iteration, model, optimizers, reference)
            done = place.iteration + 1
            if evaluate is not None and settings.eval_every and done % settings.eval_every == 0:
                row["evaluation"] = await _evaluated(evaluate, checkpoints, model, run.path / ".evaluated")
            rows.append(row)
            place = Place(done, place.elapsed_s + time.perf_counter() - began)
            if done % settings.save_every == 0:
                checkpoints.save(model, optimizers, place)
            shown.show(row, elapsed_s=place.elapsed_s)

    if place.iteration % settings.save_every:
        checkpoints.save(model, optimizers, place)
    policy = run.path / "policy"
    if not policy.exists() or latest is None or place.iteration > int(latest.name):
        part = run.path / ".policy"
        checkpoints.write_policy(model, part)
        shutil.rmtree(policy, ignore_errors=True)
        part.rename(policy)
    return policy


@dataclass(frozen=True, slots=True)
class _Course:
    """What stays the same from iteration to iteration."""

    settings: GRPOSettings
    start: Checkpoint
    codec: Codec
    end: int
    draw: Draw
    score: Score

    @classmethod
    def of(cls, settings: GRPOSettings, start: Checkpoint, draw: Draw, score: Score) -> _Course:
        if start.chats:
            raise CheckpointError(
                f"{start.path} is asked through a chat template; this loop trains plain-text policies."
            )
        if len(settings.cost_weights) != start.prompt.levels:
            raise ConfigError(
                f"{start.path} knows {start.prompt.levels} levels of cost sensitivity, and grpo.cost_weights has "
                f"{len(settings.cost_weights)}: give one weight for each level."
            )
        if len(start.ends) != 1:
            raise CheckpointError(
                f"{start.path} names {len(start.ends)} tokens that end a text; one is needed."
            )
        return cls(settings, start, Codec.of(start), next(iter(start.ends)), draw, score)

    async def iterate(
        self, iteration: int, model: PolicyModel, optimizers: Optimizers, reference: Reference | None
    ) -> dict[str, Any]:
        """One batch, one step. Sampling and the update hold the event loop: nothing else is running then."""
        settings = self.settings
        name = f"train/{settings.seed}/{iteration}"
        clock = [time.perf_counter()]
        asked = self.draw(iteration)
        levels = _levels(len(settings.cost_weights), len(asked), name)
        asking = RolloutSampler(model, self.start, self.codec, self.end, settings, levels, f"{name}/sample")
        rollouts = await self._rollouts(asked, levels, BatchedPolicy(asking.answer), name)
        clock.append(time.perf_counter())
        log_ratios = [[0.0] * settings.group for _ in rollouts]
        if reference is not None:
            for turn in asking.turns:
                for rollout, nats in zip(turn.rollouts, turn.log_ratios(reference), strict=True):
                    log_ratios[turn.question][rollout] += nats
        kl = kl_weight(iteration, first=settings.kl, last=settings.kl_end, iterations=settings.iterations)
        pulls = [
            advantages(
                [
                    None if rollout is None else rollout.reward.total - kl * nats
                    for rollout, nats in zip(group, distance, strict=True)
                ],
                settings.floor,
            )
            for group, distance in zip(rollouts, log_ratios, strict=True)
        ]
        groups = [turn.group(pulls[turn.question], settings.sure) for turn in asking.turns]
        rate = learning_rate(
            iteration, peak=settings.lr, iterations=settings.iterations, warmup=settings.warmup
        )
        updated = update(
            model,
            optimizers,
            groups,
            rate=rate,
            loss_type=settings.loss_type,
            max_tokens=settings.max_tokens,
            clip=settings.clip,
            temperature=settings.temperature,
            max_norm=settings.max_norm,
        )
        clock.append(time.perf_counter())
        began, rolled, ended = clock
        return metrics_row(
            iteration,
            rollouts=rollouts,
            samples=[turn.samples for turn in asking.turns],
            groups=groups,
            log_ratios=log_ratios,
            update=updated,
            rate=rate,
            seconds={
                "sample": asking.seconds,
                "score": rolled - began - asking.seconds,
                "update": ended - rolled,
            },
        )

    async def _rollouts(
        self, asked: Sequence[tuple[Task, Pool]], levels: Sequence[int], desk: BatchedPolicy, name: str
    ) -> list[list[Rollout | None]]:
        """Groups of rollouts, each under its own seed, for each question."""
        size = self.settings.group
        rolled = await desk.serve(
            [
                partial(
                    self.score, task=task, pool=pool, seed=f"{name}/{task.id}/{q}/{g}", cost_sensitivity=level
                )
                for q, ((task, pool), level) in enumerate(zip(asked, levels, strict=True))
                for g in range(size)
            ]
        )
        return [rolled[q * size : (q + 1) * size] for q in range(len(asked))]


def _levels(count: int, questions: int, name: str) -> list[int]:
    """The level of cost sensitivity of each question, 0 where there are none."""
    rng = Random(f"{name}/thrift")
    return [rng.randrange(count) if count else 0 for _ in range(questions)]


async def _evaluated(
    evaluate: Evaluate, checkpoints: Checkpoints, model: PolicyModel, folder: Path
) -> dict[str, Any]:
    """Evaluate the policy from a folder of its own: the row is written before the checkpoint."""
    checkpoints.write_policy(model, folder)
    try:
        return dict(await evaluate(folder))
    finally:
        shutil.rmtree(folder)


def _out_of_time(place: Place, minutes: float | None) -> bool:
    """Whether another iteration of the usual length would exceed the limit."""
    if minutes is None or not place.iteration:
        return False
    return place.elapsed_s * (place.iteration + 1) / place.iteration > minutes * 60


class _Silent:
    """A display that shows nothing."""

    def __enter__(self) -> _Silent:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def begin(self, rows: Sequence[Mapping[str, Any]], *, elapsed_s: float) -> None:
        return None

    def show(self, row: Mapping[str, Any], *, elapsed_s: float) -> None:
        return None
