"""Opens a task set and the encoder of its questions, for verbs that ask many questions."""

from __future__ import annotations

from podium.baselines.encoder import Encoder, open_encoder
from podium.cli.opening import option_name
from podium.cli.options import NO_ENCODER, EncoderOptions
from podium.cli.printable import printable
from podium.cli.terminal import open_console
from podium.errors import UsageError
from podium.tasks import ALL, TaskSet, open_tasks, warnings_of
from podium.workers.pool import Pool

_MOST = 10_000_000
"""Questions that a command may ask: all of them are in memory."""


def open_questions(name: str, split: str, *, size: int, seed: int = 0, pool: Pool | None = None) -> TaskSet:
    """`open_tasks`, which also prints on standard error which questions were left out of the set."""
    check_size(size, name)
    tasks = open_tasks(name, split, size=size, seed=seed, pool=pool or ())
    console = open_console(stderr=True)
    for sentence in warnings_of(tasks):
        console.print(printable(sentence), soft_wrap=True)
    return tasks


def check_size(size: int, name: str) -> None:
    """Raise a `UsageError` if so many questions are asked for that they fill the memory."""
    if _MOST < size != ALL:
        raise UsageError(f"--questions {size:,} of {name} are too many; ask for at most {_MOST:,}.")


def encoder_from_options(options: EncoderOptions, *, recorded: bool, replay: bool) -> Encoder | None:
    """The encoder that the options name, or None. The caller closes it.

    Args:
        recorded: whether the questions are a recording's.
        replay: whether workers' answers come from a response cache alone.

    Raises:
        UsageError: an option is missing or has no use here, or the address or key cannot be used.
    """
    if options == NO_ENCODER:
        return None
    if options.encoder_url is None or options.encoder_model is None:
        raise UsageError("An encoder needs both --encoder-url and --encoder-model.")
    if not recorded:
        raise UsageError("--encoder-url is only for routers that learn from a recording; leave it out.")
    if replay:
        raise UsageError("--replay makes no calls, and --encoder-url does; leave one of them out.")
    return open_encoder(
        options.encoder_url,
        options.encoder_model,
        key_env=options.encoder_key_env,
        option_name=option_name,
    )
