"""The training loop of the engine shared_prefix: each iteration samples plans, has them scored, and updates the policy.

All randomness is named by the seed and the iteration, so a run that was killed and resumed gives the same policy as an
uninterrupted run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import torch

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.loaded_model import open_guide
from podium.errors import CheckpointError, ConfigError, PodiumError
from podium.train.engine import TrainingJob
from podium.train.objective import ADVANTAGES, LOSSES
from podium.train.rollouts import RolloutSample, TrainingInterruptedError
from podium.train.runtime import compute_on_one_core, named_generator, resolve_device, resolve_dtype
from podium.train.schedule import ScheduledGroup
from podium.train.settings import GRPOSettings, TrainSettings
from podium.train.shape import ModelShape
from podium.train.shared_prefix.batch import TrainingRow, count_trainable_tokens
from podium.train.shared_prefix.checkpoints import Checkpoints, read_model, write_trained
from podium.train.shared_prefix.lora import LoraSettings, add_lora
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.sampler import GroupSampler, grouped_samples
from podium.train.shared_prefix.update import ReferencePolicy, adamw, learning_rate, update
from podium.train.start import TINY_PARAMETERS

MAX_PARAMETERS = 1_000_000_000
"""The most parameters of a model that this engine trains."""


def find_problems(settings: TrainSettings, start: Checkpoint | None, ranks: int) -> list[PodiumError]:
    """The reasons why this engine cannot train the run with GRPO: its loss, its LoRA, or its start."""
    if settings.grpo.loss_type in LOSSES:
        return start_problems(settings, start)
    unknown = ConfigError(
        f"grpo.loss_type = {settings.grpo.loss_type!r}: the engine shared_prefix has {', '.join(LOSSES)}.",
        ("grpo", "loss_type"),
    )
    return [unknown, *start_problems(settings, start)]


def start_problems(settings: TrainSettings, start: Checkpoint | None) -> list[PodiumError]:
    """The reasons why this engine cannot train a checkpoint, in either stage."""
    reasons: list[PodiumError] = []
    try:
        LoraSettings.of(settings)
    except ConfigError as error:
        reasons.append(error)
    if start is None:
        return reasons
    if not start.eos_token_ids:
        reasons.append(CheckpointError(f"{start.path} names no token that ends a completion."))
    try:
        shape = ModelShape.read(start.config, str(start.path / "config.json"))
    except CheckpointError as error:
        return [*reasons, error]
    if shape.parameters > MAX_PARAMETERS or (start.path / "model.safetensors.index.json").is_file():
        reasons.append(
            CheckpointError(
                f"{start.path} has more than {MAX_PARAMETERS:,} parameters, or in several files, which the engine "
                'shared_prefix does not train; set engine = "trl".'
            )
        )
    return reasons


def train(job: TrainingJob) -> None:
    """Train with GRPO, or continue from the newest checkpoint, and write the trained model."""
    run, settings, recorder = job.run, job.run.settings.grpo, job.recorder
    model = open_model(run.start, run.settings)
    reference = ReferencePolicy(model, settings.temperature) if settings.beta else None
    optimizer = adamw(model)
    checkpoints = Checkpoints(run.checkpoints, run.start, run.settings.prompt)
    latest = checkpoints.latest()
    done = 0 if latest is None else checkpoints.restore(latest, model, optimizer)
    recorder.resume(done)
    guide = open_guide(run.settings.prompt, run.codec.decode, run.start.config["vocab_size"])
    goes_on = not recorder.is_over
    while goes_on and done < settings.iterations:
        recorder.start_iteration(done)
        groups = [group for group in job.groups if group.iteration == done]
        samples = [
            RolloutSample(group, number) for group in groups for number in range(run.settings.rollouts)
        ]
        sampler = GroupSampler(
            model,
            eos_token_ids=run.start.eos_token_ids,
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
            seed=f"train/{run.settings.seed}/{done}/sample",
            guide=guide,
        )
        completed, seconds = job.rollouts.run(samples, sampler, max_samples=len(samples))
        if job.rollouts.stop.is_set():
            raise TrainingInterruptedError
        began = time.perf_counter()
        figures = _update(model, optimizer, completed, settings, reference, iteration=done)
        seconds["update"] = time.perf_counter() - began
        evaluation = job.evaluate(sampler)
        goes_on = recorder.record(completed, seconds=seconds, evaluation=evaluation, **figures)
        done += 1
        if done % settings.save_every == 0:
            checkpoints.save(model, optimizer, done)
    if latest is None or int(latest.name) != done:
        checkpoints.save(model, optimizer, done)
    write_trained(model, run.trained, run.start)


def open_model(start: Checkpoint, settings: TrainSettings) -> PolicyModel:
    """The model of the start, on the device where it trains, with the run's LoRA. This sets the dtype of its products,
    and one core for a tiny model."""
    device = resolve_device()
    model = read_model(start).to(device)
    if (lora := LoraSettings.of(settings)) is not None:
        add_lora(model.requires_grad_(False).layers, lora, named_generator(f"lora/{settings.seed}"))
    if sum(weight.numel() for weight in model.parameters()) <= TINY_PARAMETERS:
        compute_on_one_core()
    model.dtype = resolve_dtype(settings.dtype, device.type)
    return model


def _update(
    model: PolicyModel,
    optimizer: torch.optim.Optimizer,
    samples: Sequence[RolloutSample],
    settings: GRPOSettings,
    reference: ReferencePolicy | None,
    *,
    iteration: int,
) -> dict[str, Any]:
    """Take the optimiser's steps on a batch. Returns the figures of the last step."""
    groups = [
        make_group(of_group, advantages, settings.skip_suffix_min_prob, reference)
        for of_group, advantages in advantages_of(samples, settings)
    ]
    log_ratios = [
        drawn - other
        for group in groups
        for row in group
        for drawn, other in zip(row.old_logprobs, row.reference_logprobs or (), strict=False)
    ]
    logprobs = [value for sample in samples for value in sample.logprobs or ()]
    rate = learning_rate(iteration, peak=settings.lr, iterations=settings.iterations, warmup=settings.warmup)
    for _ in range(settings.num_iterations):
        loss, norm = update(model, optimizer, groups, settings, rate=rate)
    return {
        "loss": loss,
        "grad_norm": norm,
        "lr": rate,
        "entropy": -fmean(logprobs) if logprobs else 0.0,
        "kl": fmean(log_ratios) if log_ratios else 0.0,
    }


def advantages_of(
    samples: Sequence[RolloutSample], settings: GRPOSettings
) -> Iterator[tuple[list[RolloutSample], list[float | None]]]:
    """The samples of each group that have a completion, with their advantages, round after round.

    The samples of a round are compared with each other. Without a discount, all rounds of a rollout have the advantage
    of its first round, in which all rollouts of the question take part.
    """
    advantage_of: dict[tuple[str, int], float | None] = {}
    for number in sorted({sample.group.round for sample in samples}):
        of_round = [sample for sample in samples if sample.group.round == number]
        if number == 0 or settings.discount != "none":
            groups: dict[ScheduledGroup, list[RolloutSample]] = {}
            for sample in of_round:
                groups.setdefault(sample.group, []).append(sample)
            advantages = ADVANTAGES[settings.advantage](
                [[sample.reward for sample in group] for group in groups.values()],
                scale_rewards=settings.scale_rewards,
                std_eps=settings.std_eps,
            )
            advantage_of = {
                sample.key: value
                for group, values in zip(groups.values(), advantages, strict=True)
                for sample, value in zip(group, values, strict=True)
            }
        for group in grouped_samples(of_round):
            yield group, [advantage_of[sample.key] for sample in group]


def make_group(
    samples: Sequence[RolloutSample],
    advantages: Sequence[float | None],
    skip_suffix_min_prob: float,
    reference: ReferencePolicy | None,
) -> list[TrainingRow]:
    """The group that the update reads, made of samples of one question and round.

    Args:
        skip_suffix_min_prob: the last tokens of a completion are not trained on if each had at least this probability.
        reference: the policy that training started from. None if there is no KL term.
    """
    group = []
    for sample, advantage in zip(samples, advantages, strict=True):
        logprobs = sample.logprobs or ()
        trainable = count_trainable_tokens(logprobs, skip_suffix_min_prob)
        group.append(TrainingRow(sample.prompt, sample.tokens, advantage, trainable, logprobs))
    if reference is None:
        return group
    measured = zip(group, reference.logprobs(group), strict=True)
    return [replace(row, reference_logprobs=logprobs) for row, logprobs in measured]
