"""GRPO with TRL's GRPOTrainer.

TRL has the optimiser, the loss, generation and checkpoints. This file gives TRL the groups, the rollouts and the
rewards, and sends Podium's figures to TRL's trackers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from transformers.integrations.integration_utils import get_reporting_integration_callbacks
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from podium.conductor.checkpoint import Checkpoint
from podium.config import suggestion
from podium.errors import ConfigError, PodiumError, collecting_errors
from podium.train.engine import TrainingJob
from podium.train.metrics import batch_figures, tracked_figures
from podium.train.metrics_recorder import applied_norm
from podium.train.rollouts import RolloutSample, TrainingInterruptedError
from podium.train.settings import TrainSettings, setting_value
from podium.train.trl.arguments import trainer_config, trl_arguments
from podium.train.trl.checkpoints import latest_checkpoint, step_of
from podium.train.trl.sampler import TRLSampler
from podium.train.trl.trainer_setup import (
    lora_config,
    missing_packages_as_config_errors,
    quantization_config,
    refused_arguments_as_config_errors,
    setup_problems,
)

_COPIED = {
    "learning_rate": "grpo.lr",
    "num_iterations": "grpo.num_iterations",
    "max_completion_length": "grpo.max_tokens",
    "temperature": "grpo.temperature",
    "loss_type": "grpo.loss_type",
    "scale_rewards": "grpo.scale_rewards",
    "beta": "grpo.beta",
    "epsilon": "grpo.clip",
    "max_grad_norm": "grpo.max_norm",
    "seed": "seed",
}
"""The arguments of GRPOConfig that have the value of a setting of Podium."""
GRPO_SETTINGS = _COPIED | {
    "output_dir": "--run",
    **dict.fromkeys(
        ("max_steps", "num_train_epochs", "logging_steps", "logging_strategy"), "grpo.iterations"
    ),
    **dict.fromkeys(("warmup_ratio", "warmup_steps"), "grpo.warmup"),
    "num_generations": "grpo.group",
    **dict.fromkeys(("generation_batch_size", "steps_per_generation"), "grpo.questions and grpo.group"),
    **dict.fromkeys(("gradient_accumulation_steps", "per_device_train_batch_size"), "grpo.micro_batch"),
    **dict.fromkeys(("save_steps", "save_strategy"), "grpo.save_every"),
    "shuffle_dataset": "seed",
    "chat_template_kwargs": "chat_template_kwargs",
    "remove_unused_columns": "tasks",
}
"""The arguments of GRPOConfig that `[trl]` must not set, each with the setting that decides it."""
_LOSS_TYPES = ("bnpo", "grpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo")
"""GRPOTrainer refuses another one only when it computes a loss, which is after the first batch was paid for."""


def grpo_config(settings: TrainSettings, folder: Path, ranks: int) -> GRPOConfig:
    """The trainer's configuration.

    Args:
        folder: where the trainer writes its checkpoints.
        ranks: the number of processes that train together.

    Raises:
        ConfigError: see `trainer_config`; or the ranks cannot share a batch.
    """
    grpo = settings.grpo
    if grpo.loss_type not in _LOSS_TYPES:
        raise ConfigError(
            f"grpo.loss_type cannot be {grpo.loss_type!r}; {suggestion(grpo.loss_type, _LOSS_TYPES)}",
            ("grpo", "loss_type"),
        )
    micro = min(grpo.micro_batch, max(1, settings.batch // ranks))
    if settings.batch % (ranks * micro):
        raise ConfigError(
            f"A batch of {settings.batch} completions (grpo.questions x grpo.group) cannot be shared by {ranks} "
            f"ranks in micro-batches of {micro}; change grpo.questions, grpo.group or grpo.micro_batch."
        )
    if settings.rounds > 1 and grpo.questions % ranks:
        raise ConfigError(
            f"With several rounds a question stays on one rank: grpo.questions = {grpo.questions} is no multiple of "
            f"the {ranks} ranks."
        )
    accumulation = settings.batch // (ranks * micro)
    steps = grpo.iterations * grpo.num_iterations
    return trainer_config(
        GRPOConfig,
        settings,
        GRPO_SETTINGS,
        **{name: setting_value(settings, key) for name, key in _COPIED.items()},
        output_dir=str(folder),
        max_steps=steps,
        warmup_steps=round(grpo.warmup * steps),
        num_generations=settings.rollouts,
        steps_per_generation=accumulation,
        gradient_accumulation_steps=accumulation,
        per_device_train_batch_size=micro,
        save_strategy="steps",
        save_steps=grpo.save_every * grpo.num_iterations,
        logging_steps=1,
        shuffle_dataset=False,
        remove_unused_columns=False,
    )


def find_problems(settings: TrainSettings, start: Checkpoint | None, ranks: int) -> list[PodiumError]:
    """The reasons why TRL cannot train the run with GRPO: an argument, a setting, or a package that is missing."""
    problems: list[PodiumError] = []
    for key, value in settings.trl.items():
        with collecting_errors(problems):
            trl_arguments({key: value}, GRPOConfig, GRPO_SETTINGS)
    if not problems:
        with collecting_errors(problems):
            grpo_config(settings, Path("checkpoints"), ranks)
    if settings.prompt.guide:
        problems.append(
            ConfigError('TRL samples without a guide; set prompt.guide = "".', ("prompt", "guide"))
        )
    if settings.trl.get("use_vllm") and find_spec("vllm") is None:
        problems.append(
            ConfigError("trl.use_vllm needs vLLM; install it with: pip install 'trl[vllm]', or leave it out.")
        )
    return [*problems, *setup_problems(settings)]


def train(job: TrainingJob) -> None:
    """Train with GRPO, or continue from the newest checkpoint, and write the trained model or adapter."""
    run = job.run
    checkpoint = latest_checkpoint(run.checkpoints)
    done = 0 if checkpoint is None else step_of(checkpoint) // run.settings.grpo.num_iterations
    job.recorder.resume(done)
    if run.ranks.broadcast(job.recorder.is_over):
        job = _ended_after(job, done)
    training = TRLTraining(job)
    training.trainer.remove_callback(PrinterCallback)
    with missing_packages_as_config_errors():
        training.trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    if job.rollouts.stop.is_set():
        raise TrainingInterruptedError
    training.trainer.save_model(str(run.trained))


def _ended_after(job: TrainingJob, iterations: int) -> TrainingJob:
    """The job without its later iterations. After the last one, TRL only loads the checkpoint."""
    settings = job.run.settings
    grpo = settings.grpo.model_copy(update={"iterations": iterations})
    return replace(
        job,
        run=replace(job.run, settings=settings.model_copy(update={"grpo": grpo})),
        groups=[group for group in job.groups if group.iteration < iterations],
    )


class TRLTraining(TrainerCallback):
    """TRL's trainer for one run on this rank, with its rollout function, reward function and callback."""

    def __init__(self, job: TrainingJob) -> None:
        run, settings = job.run, job.run.settings
        self._settings, self._ranks = settings, run.ranks
        self._job = job
        self._groups = {group.label: group for group in job.groups}
        self.samples: list[RolloutSample] = []
        """The samples of the latest batch, of all ranks."""
        self._seconds: dict[str, float] = {}
        self._began = time.perf_counter()
        self._evaluation: dict[str, Any] | None = None
        """The evaluation of the policy after the latest iteration. None if no evaluation was due."""
        # This logger would write every dropped rollout in full.
        logging.getLogger("trl.trainer.grpo_trainer").setLevel(logging.ERROR)
        with refused_arguments_as_config_errors(settings):
            self.trainer = GRPOTrainer(
                model=str(run.start.path),
                reward_funcs=self._reward,
                args=grpo_config(settings, run.checkpoints, run.ranks.size),
                train_dataset=Dataset.from_list([{"prompt": group.label} for group in job.groups]),
                processing_class=run.tokenizer,
                callbacks=[self],
                peft_config=lora_config(settings),
                quantization_config=quantization_config(settings),
                rollout_func=self._generate_batch,
            )
        # This callback adds the figures of an evaluation, so trackers must be called after it.
        for kind in get_reporting_integration_callbacks(self.trainer.args.report_to):  # type: ignore[no-untyped-call]
            if (tracker := self.trainer.pop_callback(kind)) is not None:
                self.trainer.add_callback(tracker)
        self.sampler = TRLSampler(self.trainer, job.rollouts.stop)

    def _generate_batch(self, prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
        """TRL's rollout function: makes the batch of the groups in `prompts`. Each group occurs once for each
        sample."""
        first = trainer.accelerator.process_index * len(prompts)
        # Ranks have parts of the batch in order, and samples of one group are together.
        samples = [
            RolloutSample(self._groups[label], (first + index) % trainer.num_generations)
            for index, label in enumerate(prompts)
        ]
        max_samples = len(prompts) // self._settings.rounds
        completed, self._seconds = self._job.rollouts.run(samples, self.sampler, max_samples=max_samples)
        self.samples = self._ranks.gather(completed)
        # A round that a rollout does not reach has one token, from which nothing is learned.
        nothing = trainer.processing_class.eos_token_id
        return {
            "prompt_ids": [list(sample.prompt) or [nothing] for sample in completed],
            "completion_ids": [list(sample.tokens) or [nothing] for sample in completed],
            "logprobs": _all_or_none([sample.logprobs for sample in completed]),
            "env_mask": [[int(bool(sample.tokens))] * max(1, len(sample.tokens)) for sample in completed],
            "podium_reward": [sample.reward for sample in completed],
        }

    def _reward(self, podium_reward: list[float | None], log_metric: Any, **_: Any) -> list[float | None]:
        """TRL's reward function: returns the rewards that the rollout function has already computed."""
        for name, value in tracked_figures(batch_figures(self.samples)).items():
            log_metric(f"podium/{name}", value)
        return podium_reward

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        passes = self._settings.grpo.num_iterations
        if state.global_step % passes == 0:  # The first pass over a batch also generates it.
            self._began = time.perf_counter()
            self._job.recorder.start_iteration(state.global_step // passes)

    def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_training_stop = control.should_training_stop or self._job.rollouts.stop.is_set()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.on_substep_end(args, state, control)  # A step of one micro-batch has no substeps.
        self._evaluation = None
        if state.global_step % self._settings.grpo.num_iterations == 0:
            self._evaluation = self._job.evaluate(self.sampler)

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        logs: dict[str, Any] = kwargs["logs"]
        if "loss" not in logs or state.global_step % self._settings.grpo.num_iterations:
            return
        for name, value in (self._evaluation or {}).items():
            logs[f"podium/evaluation/{name}"] = float(value)
        evaluated = 0.0 if self._evaluation is None else self._evaluation["seconds"]
        took = time.perf_counter() - self._began - sum(self._seconds.values()) - evaluated
        goes_on = self._job.recorder.record(
            self.samples,
            loss=logs["loss"],
            seconds={**self._seconds, "update": max(0.0, took)},
            evaluation=self._evaluation,
            entropy=logs.get("entropy", 0.0),
            kl=logs.get("kl", 0.0),
            grad_norm=applied_norm(logs.get("grad_norm", 0.0), scaled=args.fp16),
            lr=logs["learning_rate"],
        )
        if not self._ranks.broadcast(goes_on):
            control.should_save = control.should_training_stop = True


def _all_or_none(logprobs: Sequence[Sequence[float] | None]) -> list[list[float]] | None:
    """The log-probabilities of all rows, which vLLM gives. None with transformers, which gives none."""
    if all(row is None for row in logprobs):
        return None
    return [list(row or [0.0]) for row in logprobs]
