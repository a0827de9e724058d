"""A policy that runs on this machine: an engine that computes, and the loop that draws tokens from it.

One loop for every engine (`numpy_engine`, `torch_engine`), so that they cannot differ in how they sample,
stop, count or are cancelled. No batching: who serves many users puts the checkpoint behind a server instead.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from threading import Event
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from podium.conductor.policy import Completion, Sampling
from podium.errors import UsageError
from podium.types import Message, Usage

Logits = NDArray[np.float32]

Reader = Callable[[Sequence[int]], Logits]
"""Reads the next tokens of one text; gives the logits (V,) after the last of them."""


_ENOUGH = 384
"""Tokens of a completion where the sampling does not say: five steps with subtasks of a few sentences."""


_MOST_CHARACTERS = 32
"""A token: a text that would need longer ones to fit is not worth cutting into tokens, which takes a second a megabyte
and lets no other thread run."""


_KEPT = 4096
"""Greedy completions that are remembered: whoever asks the same again gets the same."""


class Engine(Protocol):
    """A loaded model with its tokenizer. Safe to share between threads."""

    @property
    def context(self) -> int:
        """Tokens that prompt and completion may have together."""
        ...

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that end a completion."""
        ...

    def encode(self, messages: Sequence[Message]) -> list[int]: ...

    def decode(self, tokens: Sequence[int]) -> str: ...

    def start(self, capacity: int) -> Reader:
        """Begin a text of at most `capacity` tokens."""
        ...


class LocalPolicy:
    """A `Policy` over an engine. Its own work costs nothing."""

    def __init__(self, name: str, engine: Engine) -> None:
        self._name = name
        self._engine = engine
        self._greedy: dict[tuple[tuple[int, ...], int], list[int]] = {}

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, messages: tuple[Message, ...], sampling: Sampling) -> Completion:
        """Write one completion in a thread, so that workers' replies are read meanwhile.

        Raises:
            UsageError: the prompt is longer than the model can read.
        """
        cancelled = Event()
        try:
            return await asyncio.to_thread(self._write, messages, sampling, cancelled)
        finally:
            # A thread cannot be cancelled from outside; this one looks up after each token.
            cancelled.set()

    def _write(self, messages: tuple[Message, ...], sampling: Sampling, cancelled: Event) -> Completion:
        engine = self._engine
        characters = sum(len(message.content) for message in messages)
        if characters > _MOST_CHARACTERS * engine.context:
            raise self._too_long(f"{characters} characters")
        prompt = engine.encode(messages)
        room = engine.context - len(prompt)
        if room <= 0:
            raise self._too_long(f"{len(prompt)} tokens")
        limit = min(sampling.max_tokens or _ENOUGH, room)
        asked = (tuple(prompt), limit)
        tokens = self._greedy.get(asked) if sampling.temperature <= 0 else None
        if tokens is None:
            read = engine.start(len(prompt) + limit)
            tokens = generate(read, prompt, sampling, limit=limit, ends=engine.ends, cancelled=cancelled)
            if sampling.temperature <= 0 and not cancelled.is_set():
                self._remember(asked, tokens)
        usage = Usage(input_tokens=len(prompt), output_tokens=len(tokens))
        return Completion(engine.decode([token for token in tokens if token not in engine.ends]), usage)

    def _too_long(self, size: str) -> UsageError:
        return UsageError(
            f"The question makes a prompt of {size}, but {self._name} reads at most {self._engine.context - 1} tokens; "
            "ask something shorter, or conduct with a larger model."
        )

    def _remember(self, asked: tuple[tuple[int, ...], int], tokens: list[int]) -> None:
        if len(self._greedy) >= _KEPT:
            self._greedy.clear()
        self._greedy[asked] = tokens


def generate(
    read: Reader,
    prompt: Sequence[int],
    sampling: Sampling,
    *,
    limit: int,
    ends: frozenset[int],
    cancelled: Event,
) -> list[int]:
    """At most `limit` tokens after the prompt, the ending one included when it was drawn."""
    rng = random.Random(f"policy/{sampling.seed}")
    tokens: list[int] = []
    news = prompt
    while len(tokens) < limit and not cancelled.is_set():
        tokens.append(draw(read(news), sampling.temperature, rng))
        if tokens[-1] in ends:
            break
        news = tokens[-1:]
    return tokens


def draw(logits: Logits, temperature: float, rng: random.Random) -> int:
    """One token from logits (V,); the most likely one at temperature 0."""
    if temperature <= 0:
        return int(logits.argmax())
    scaled = logits.astype(np.float64) / temperature
    cumulated = np.exp(scaled - scaled.max()).cumsum()
    # Rounding may put the draw on the very end.
    return min(int(cumulated.searchsorted(rng.random() * cumulated[-1], side="right")), len(logits) - 1)
