"""The training loop: each iteration draws tasks, samples plans, runs and grades them, and updates the policy.

The loop connects the parts and leaves the work to them. The caller passes the functions that draw tasks, score a
rollout and evaluate a policy. All randomness is named by the seed and the iteration, so a run that was killed and
resumed gives the same policy as one that was not.
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
from podium.conductor.guide import Guide, open_guide
from podium.errors import CheckpointError, ConfigError
from podium.planner import Planner
from podium.rollout import Rollout
from podium.rollout.run_folder import RunFolder
from podium.tasks.task import Task
from podium.train.checkpoints import Checkpoints, TrainingState, read_model
from podium.train.display import Display, NoDisplay
from podium.train.grpo import ReferencePolicy, log_ratios, update
from podium.train.metrics import metrics_row
from podium.train.model import PolicyModel
from podium.train.objective import ADVANTAGES, Advantages, kl_weight
from podium.train.optimizer import OPTIMIZERS, Optimizers, learning_rate
from podium.train.rollout_sampler import BatchedPolicy, RolloutSampler
from podium.train.runtime import resolve_dtype
from podium.train.settings import GRPOSettings
from podium.workers.pool import Pool

DrawTasks = Callable[[int], Sequence[tuple[Task, Pool]]]
"""Takes an iteration and returns its tasks, each with the pool that may answer it. It always returns the same ones."""

Evaluate = Callable[[Path], Awaitable[Mapping[str, Any]]]
"""Evaluates the policy in a folder. The loop writes the result into the iteration's row, under "evaluation"."""


class RolloutScorer(Protocol):
    """Runs one rollout of a task with a planner and rewards it, as `podium.rollout.Scorer.roll` does."""

    async def __call__(
        self, planner: Planner, task: Task, pool: Pool, *, seed: str, cost_sensitivity: int = 0
    ) -> Rollout | None: ...


async def train(
    settings: GRPOSettings,
    *,
    start: Checkpoint,
    run: RunFolder,
    draw_tasks: DrawTasks,
    score: RolloutScorer,
    evaluate: Evaluate | None = None,
    display: AbstractContextManager[Display] | None = None,
) -> Path:
    """Train from `start`, or from the run's newest checkpoint if it has one.

    Returns:
        The folder of the trained policy, `<run>/policy`.

    Raises:
        CheckpointError: `start` cannot be trained by this loop.
        ConfigError: a prompt is too long for the policy, or the policy has another number of cost-sensitivity levels.
    """
    trainer = _Trainer.of(settings, start, draw_tasks, score)
    rows = run.rows()
    checkpoints = Checkpoints(run.path / "checkpoints", start)
    model = read_model(start)
    model.dtype = resolve_dtype(settings.dtype)
    reference = ReferencePolicy(model, settings.temperature) if settings.beta or settings.beta_end else None
    optimizers = OPTIMIZERS[settings.optimizer](model)
    latest = checkpoints.latest()
    state = TrainingState(0, 0.0) if latest is None else checkpoints.restore(latest, model, optimizers)
    rows.truncate(state.iteration)

    with display or NoDisplay() as shown:
        shown.begin(rows.read(), elapsed_s=state.elapsed_s)
        while state.iteration < settings.iterations and not _out_of_time(state, settings.minutes):
            began = time.perf_counter()
            row = await trainer.iterate(state.iteration, model, optimizers, reference)
            done = state.iteration + 1
            if evaluate is not None and settings.eval_every and done % settings.eval_every == 0:
                row["evaluation"] = await _evaluation(evaluate, checkpoints, model, run.path / ".evaluated")
            rows.append(row)
            state = TrainingState(done, state.elapsed_s + time.perf_counter() - began)
            if done % settings.save_every == 0:
                checkpoints.save(model, optimizers, state)
            shown.show(row, elapsed_s=state.elapsed_s)

    if state.iteration % settings.save_every:
        checkpoints.save(model, optimizers, state)
    policy = run.path / "policy"
    part = run.path / ".policy"
    checkpoints.write_policy(
        model, part
    )  # Also where no iteration ran: a stopped run may have left an older one.
    shutil.rmtree(policy, ignore_errors=True)
    part.rename(policy)
    return policy


@dataclass(frozen=True, slots=True)
class _Trainer:
    """The parts that are the same in every iteration."""

    settings: GRPOSettings
    start: Checkpoint
    codec: Codec
    end: int
    draw_tasks: DrawTasks
    score: RolloutScorer
    guide: Guide | None

    @classmethod
    def of(
        cls, settings: GRPOSettings, start: Checkpoint, draw_tasks: DrawTasks, score: RolloutScorer
    ) -> _Trainer:
        if start.chats:
            raise CheckpointError(
                f"{start.path} is prompted through a chat template; this loop trains plain-text policies."
            )
        if len(settings.cost_weights) != start.prompt.levels:
            raise ConfigError(
                f"{start.path} has {start.prompt.levels} levels of cost sensitivity, and grpo.cost_weights has "
                f"{len(settings.cost_weights)}: give one weight for each level."
            )
        if len(start.ends) != 1:
            raise CheckpointError(
                f"{start.path} names {len(start.ends)} end tokens; this loop needs exactly one."
            )
        codec = Codec.of(start)
        guide = open_guide(start.prompt, codec.decode, start.config["vocab_size"])
        return cls(settings, start, codec, next(iter(start.ends)), draw_tasks, score, guide)

    async def iterate(
        self, iteration: int, model: PolicyModel, optimizers: Optimizers, reference: ReferencePolicy | None
    ) -> dict[str, Any]:
        """Run one batch of rollouts and update the policy on it. Sampling and updates block the event loop."""
        settings = self.settings
        name = f"train/{settings.seed}/{iteration}"
        clock = [time.perf_counter()]
        tasks = self.draw_tasks(iteration)
        levels = _levels(len(settings.cost_weights), len(tasks), name)
        sampler = RolloutSampler(
            model,
            self.start,
            self.codec,
            self.end,
            settings,
            levels,
            f"{name}/sample",
            self.guide,
        )
        policy = BatchedPolicy(sampler.generate, self.start.prompt.access)
        rollouts = await self._rollouts(tasks, levels, policy, name)
        clock.append(time.perf_counter())
        advantages = self._advantages(rollouts)
        rollout_nats = [[0.0] * settings.group for _ in rollouts]
        groups = []
        for sampled in sampler.rounds:
            references = None if reference is None else sampled.reference_logprobs(reference)
            of_round = advantages[sampled.round if settings.discount is not None else 0]
            groups.append(
                sampled.group(of_round[sampled.question], settings.skip_suffix_min_prob, references)
            )
            if references is not None:
                for rollout, nats in zip(
                    sampled.rollouts, log_ratios(sampled.samples, references), strict=True
                ):
                    rollout_nats[sampled.question][rollout] += nats
        rate = learning_rate(
            iteration, peak=settings.lr, iterations=settings.iterations, warmup=settings.warmup
        )
        beta = kl_weight(
            iteration, first=settings.beta, last=settings.beta_end, iterations=settings.iterations
        )
        updates = [
            update(
                model,
                optimizers,
                groups,
                rate=rate,
                loss_type=settings.loss_type,
                max_tokens=settings.max_tokens,
                clip=settings.clip,
                temperature=settings.temperature,
                beta=beta,
                max_norm=settings.max_norm,
            )
            for _ in range(settings.num_iterations)
        ]
        clock.append(time.perf_counter())
        began, scored, ended = clock
        return metrics_row(
            iteration,
            rollouts=rollouts,
            samples=[sampled.samples for sampled in sampler.rounds],
            groups=groups,
            log_ratios=rollout_nats,
            update=updates[-1],
            rate=rate,
            seconds={
                "sample": sampler.seconds,
                "score": scored - began - sampler.seconds,
                "update": ended - scored,
            },
        )

    def _advantages(self, rollouts: Sequence[Sequence[Rollout | None]]) -> list[list[Advantages]]:
        """By round and question, the advantages of a group; without a discount all rounds have those of the first."""
        settings = self.settings

        def reward(rollout: Rollout | None, number: int) -> float | None:
            if rollout is None or settings.discount is None:
                return None if rollout is None else rollout.reward.total
            return rollout.earned[number] if number < len(rollout.earned) else None

        return [
            ADVANTAGES[settings.advantage](
                [[reward(rollout, number) for rollout in group] for group in rollouts],
                scale_rewards=settings.scale_rewards,
                std_eps=settings.std_eps,
            )
            for number in range(1 if settings.discount is None else settings.rounds)
        ]

    async def _rollouts(
        self, tasks: Sequence[tuple[Task, Pool]], levels: Sequence[int], policy: BatchedPolicy, name: str
    ) -> list[list[Rollout | None]]:
        """A group of rollouts for each task, each rollout under its own seed."""
        size = self.settings.group
        rollouts = await policy.run(
            [
                partial(
                    self.score, task=task, pool=pool, seed=f"{name}/{task.id}/{q}/{g}", cost_sensitivity=level
                )
                for q, ((task, pool), level) in enumerate(zip(tasks, levels, strict=True))
                for g in range(size)
            ]
        )
        return [rollouts[q * size : (q + 1) * size] for q in range(len(tasks))]


def _levels(count: int, questions: int, name: str) -> list[int]:
    """Draw the level of cost sensitivity of each question; 0 if there are no levels."""
    rng = Random(f"{name}/thrift")
    return [rng.randrange(count) if count else 0 for _ in range(questions)]


async def _evaluation(
    evaluate: Evaluate, checkpoints: Checkpoints, model: PolicyModel, folder: Path
) -> dict[str, Any]:
    """Evaluate the policy. It is written to a temporary folder, because the checkpoint is saved after the row."""
    checkpoints.write_policy(model, folder)
    try:
        return dict(await evaluate(folder))
    finally:
        shutil.rmtree(folder)


def _out_of_time(state: TrainingState, minutes: float | None) -> bool:
    """Whether another iteration of the usual length would exceed the limit."""
    if minutes is None or not state.iteration:
        return False
    return state.elapsed_s * (state.iteration + 1) / state.iteration > minutes * 60
