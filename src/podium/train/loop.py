"""The training loop: draw tasks, sample plans, score them, update the policy; again.

It wires the parts and owns none of their work. What draws tasks, scores a completion and evaluates a policy
is handed in. Everything random is named by the seed and the iteration, so a run that was killed and resumed
goes on as if it had not been.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import Codec
from podium.conductor.prompt import build_prompt
from podium.errors import CheckpointError, ConfigError
from podium.planner import Situation
from podium.rollout import Rollout
from podium.rollout.run_folder import RunFolder
from podium.tasks.task import Task
from podium.train.advantage import advantages
from podium.train.batch import Group
from podium.train.checkpoints import Checkpoints, Place
from podium.train.display import Display
from podium.train.grpo import update
from podium.train.metrics import metrics_row
from podium.train.model import PolicyModel
from podium.train.optimizer import adamw, learning_rate
from podium.train.precision import resolve
from podium.train.sampler import Samples, sample
from podium.train.settings import GRPOSettings
from podium.train.weights import read_model
from podium.workers.pool import Pool

Draw = Callable[[int], Sequence[tuple[Task, Pool]]]
"""The tasks of an iteration, each with the pool it is asked over; the same iteration gives the same ones."""

Evaluate = Callable[[Path], Awaitable[Mapping[str, Any]]]
"""Judges the policy in a folder; what it returns stands in the iteration's row, under "evaluation"."""


class Score(Protocol):
    """Runs and grades one completion, as `podium.rollout.Scorer.score` does."""

    async def __call__(self, completion: str, task: Task, pool: Pool, *, seed: str) -> Rollout | None: ...


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
        ConfigError: a prompt is too long for the policy.
    """
    course = _Course.of(settings, start, draw, score)
    rows = run.rows()
    checkpoints = Checkpoints(run.path / "checkpoints", start)
    model = read_model(start)
    model.dtype = resolve(settings.dtype)
    optimizer = adamw(model)
    latest = checkpoints.latest()
    place = Place(0, 0.0) if latest is None else checkpoints.restore(latest, model, optimizer)
    rows.truncate(place.iteration)

    with display or _Silent() as shown:
        shown.begin(rows.read(), elapsed_s=place.elapsed_s)
        while place.iteration < settings.iterations and not _out_of_time(place, settings.minutes):
            began = time.perf_counter()
            row = await course.iterate(place.iteration, model, optimizer)
            done = place.iteration + 1
            if evaluate is not None and settings.eval_every and done % settings.eval_every == 0:
                row["evaluation"] = await _evaluated(evaluate, checkpoints, model, run.path / ".evaluated")
            rows.append(row)
            place = Place(done, place.elapsed_s + time.perf_counter() - began)
            if done % settings.save_every == 0:
                checkpoints.save(model, optimizer, place)
            shown.show(row, elapsed_s=place.elapsed_s)

    if place.iteration % settings.save_every:
        checkpoints.save(model, optimizer, place)
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
        if len(start.ends) != 1:
            raise CheckpointError(
                f"{start.path} names {len(start.ends)} tokens that end a text; one is needed."
            )
        return cls(settings, start, Codec.of(start), next(iter(start.ends)), draw, score)

    async def iterate(self, iteration: int, model: PolicyModel, optimizer: Any) -> dict[str, Any]:
        """One batch, one step. Sampling and the update hold the event loop: nothing else is running then."""
        settings = self.settings
        name = f"train/{settings.seed}/{iteration}"
        asked = self.draw(iteration)
        clock = [time.perf_counter()]
        prompts = [self._prompt(task, pool) for task, pool in asked]
        samples = sample(
            model,
            prompts,
            group=settings.group,
            max_tokens=settings.max_tokens,
            end=self.end,
            seed=f"{name}/sample",
            temperature=settings.temperature,
        )
        clock.append(time.perf_counter())
        rollouts = await self._scored(asked, samples, name)
        clock.append(time.perf_counter())
        groups = [
            Group(
                prompt=tuple(prompt),
                completions=sampled.tokens,
                advantages=advantages(
                    [None if one is None else one.reward.total for one in group], settings.floor
                ),
            )
            for prompt, sampled, group in zip(prompts, samples, rollouts, strict=True)
        ]
        rate = learning_rate(
            iteration, peak=settings.lr, iterations=settings.iterations, warmup=settings.warmup
        )
        updated = update(
            model,
            optimizer,
            groups,
            rate=rate,
            loss_type=settings.loss_type,
            max_tokens=settings.max_tokens,
            clip=settings.clip,
            temperature=settings.temperature,
            max_norm=settings.max_norm,
        )
        clock.append(time.perf_counter())
        phases = zip(("sample", "score", "update"), clock[:-1], clock[1:], strict=True)
        return metrics_row(
            iteration,
            rollouts=rollouts,
            samples=samples,
            groups=groups,
            update=updated,
            rate=rate,
            seconds={phase: after - before for phase, before, after in phases},
        )

    def _prompt(self, task: Task, pool: Pool) -> list[int]:
        situation = Situation(task.question, pool.profiles, max_steps=self.settings.max_steps)
        tokens = self.codec.encode(build_prompt(situation, self.start.prompt))
        if len(tokens) + self.settings.max_tokens > self.start.context:
            raise ConfigError(
                f"The prompt of task {task.id} has {len(tokens)} tokens; with max_tokens = "
                f"{self.settings.max_tokens} that exceeds the {self.start.context} that the policy can read."
            )
        return tokens

    async def _scored(
        self, asked: Sequence[tuple[Task, Pool]], samples: Sequence[Samples], name: str
    ) -> list[list[Rollout | None]]:
        """Score all completions of the batch at once, each under its own seed."""
        async with asyncio.TaskGroup() as group:
            pending = [
                [
                    group.create_task(
                        self.score(self.codec.decode(tokens), task, pool, seed=f"{name}/{task.id}/{q}/{g}")
                    )
                    for g, tokens in enumerate(sampled.tokens)
                ]
                for q, ((task, pool), sampled) in enumerate(zip(asked, samples, strict=True))
            ]
        return [[scored.result() for scored in row] for row in pending]


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
