"""The supervised stage (SFT): collects examples, has an engine learn them, and writes the policy into the run's folder.

It calls no worker, but a judge may grade traces. The codec that encodes the examples also encodes the policy's prompts
later, so both have the same tokens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path

from podium.calls import Dispatcher
from podium.errors import ConfigError
from podium.rollout.data_fingerprint import DataFingerprint
from podium.rollout.run_folder import RunFolder
from podium.scoring import open_session
from podium.train.engine import EncodedExample, PreparedTraining, SupervisedJob
from podium.train.examples import TrainingExample, collect_examples
from podium.train.metrics_recorder import StepRecorder
from podium.train.preflight import (
    DispatcherFactory,
    has_results,
    hold_training_folder,
    open_engine,
    preflight,
)
from podium.train.progress import Progress
from podium.train.settings import TrainSettings
from podium.train.trained_policy import write_policy
from podium.types import Message


def run_sft(
    settings: TrainSettings,
    folder: Path,
    *,
    make_dispatcher: DispatcherFactory = lambda pool: nullcontext(Dispatcher()),
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Train in a run folder, or resume the run in it. Returns the folder of the trained policy.

    Args:
        say: prints a warning or a line of progress. It is called from a thread too.
        make_dispatcher: opens the dispatcher with the budget and the response cache of the judges that grade traces.

    Raises:
        BudgetError: the dollars of the run or the day do not suffice to grade the traces.
        CheckpointError: the start is no checkpoint that can be trained.
        ConfigError: pool, tasks, examples, levels or a trainer's setting cannot be used.
        RunMismatchError: the folder belongs to another configuration.
    """
    prepared = asyncio.run(_prepare(settings, folder))
    settings, ranks = prepared.settings, prepared.ranks
    tell = say if ranks.is_first else lambda line: None
    with ExitStack() as opened:
        run = ranks.run_on_first(lambda: opened.enter_context(hold_training_folder(folder, settings)))
        progress = opened.enter_context(Progress(tell, noun="examples"))
        progress.phase("collecting examples")
        collected = ranks.run_on_first(lambda: asyncio.run(_collect(prepared, make_dispatcher, say)))
        examples = ranks.broadcast(collected) or []
        pairs = [
            ([message.model_dump() for message in example.messages], example.completion)
            for example in examples
        ]
        ranks.run_on_first(
            lambda: RunFolder(folder).check_or_store_data(
                DataFingerprint.of_examples(pairs, prepared.pool.profiles), begun=has_results(folder)
            )
        )
        progress.phase("encoding the examples")
        encoded = encode_examples(examples, prepared)
        progress.total = round(settings.sft.epochs * len(encoded))
        progress.phase("loading the model")
        recorder = StepRecorder(run, progress, settings.sft.batch)
        open_engine(settings).train(SupervisedJob(prepared, folder, encoded, recorder))
        if ranks.is_first:
            write_policy(folder, settings, prepared.start, prepared.pool)
        ranks.wait()
    tell(f"The trained policy is in {folder / 'policy'}")
    return folder / "policy"


async def _prepare(settings: TrainSettings, folder: Path) -> PreparedTraining:
    async with preflight(settings, folder) as checks:
        return checks.require()


async def _collect(
    prepared: PreparedTraining, make_dispatcher: DispatcherFactory, say: Callable[[str], None]
) -> list[TrainingExample]:
    settings, pool = prepared.settings, prepared.pool
    with make_dispatcher(pool) as dispatcher:
        async with open_session(settings, dispatcher, pool=pool, on_warning=say) as session:
            return await collect_examples(settings, session, say)


def encode_examples(examples: Sequence[TrainingExample], prepared: PreparedTraining) -> list[EncodedExample]:
    """The token ids of each prompt, and of its completion with the token that ends it.

    Raises:
        ConfigError: an example is longer than the model can read.
    """
    codec, start, end = prepared.codec, prepared.start, prepared.tokenizer.eos_token_id
    encoded = []
    read: tuple[Message, ...] | None = None
    prompt: tuple[int, ...] = ()
    for number, example in enumerate(examples, start=1):
        if example.messages != read:  # Neighbours often have one prompt.
            read, prompt = example.messages, tuple(codec.encode(example.messages))
        completion = (*codec.encode_completion(example.completion), end)
        if len(prompt) + len(completion) > start.context:
            raise ConfigError(
                f"Example {number} has {len(prompt) + len(completion):,} tokens, and {start.path} reads "
                f"{start.context:,}; show fewer examples (prompt.examples), or leave it out."
            )
        encoded.append(EncodedExample(prompt, completion))
    return encoded
