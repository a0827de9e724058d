"""The supervised stage (SFT): collects examples, has an engine learn them, and writes the policy into the run's folder.

It calls no worker, but a judge may grade traces. The codec that encodes the examples also encodes the policy's prompts
later, so both have the same tokens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path

from podium.calls import CallState
from podium.errors import ConfigError
from podium.rollout.data_fingerprint import DataFingerprint
from podium.rollout.run_folder import RunFolder
from podium.scoring import open_session
from podium.train.engine import EncodedExample, SupervisedJob, TrainingRun
from podium.train.examples import TrainingExample, collect_examples
from podium.train.metrics_recorder import StepRecorder
from podium.train.preflight import (
    OpenCallState,
    has_results,
    locked_training_folder,
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
    make_call_state: OpenCallState = lambda pool: nullcontext(CallState()),
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Train in a run folder, or resume the run in it. Returns the folder of the trained policy.

    Args:
        say: prints a warning or a line of progress. It is called from a thread too.
        make_call_state: opens the call state with the budget and the response cache of the judges that grade traces.

    Raises:
        BudgetExceededError: the dollars of the run or the day do not suffice to grade the traces.
        CheckpointError: the start is no checkpoint that can be trained.
        ConfigError: pool, tasks, examples, levels or a trainer's setting cannot be used.
        RunMismatchError: the folder belongs to another configuration.
    """
    run = asyncio.run(_open(settings, folder))
    settings, ranks = run.settings, run.ranks
    say = say if ranks.is_first else lambda line: None
    with ExitStack() as opened:
        run_folder = ranks.run_on_first(
            lambda: opened.enter_context(locked_training_folder(folder, settings))
        )
        progress = opened.enter_context(Progress(say, noun="examples"))
        progress.phase("collecting examples")
        collected = ranks.run_on_first(lambda: asyncio.run(_collect(run, make_call_state, say)))
        examples = ranks.broadcast(collected) or []
        pairs = [
            ([message.model_dump() for message in example.messages], example.completion)
            for example in examples
        ]
        ranks.run_on_first(
            lambda: RunFolder(folder).check_or_store_data(
                DataFingerprint.of_examples(pairs, run.pool.profiles), begun=has_results(folder)
            )
        )
        progress.phase("encoding the examples")
        encoded = encode_examples(examples, run)
        progress.total = round(settings.sft.epochs * len(encoded))
        progress.phase("loading the model")
        recorder = StepRecorder(run_folder, progress, settings.sft.batch)
        open_engine(settings).train(SupervisedJob(run, encoded, recorder))
        if ranks.is_first:
            write_policy(folder, settings, run.start, run.pool)
        ranks.wait()
    say(f"The trained policy is in {folder / 'policy'}")
    return folder / "policy"


async def _open(settings: TrainSettings, folder: Path) -> TrainingRun:
    async with preflight(settings, folder) as checks:
        return checks.require()


async def _collect(
    run: TrainingRun, make_call_state: OpenCallState, say: Callable[[str], None]
) -> list[TrainingExample]:
    with make_call_state(run.pool) as call_state:
        async with open_session(run.settings, call_state, pool=run.pool, on_warning=say) as session:
            return await collect_examples(run.settings, session, say)


def encode_examples(examples: Sequence[TrainingExample], run: TrainingRun) -> list[EncodedExample]:
    """The token ids of each prompt, and of its completion with the token that ends it.

    Raises:
        ConfigError: an example is longer than the model can read.
    """
    codec, start, end = run.codec, run.start, run.tokenizer.eos_token_id
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
