"""The supervised stage: TRL's SFTTrainer on demonstrations. It calls no worker; a judge may grade traces.

The examples are encoded by the codec that encodes the policy's prompts later, so both have the same tokens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from podium.conductor.checkpoint import Checkpoint
from podium.errors import ConfigError
from podium.executor import Dispatcher
from podium.rollout.run_data import RunData
from podium.rollout.run_folder import RunFolder
from podium.scoring import open_session
from podium.scoring.session import Dispatch
from podium.team.opening import open_pool
from podium.train.engine import choose_engine
from podium.train.examples import Demonstration, collect_demonstrations
from podium.train.progress import Progress
from podium.train.rollouts import PromptCodec
from podium.train.settings import CHANGEABLE_ON_RESUME, TrainSettings
from podium.train.trained_policy import find_start, open_codec, open_tokenizer, write_policy
from podium.train.trl.engine import (
    TRL_DEFAULTS,
    latest_checkpoint,
    lora_config,
    quantization,
    step_of,
    trl_arguments,
)
from podium.train.trl.ranks import AcceleratedRanks
from podium.workers.pool import Pool

_OURS = {
    "output_dir": "--run",
    "num_train_epochs": "sft.epochs",
    "max_steps": "sft.epochs",
    "learning_rate": "sft.lr",
    "per_device_train_batch_size": "sft.micro_batch",
    "gradient_accumulation_steps": "sft.batch",
    "save_steps": "sft.save_every",
    "save_strategy": "sft.save_every",
    "logging_steps": "sft.epochs",
    "seed": "seed",
    "max_length": "the model's context",
    "completion_only_loss": "the plans, which alone are learned",
    "dataset_text_field": "sft.examples",
}
"""Arguments of SFTConfig that Podium sets, and the setting that decides each."""


def run_sft(
    settings: TrainSettings,
    folder: Path,
    *,
    dispatch: Dispatch = lambda pool: nullcontext(Dispatcher()),
    on_warning: Callable[[str], None] = lambda warning: None,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Train in a run folder, or resume the run that it holds. Returns the folder of the trained policy.

    Args:
        say: prints a line of progress; called from a thread too.
        dispatch: opens what keeps the budget and the replies of the judges that grade traces.

    Raises:
        BudgetError: the dollars of the run or the day do not suffice to grade the traces.
        CheckpointError: the start is no checkpoint that can be trained.
        ConfigError: pool, tasks, examples or a trainer's setting cannot be used.
        RunMismatchError: the folder belongs to another configuration.
    """
    if choose_engine(settings) == "small":
        raise ConfigError("--stage sft needs the engine trl: leave out the engine small.", ("engine",))
    ranks = AcceleratedRanks()
    pool = open_pool(settings.pool, ready=False)  # No worker is called: none needs its key.
    with ExitStack() as opened:
        opened.callback(lambda: asyncio.run(pool.close()))
        progress = Progress(say if ranks.first else lambda line: None, noun="examples")
        opened.enter_context(progress)
        progress.phase("opening the model")
        start = find_start(settings)
        tokenizer = open_tokenizer(settings, start)
        codec = open_codec(settings, start, tokenizer)
        config = _config(settings, folder / "checkpoints", ranks.size, start.context)
        run = ranks.run_on_first(lambda: RunFolder.open(folder, settings, changeable=CHANGEABLE_ON_RESUME))
        progress.phase("collecting examples")
        collected = ranks.run_on_first(lambda: asyncio.run(_collect(settings, pool, dispatch, on_warning)))
        examples = ranks.broadcast(collected) or []
        pairs = [
            ([message.model_dump() for message in example.messages], example.completion)
            for example in examples
        ]
        ranks.run_on_first(lambda: RunFolder(folder).require(RunData.of_examples(pairs, pool.profiles)))
        progress.phase("encoding the examples")
        dataset = make_dataset(examples, codec, tokenizer.eos_token_id, start)
        progress.phase("loading the model")
        trainer = SFTTrainer(
            model=str(start.path),
            args=config,
            train_dataset=dataset,
            processing_class=tokenizer,
            peft_config=lora_config(settings),
            quantization_config=quantization(settings),
            callbacks=[_Recorder(run, progress, dataset, settings)],
        )
        trainer.remove_callback(PrinterCallback)
        checkpoint = latest_checkpoint(folder / "checkpoints")
        if run is not None:
            run.rows().truncate(0 if checkpoint is None else step_of(checkpoint))
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        progress.phase("saving the policy")
        trainer.save_model(str(folder / "trained"))
        if ranks.first:
            write_policy(folder, settings, start, pool)
        ranks.wait()
        return folder / "policy"


async def _collect(
    settings: TrainSettings, pool: Pool, dispatch: Dispatch, on_warning: Callable[[str], None]
) -> list[Demonstration]:
    with dispatch(pool) as dispatcher:
        async with open_session(settings, dispatcher, pool=pool, on_warning=on_warning) as session:
            return await collect_demonstrations(settings, session, on_warning)


def _config(settings: TrainSettings, folder: Path, ranks: int, context: int) -> SFTConfig:
    given = TRL_DEFAULTS | trl_arguments(settings.trl, SFTConfig, _OURS)
    sft = settings.sft
    micro = min(sft.micro_batch, max(1, sft.batch // ranks))
    if sft.batch % (ranks * micro):
        raise ConfigError(
            f"A batch of {sft.batch} examples (sft.batch) cannot be shared by {ranks} rank(s) in micro-batches of "
            f"{micro}; make sft.batch a multiple of {ranks * micro}, or change sft.micro_batch."
        )
    try:
        return SFTConfig(
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
            **given,
        )
    except (ValueError, TypeError, ImportError) as error:
        raise ConfigError(f"TRL refuses the configuration: {error}") from None


def make_dataset(
    examples: Sequence[Demonstration], codec: PromptCodec, end: int, start: Checkpoint
) -> Dataset:
    """Token ids with a mask of what is learned: the completion and the token that ends it.

    Raises:
        ConfigError: an example is longer than the model can read.
    """
    rows = []
    for number, example in enumerate(examples, start=1):
        prompt = codec.encode(example.messages)
        completion = [*codec.encode_completion(example.completion), end]
        if len(prompt) + len(completion) > start.context:
            raise ConfigError(
                f"Example {number} has {len(prompt) + len(completion):,} tokens, and {start.path} reads "
                f"{start.context:,}; show fewer examples (prompt.examples), or leave it out (sft.max_plan_chars)."
            )
        rows.append(
            {
                "input_ids": [*prompt, *completion],
                "completion_mask": [0] * len(prompt) + [1] * len(completion),
            }
        )
    return Dataset.from_list(rows)


class _Recorder(TrainerCallback):
    """Writes a row for each step of the optimiser, and counts what is learned."""

    def __init__(
        self, run: RunFolder | None, progress: Progress, dataset: Dataset, settings: TrainSettings
    ) -> None:
        self._rows = None if run is None else run.rows()
        self._progress = progress
        self._batch = settings.sft.batch
        self._tokens = sum(map(len, dataset["input_ids"])) / len(dataset)
        """The tokens of an example, on average."""
        progress.total = round(settings.sft.epochs * len(dataset))

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._micro = args.per_device_train_batch_size * args.world_size
        self._progress.phase("")
        self._progress.begin(min(state.global_step * self._batch, self._progress.total))

    def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._progress.advance(self._micro, round(self._micro * self._tokens))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.on_substep_end(args, state, control)  # A step's last micro-batch has no event of its own.

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        logs: dict[str, Any] = kwargs["logs"]
        if "loss" in logs:
            self._progress.learned(float(logs["loss"]))
        if self._rows is not None and "loss" in logs:
            kept = ("loss", "grad_norm", "learning_rate", "entropy", "mean_token_accuracy")
            self._rows.append(
                {"step": state.global_step, **{key: float(logs[key]) for key in kept if key in logs}}
            )
