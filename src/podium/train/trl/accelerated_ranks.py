"""The processes that accelerate launches."""

from __future__ import annotations

import os
import warnings
from datetime import timedelta
from typing import TypeVar

from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather_object, parse_flag_from_env
from datasets import disable_progress_bars
from transformers.utils import logging

from podium.errors import ConfigError
from podium.train.ranks import Ranks

T = TypeVar("T")

WAIT_S = 1800
"""Seconds for which a rank waits for another one: the default of the trainer's ddp_timeout."""


class AcceleratedRanks(Ranks):
    """The ranks of `accelerate launch`. Without it there is one rank.

    Opening them turns off the libraries' progress bars, and their warnings about renamed arguments.

    Args:
        wait_s: seconds for which a rank waits for another one: trl.ddp_timeout. The first ranks that a process opens
            decide it.

    Raises:
        ConfigError: that is no number of seconds.
    """

    def __init__(self, wait_s: float) -> None:
        try:
            timeout = timedelta(seconds=wait_s)
        except (TypeError, ValueError, OverflowError):
            raise ConfigError(
                f"trl.ddp_timeout = {wait_s!r} is no number of seconds; give one, such as {WAIT_S}.",
                ("trl", "ddp_timeout"),
            ) from None
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        disable_progress_bars()
        warnings.filterwarnings("ignore", category=FutureWarning, module=r"(transformers|trl|peft)\.")
        warnings.filterwarnings("ignore", message=".*rollout_func.*experimental.*")
        warnings.filterwarnings("ignore", message=".*pin_memory.*")
        # Otherwise a PartialState without GPUs knows only its own process.
        self._state = PartialState(cpu=parse_flag_from_env("ACCELERATE_USE_CPU"), timeout=timeout)
        self.size, self.index = self._state.num_processes, self._state.process_index

    def gather(self, items: list[T]) -> list[T]:
        return gather_object(items)  # type: ignore[no-any-return]

    def broadcast(self, value: T) -> T:
        values = [value]
        if self.size > 1:
            broadcast_object_list(values)
        return values[0]

    def wait(self) -> None:
        self._state.wait_for_everyone()

    @property
    def listen_address(self) -> str:
        """This machine's own address if all ranks are on it. Otherwise all addresses."""
        alone = os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE")
        return "127.0.0.1" if alone else "0.0.0.0"

    def reachable(self, url: str) -> str:
        return url.replace("0.0.0.0", os.environ.get("MASTER_ADDR", "127.0.0.1"))
