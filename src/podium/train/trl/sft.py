"""The supervised stage with TRL's SFTTrainer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from podium.conductor.checkpoint import Checkpoint
from podium.errors import ConfigError, PodiumError, collecting_errors
from podium.train.engine import EncodedExample, SupervisedJob
from podium.train.metrics_recorder import applied_norm
from podium.train.settings import TrainSettings
from podium.train.trl.arguments import trainer_config
from podium.train.trl.checkpoints import latest_checkpoint, step_of
from podium.train.trl.trainer_setup import (
    lora_config,
    missing_packages_as_config_errors,
    quantization_config,
    refused_arguments_as_config_errors,
    setup_problems,
)

_OURS = {
    "output_dir": "--run",
    **dict.fromkeys(("num_train_epochs", "max_steps", "logging_steps", "logging_strategy"), "sft.epochs"),
    "learning_rate": "sft.lr",
    "per_device_train_batch_size": "sft.micro_batch",
    "gradient_accumulation_steps": "sft.batch",
    **dict.fromkeys(("save_steps", "save_strategy"), "sft.save_every"),
    "seed": "seed",
    "max_length": "the model's context",
    "completion_only_loss": "the plans, which alone are learned",
    "dataset_text_field": "sft.examples",
    "chat_template_path": "start",
}
"""The arguments of SFTConfig that `[trl]` must not set, each with the setting that decides it."""


def find_problems(settings: TrainSettings, start: Checkpoint | None, ranks: int) -> list[PodiumError]:
    """The reasons why TRL cannot train the run on examples: an argument, or a package that is missing."""
    problems: list[PodiumError] = []
    with collecting_errors(problems):
        sft_config(settings, Path(), ranks, context=1)
    return [*problems, *setup_problems(settings)]


def train(job: SupervisedJob) -> None:
    """Train on examples, or continue from the newest checkpoint, and write the trained model or adapter."""
    run, recorder = job.run, job.recorder
    with refused_arguments_as_config_errors(run.settings):
        trainer = SFTTrainer(
            model=str(run.start.path),
            args=sft_config(run.settings, run.checkpoints, run.ranks.size, run.start.context),
            train_dataset=make_dataset(job.examples),
            processing_class=run.tokenizer,
            peft_config=lora_config(run.settings),
            quantization_config=quantization_config(run.settings),
            callbacks=[_StepCallback(job)],
        )
    trainer.remove_callback(PrinterCallback)
    checkpoint = latest_checkpoint(run.checkpoints)
    recorder.resume(0 if checkpoint is None else step_of(checkpoint))
    with missing_packages_as_config_errors():
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    recorder.progress.phase("saving the policy")
    trainer.save_model(str(run.trained))


def sft_config(settings: TrainSettings, folder: Path, ranks: int, context: int) -> SFTConfig:
    """The trainer's configuration.

    Args:
        folder: where the trainer writes its checkpoints.
        ranks: the number of processes that train together.
        context: the most tokens of an example.

    Raises:
        ConfigError: see `trainer_config`; or the ranks cannot share a batch.
    """
    sft = settings.sft
    micro = min(sft.micro_batch, max(1, sft.batch // ranks))
    if sft.batch % (ranks * micro):
        raise ConfigError(
            f"A batch of {sft.batch} examples (sft.batch) cannot be shared by {ranks} rank(s) in micro-batches of "
            f"{micro}; make sft.batch a multiple of {ranks * micro}, or change sft.micro_batch."
        )
    return trainer_config(
        SFTConfig,
        settings,
        _OURS,
        output_dir=str(folder),
        num_train_epochs=sft.epochs,
        learning_rate=sft.lr,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=sft.batch // (micro * ranks),
        save_strategy="steps",
        save_steps=sft.save_every,
        logging_steps=1,
        seed=settings.seed,
        max_length=context,
        completion_only_loss=True,
    )


def make_dataset(examples: Sequence[EncodedExample]) -> Dataset:
    """The token ids, with a mask of the tokens to learn, which are those of the completion."""
    return Dataset.from_list(
        [
            {
                "input_ids": [*example.prompt, *example.completion],
                "completion_mask": [0] * len(example.prompt) + [1] * len(example.completion),
            }
            for example in examples
        ]
    )


class _StepCallback(TrainerCallback):
    """Writes a row for each step of the optimiser, and counts the learned examples."""

    def __init__(self, job: SupervisedJob) -> None:
        self._recorder = job.recorder
        self._tokens = sum(example.length for example in job.examples) / len(job.examples)
        """The tokens of an example, on average."""

    def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        count = args.per_device_train_batch_size * args.world_size
        self._recorder.progress.advance(count, round(count * self._tokens))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.on_substep_end(args, state, control)  # A step's last micro-batch has no event of its own.

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        logs: dict[str, Any] = kwargs["logs"]
        if "loss" not in logs:
            return
        recorded = ("loss", "grad_norm", "learning_rate", "entropy", "mean_token_accuracy")
        figures = {key: float(logs[key]) for key in recorded if key in logs}
        if "grad_norm" in figures:
            figures["grad_norm"] = applied_norm(figures["grad_norm"], scaled=args.fp16)
        self._recorder.record(state.global_step, figures)
