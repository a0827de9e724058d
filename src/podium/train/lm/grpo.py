"""The reinforcement stage: TRL's GRPOTrainer over the scoring session.

TRL has the optimiser, the loss, generation and checkpoints. This file gives TRL the rows, the rollouts and the rewards,
and sends our figures to its trackers. The trainer runs in a thread of its own; the scoring session runs in the event
loop.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

from datasets import Dataset
from transformers import PrinterCallback
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.sft_config import SFTConfig

from podium.conductor.checkpoint import Checkpoint
from podium.config import closest_name
from podium.errors import CheckpointError, ConfigError
from podium.rollout.run_folder import RunFolder
from podium.scoring import Scoring
from podium.train.display import Display
from podium.train.lm.evaluation import Evaluation
from podium.train.lm.metrics import batch_figures, numbers
from podium.train.lm.progress import Progress
from podium.train.lm.recorder import Recorder
from podium.train.lm.rollouts import PromptCodec, RolloutFunction, TrainingInterruptedError
from podium.train.lm.schedule import Row, by_label
from podium.train.lm.settings import LMExperiment

GRPO_SETTINGS = {
    "output_dir": "--run",
    "max_steps": "grpo.iterations",
    "num_train_epochs": "grpo.iterations",
    "learning_rate": "grpo.lr",
    "warmup_ratio": "grpo.warmup",
    "warmup_steps": "grpo.warmup",
    "num_generations": "grpo.group",
    "generation_batch_size": "grpo.questions and grpo.group",
    "steps_per_generation": "grpo.questions and grpo.group",
    "gradient_accumulation_steps": "grpo.micro_batch",
    "per_device_train_batch_size": "grpo.micro_batch",
    "num_iterations": "grpo.num_iterations",
    "max_completion_length": "grpo.max_tokens",
    "temperature": "grpo.temperature",
    "loss_type": "grpo.loss_type",
    "scale_rewards": "grpo.scale_rewards",
    "beta": "grpo.beta",
    "epsilon": "grpo.clip",
    "max_grad_norm": "grpo.max_norm",
    "save_steps": "grpo.save_every",
    "save_strategy": "grpo.save_every",
    "seed": "seed",
    "shuffle_dataset": "seed",
    "chat_template_kwargs": "chat_template_kwargs",
    "logging_steps": "grpo.iterations",
    "remove_unused_columns": "tasks",
}
"""Arguments of GRPOConfig that Podium sets, and the setting that decides each."""

TRL_DEFAULTS: dict[str, Any] = {
    "lr_scheduler_type": "cosine",
    "report_to": "none",
    "bf16": False,
    "save_total_limit": 2,
    "disable_tqdm": True,
}
"""Of both stages, where `[trl]` has no value."""


def trl_config(experiment: LMExperiment, folder: Path, ranks: int) -> GRPOConfig:
    """The trainer's configuration.

    Args:
        folder: for its checkpoints.
        ranks: processes that train together.

    Raises:
        ConfigError: a setting under [trl] that TRL does not know, or that a setting of Podium decides; a batch that the
            ranks cannot share.
    """
    given = TRL_DEFAULTS | trl_arguments(experiment.trl, GRPOConfig, GRPO_SETTINGS)
    grpo = experiment.grpo
    micro = min(grpo.micro_batch, max(1, experiment.batch // ranks))
    if experiment.batch % (ranks * micro):
        raise ConfigError(
            f"A batch of {experiment.batch} completions (grpo.questions x grpo.group) cannot be shared by {ranks} "
            f"ranks in micro-batches of {micro}; change grpo.questions, grpo.group or grpo.micro_batch."
        )
    if experiment.rounds > 1 and grpo.questions % ranks:
        raise ConfigError(
            f"With several rounds a question stays on one rank: grpo.questions = {grpo.questions} is no multiple of "
            f"the {ranks} ranks."
        )
    accumulation = experiment.batch // (ranks * micro)
    steps = grpo.iterations * grpo.num_iterations
    try:
        return GRPOConfig(
            output_dir=str(folder),
            max_steps=steps,
            learning_rate=grpo.lr,
            warmup_steps=round(grpo.warmup * steps),
            num_generations=experiment.samples,
            steps_per_generation=accumulation,
            gradient_accumulation_steps=accumulation,
            per_device_train_batch_size=micro,
            num_iterations=grpo.num_iterations,
            max_completion_length=grpo.max_tokens,
            temperature=grpo.temperature,
            loss_type=grpo.loss_type,
            scale_rewards=grpo.scale_rewards,
            beta=grpo.beta,
            epsilon=grpo.clip,
            max_grad_norm=grpo.max_norm,
            save_strategy="steps",
            save_steps=grpo.save_every * grpo.num_iterations,
            logging_steps=1,
            seed=experiment.seed,
            shuffle_dataset=False,
            remove_unused_columns=False,
            **given,
        )
    except (ValueError, TypeError, ImportError) as error:
        raise ConfigError(f"TRL refuses the configuration: {error}") from None


def trl_arguments(table: Mapping[str, Any], config: type, ours: Mapping[str, str]) -> dict[str, Any]:
    """The arguments in `[trl]` that one stage's trainer takes.

    One file serves both stages, so arguments that only the other stage's trainer knows are left out.

    Args:
        config: GRPOConfig or SFTConfig.
        ours: the arguments that settings of Podium decide, each with its setting.

    Raises:
        ConfigError: an argument that no trainer knows, with the closest known name; or one that is in `ours`.
    """
    known = {field.name for each in (GRPOConfig, SFTConfig) for field in fields(each)}
    for key in table:
        if key in ours:
            raise ConfigError(f"trl.{key} is decided by {ours[key]}; set that.", ("trl", key))
        if key not in known:
            near = closest_name(key, known)
            way_out = f"; did you mean {near!r}?" if near else "."
            raise ConfigError(f"trl.{key}: {config.__name__} has no such argument{way_out}", ("trl", key))
    taken = {field.name for field in fields(config)}
    return {key: value for key, value in table.items() if key in taken}


class PodiumGRPO:
    """One reinforcement run, on this rank.

    Args:
        start: the model.
        evaluated: ids of the questions on which the policy is evaluated every `grpo.eval_every` iterations.
        scoring: runs and rewards plans; it lives in `loop`.
        run: the run's folder; None: this rank writes nothing.
    """

    def __init__(
        self,
        experiment: LMExperiment,
        config: GRPOConfig,
        *,
        rows: Sequence[Row],
        evaluated: Sequence[str] = (),
        start: Checkpoint,
        tokenizer: Any,
        codec: PromptCodec,
        scoring: Scoring,
        loop: asyncio.AbstractEventLoop,
        run: RunFolder | None,
        display: Display,
        progress: Progress,
        on_warning: Callable[[str], None],
    ) -> None:
        self._experiment = experiment
        self._config = config
        self._stop = threading.Event()
        logging.getLogger("trl.trainer.grpo_trainer").setLevel(
            logging.ERROR
        )  # It prints every dropped rollout whole.
        self.rollouts = RolloutFunction(
            by_label(rows),
            scoring,
            loop,
            codec,
            rounds=experiment.rounds,
            discount=experiment.grpo.discount,
            context=start.context,
            stop=self._stop,
            on_plan=lambda tokens: progress.advance(1, tokens),
        )
        self._evaluation = Evaluation(
            evaluated, self.rollouts, rounds=experiment.rounds, seed=experiment.seed
        )
        self.recorder = Recorder(
            experiment,
            self.rollouts,
            run=run,
            display=display,
            progress=progress,
            on_warning=on_warning,
            evaluate=self._evaluate if evaluated and experiment.grpo.eval_every else None,
            stop=self._stop,
        )
        try:
            self.trainer = GRPOTrainer(
                model=str(start.path),
                reward_funcs=self._reward,
                args=config,
                train_dataset=Dataset.from_list([{"prompt": row.label} for row in rows]),
                processing_class=tokenizer,
                callbacks=[self.recorder],
                peft_config=lora_config(experiment),
                quantization_config=quantization(experiment),
                rollout_func=self.rollouts,
            )
        except (ValueError, TypeError, ImportError, OSError, RuntimeError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise ConfigError(f"The trainer cannot be set up with {experiment.start}: {reason}") from error

    def train(self, saved: Path) -> None:
        """Train, or go on from the newest checkpoint, and save the model or adapter in `saved`.

        Raises:
            BudgetError: the dollars of the run or the day are spent; the same call goes on from the newest checkpoint.
            TrainingInterruptedError: `stop` was called.
        """
        checkpoint = latest_checkpoint(Path(str(self._config.output_dir)))
        self.recorder.begin(0 if checkpoint is None else step_of(checkpoint))
        self.trainer.remove_callback(PrinterCallback)
        self.trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        if self._stop.is_set():
            raise TrainingInterruptedError
        self.trainer.save_model(str(saved))

    def stop(self) -> None:
        """End the run as soon as possible. May be called from another thread."""
        self._stop.set()

    def _reward(self, podium_reward: list[float | None], log_metric: Any, **_: Any) -> list[float | None]:
        """TRL's reward function: returns the rewards that the rollout function has already computed."""
        self.recorder.figures = batch_figures(self.rollouts.samples)
        for name, value in numbers(self.recorder.figures).items():
            log_metric(f"podium/{name}", value)
        return podium_reward

    def _evaluate(self) -> dict[str, Any]:
        """The figures of the policy as it is now. TRL logs them with those of the step."""
        figures = self._evaluation(self.trainer)
        for name, value in figures.items():
            self.trainer._metrics["train"][f"podium/evaluation/{name}"].append(float(value))
        return figures


def latest_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint; a kill may leave one that lacks its last file.

    Raises:
        CheckpointError: the state of its optimiser is cut or damaged.
    """
    whole = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json")]
    newest = max(whole, key=step_of, default=None)
    state = None if newest is None else newest / "optimizer.pt"
    if state is not None and state.is_file() and not is_zipfile(state):  # torch's files are archives.
        raise CheckpointError(
            f"{state} is cut or damaged; restore it, or remove its folder to go on from the checkpoint before."
        )
    return newest


def step_of(checkpoint: Path) -> int:
    """The steps of the optimiser that a checkpoint holds."""
    return int(checkpoint.name.rpartition("-")[2])


def lora_config(experiment: LMExperiment) -> Any:
    """peft's LoraConfig; None: all weights are trained.

    Raises:
        ConfigError: peft is not installed, or refuses an argument.
    """
    if experiment.lora is None:
        return None
    try:
        from peft import LoraConfig  # noqa: PLC0415 - an extra's part

        return LoraConfig(**{"task_type": "CAUSAL_LM", "target_modules": "all-linear", **experiment.lora})
    except (ImportError, TypeError, ValueError) as error:
        raise ConfigError(f"[lora] cannot be used: {error}") from None


def quantization(experiment: LMExperiment) -> Any:
    """transformers' BitsAndBytesConfig; None: weights are loaded as they are.

    Raises:
        ConfigError: bitsandbytes is not installed, or refuses an argument.
    """
    if experiment.quantization is None:
        return None
    try:
        from transformers import BitsAndBytesConfig  # noqa: PLC0415

        return BitsAndBytesConfig(**experiment.quantization)  # type: ignore[no-untyped-call]
    except (ImportError, TypeError, ValueError) as error:
        raise ConfigError(f"[quantization] cannot be used: {error}") from None
