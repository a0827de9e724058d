"""A policy that runs on this machine: an engine that computes, and the batch of texts that it is computing.

One loop for every engine (`numpy_engine`, `torch_engine`), so that they cannot differ in how they sample, stop, count
or are cancelled. A thread writes all completions that are wanted at the same time: each pass of the model gives every
text its next tokens, a text joins at any pass, and the thread ends with the last text.

Two things make a pass worth more where the engine allows them. A prompt that begins as another did copies what was
read of it. And a completion that repeats what earlier ones said is drafted from them (speculative decoding by
n-grams): the model reads the draft in one pass, and as much of it stands as would have been drawn anyway.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from podium.conductor.policy import Completion, Sampling
from podium.errors import UsageError
from podium.types import Message, Usage

Logits = NDArray[np.float32]

_MAX_TOKENS = 384
"""Tokens of a completion where the sampling does not say: five steps with subtasks of a few sentences."""
_MAX_TOKEN_CHARS = 32
"""Characters of a token: a text that would need longer ones to fit is not worth cutting into tokens, which takes a
second a megabyte and lets no other thread run."""
_KEPT = 4096
"""Greedy completions that are remembered: the same prompt has the same completion."""
_KEPT_PROMPTS = 4
"""Prompts whose keys and values are kept after their completion, for others that begin as they do."""
_SHARED = 16
"""Tokens that two prompts must share for a copy to be worth its while."""
_PREFILL = 512
"""Tokens of new prompts in one pass: with more, what the layers hand on no longer fits into a processor's cache."""
_NGRAM = 4
"""Tokens by which a draft goes on from earlier completions."""
_DRAFT = 12
"""Tokens of a draft at most."""
_LIKELY = 0.6
"""A draft ends where it becomes less likely than this to be right so far."""
_NGRAMS = 100_000
"""That are known, at most."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What a text goes on with in one pass of the model."""

    reading: Any
    """What the engine keeps of the text: made by `Engine.start` or `PrefixSharing.copy`."""
    tokens: Sequence[int]
    wanted: int = 1
    """The logits after so many of the last tokens are returned."""


class PrefixSharing(Protocol):
    """What an engine offers whose readings can be copied and cut back."""

    def copy(self, reading: Any, length: int, capacity: int) -> Any:
        """Begin a text with the first `length` tokens of another."""
        ...

    def cut(self, reading: Any, length: int) -> None:
        """Forget all but the first `length` tokens."""
        ...


class Engine(Protocol):
    """A loaded model with its tokenizer. One thread at a time uses it."""

    @property
    def context(self) -> int:
        """Tokens that prompt and completion may have together."""
        ...

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that end a completion."""
        ...

    @property
    def batch(self) -> int:
        """Texts that are written at once, at most."""
        ...

    @property
    def sharing(self) -> PrefixSharing | None:
        """Copies and cuts readings; None: prompts do not share what was read of them, and nothing is drafted."""
        ...

    def encode(self, messages: Sequence[Message]) -> list[int]: ...

    def decode(self, tokens: Sequence[int]) -> str: ...

    def start(self, capacity: int) -> Any:
        """Begin a text of at most `capacity` tokens."""
        ...

    def read(self, passages: Sequence[Passage]) -> Sequence[Logits]:
        """Read on in several texts; the logits (wanted, V) of each."""
        ...


@dataclass(slots=True, eq=False)
class _Text:
    """A completion that is wanted, or being written."""

    messages: tuple[Message, ...]
    sampling: Sampling
    done: Future[Completion]
    rng: random.Random
    prompt: list[int] = field(default_factory=list)
    limit: int = 0
    tokens: list[int] = field(default_factory=list)
    """Of the completion, so far; the ending one included."""
    reading: Any = None
    read: int = 0
    """Tokens of prompt and completion that the engine has read."""

    @property
    def key(self) -> tuple[tuple[int, ...], int]:
        """Greedy completions of equal keys are equal."""
        return tuple(self.prompt), self.limit


class LocalPolicy:
    """A `Policy` over an engine. Its own work costs nothing."""

    def __init__(self, name: str, engine: Engine) -> None:
        self._name = name
        self._engine = engine
        self._greedy: dict[tuple[tuple[int, ...], int], list[int]] = {}
        self._following: dict[tuple[int, ...], tuple[int, int, int]] = {}
        self._prompts: deque[tuple[list[int], Any]] = deque(maxlen=_KEPT_PROMPTS)
        self._lock = Lock()
        self._waiting: deque[_Text] = deque()
        self._writing = False

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, messages: tuple[Message, ...], sampling: Sampling) -> Completion:
        """Write one completion in a thread, together with all others that are wanted now.

        Raises:
            UsageError: the prompt is longer than the model can read.
        """
        text = _Text(messages, sampling, Future(), random.Random(f"policy/{sampling.seed}"))
        with self._lock:
            self._waiting.append(text)
            idle, self._writing = not self._writing, True
        if idle:
            Thread(target=self._write, name=f"policy {self._name}", daemon=True).start()
        try:
            return await asyncio.wrap_future(text.done)
        finally:
            # A thread cannot be cancelled from outside; this one looks before each pass.
            text.done.cancel()

    def _write(self) -> None:
        """Write until nothing is wanted any more."""
        active: list[_Text] = []
        while True:
            with self._lock:
                if not active and not self._waiting:
                    self._writing = False
                    return
                arrived = self._waiting
                self._waiting = deque()
            try:
                self._admit(arrived, active)
                if active:
                    self._pass(active)
            except Exception as error:  # A fault of ours, or too little memory: nobody waits for ever.
                for text in active:
                    _settle(text, error)
            finally:
                with self._lock:
                    self._waiting.extendleft(reversed(arrived))
            active = [text for text in active if not text.done.done()]

    def _admit(self, arrived: deque[_Text], active: list[_Text]) -> None:
        """Let texts join, as many as there is room for; those that stay in `arrived` wait for another pass."""
        unread = 0
        for text in list(arrived):
            if len(active) >= self._engine.batch or unread >= _PREFILL:
                return
            try:
                begun = text.done.cancelled() or self._begin(text, active)
            except Exception as error:  # The refusal of this text, and no other's concern.
                begun = True
                _settle(text, error)
            if begun:
                arrived.remove(text)
                if not text.done.done():
                    active.append(text)
                    unread += len(text.prompt) - text.read

    def _begin(self, text: _Text, active: Sequence[_Text]) -> bool:
        """Begin a text with what is already read of its prompt; False: another reads it in the next pass."""
        if not text.prompt:
            self._encode(text)
        remembered = self._greedy.get(text.key) if text.sampling.temperature <= 0 else None
        if remembered is not None:
            text.tokens = remembered
            self._finish(text)
            return True
        shared, source = _SHARED - 1, None
        sharing = self._engine.sharing
        if sharing is not None:
            # What has read a part of its prompt, or nothing, reads the rest in the next pass.
            others = ((o.prompt, o.reading if o.read >= len(o.prompt) else None) for o in active)
            for prompt, reading in (*self._prompts, *others):
                # The last token of a prompt is read in any case: the logits after it are wanted.
                common = min(_common(prompt, text.prompt), len(text.prompt) - 1)
                if common > shared:
                    shared, source = common, (reading,)
        capacity = len(text.prompt) + text.limit
        if sharing is None or source is None:
            text.reading = self._engine.start(capacity)
        elif source[0] is None:
            return False
        else:
            text.reading, text.read = sharing.copy(source[0], shared, capacity), shared
        return True

    def _encode(self, text: _Text) -> None:
        engine = self._engine
        characters = sum(len(message.content) for message in text.messages)
        if characters > _MAX_TOKEN_CHARS * engine.context:
            raise self._too_long(f"{characters} characters")
        text.prompt = engine.encode(text.messages)
        room = engine.context - len(text.prompt)
        if room <= 0:
            raise self._too_long(f"{len(text.prompt)} tokens")
        text.limit = min(text.sampling.max_tokens or _MAX_TOKENS, room)

    def _too_long(self, size: str) -> UsageError:
        return UsageError(
            f"The question makes a prompt of {size}, but {self._name} reads at most {self._engine.context - 1} tokens; "
            "ask something shorter, or conduct with a larger model."
        )

    def _pass(self, active: Sequence[_Text]) -> None:
        """One pass of the model: each text gets a token, and as many of its draft as are right."""
        active = [text for text in active if not text.done.cancelled()]
        if not active:
            return
        drafts = [self._draft(text) for text in active]
        passages = [
            Passage(text.reading, [*(text.prompt + text.tokens)[text.read :], *draft], 1 + len(draft))
            for text, draft in zip(active, drafts, strict=True)
        ]
        for text, draft, logits in zip(active, drafts, self._engine.read(passages), strict=True):
            text.read = len(text.prompt) + len(text.tokens)
            for place, row in enumerate(logits):
                token = draw(row, text.sampling.temperature, text.rng)
                text.tokens.append(token)
                if token in self._engine.ends or len(text.tokens) >= text.limit:
                    self._remember(text)
                    self._finish(text)
                    break
                if place < len(draft) and draft[place] != token:
                    break
                text.read += place < len(draft)
            if self._engine.sharing is not None and draft and not text.done.done():
                self._engine.sharing.cut(text.reading, text.read)

    def _draft(self, text: _Text) -> list[int]:
        """What earlier completions went on with, as far as it is known and there is room for."""
        if self._engine.sharing is None:
            return []
        most = min(_DRAFT, text.limit - len(text.tokens) - 1)
        ngram = (*text.prompt[-_NGRAM:], *text.tokens[-_NGRAM:])[-_NGRAM:]
        draft: list[int] = []
        chance = 1.0
        while len(draft) < most and (found := self._following.get(ngram)) is not None:
            token, right, seen = found
            chance *= right / seen
            if chance < _LIKELY:
                break
            draft.append(token)
            ngram = (*ngram[1:], token)
        return draft

    def _remember(self, text: _Text) -> None:
        """A whole completion, for drafts, and for whoever has the same prompt or one that begins as it does."""
        if text.sampling.temperature <= 0:
            if len(self._greedy) >= _KEPT:
                self._greedy.clear()
            self._greedy[text.key] = text.tokens
        if self._engine.sharing is not None:
            if len(self._following) >= _NGRAMS:
                self._following.clear()
            said = [*text.prompt[-_NGRAM:], *text.tokens]
            for end in range(_NGRAM, len(said)):
                ngram = tuple(said[end - _NGRAM : end])
                token, right, seen = self._following.get(ngram, (said[end], 0, 0))
                if token != said[end] and 2 * right < seen:
                    token, right, seen = said[end], 0, 0
                self._following[ngram] = token, right + (token == said[end]), seen + 1
            self._prompts.append((text.prompt, text.reading))

    def _finish(self, text: _Text) -> None:
        tokens = [token for token in text.tokens if token not in self._engine.ends]
        usage = Usage(input_tokens=len(text.prompt), output_tokens=len(text.tokens))
        _settle(text, Completion(self._engine.decode(tokens), usage))


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Tokens that two prompts begin with alike."""
    length = min(len(one), len(other))
    return next((place for place in range(length) if one[place] != other[place]), length)


def _settle(text: _Text, outcome: Completion | BaseException) -> None:
    if not text.done.done() and text.done.set_running_or_notify_cancel():
        if isinstance(outcome, BaseException):
            text.done.set_exception(outcome)
        else:
            text.done.set_result(outcome)


def draw(logits: Logits, temperature: float, rng: random.Random) -> int:
    """One token from logits (V,); the most likely one at temperature 0."""
    if temperature <= 0:
        return int(logits.argmax())
    scaled = logits.astype(np.float64) / temperature
    cumulated = np.exp(scaled - scaled.max()).cumsum()
    # Rounding may put the draw on the very end.
    return min(int(cumulated.searchsorted(rng.random() * cumulated[-1], side="right")), len(logits) - 1)
