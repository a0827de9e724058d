"""A policy that runs on this machine, over a loaded model, with continuous batching.

One thread writes all completions that are wanted at the same time. Each pass of the model adds tokens to every text, a
new text may join before any pass, and the thread ends after the last text. If a model's KV caches can be copied and
cut, two methods save passes. With prefix sharing, a prompt copies the cache of another prompt that begins with the same
tokens. With speculative decoding by n-grams, the tokens that followed the same n-gram in earlier completions are a
draft, which the model reads in one pass; the longest part that would have been sampled anyway is kept.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.calls import AttemptLog, CallContext
from podium.conductor.loaded_model import Guide, LoadedModel, Logits, TokenChunk
from podium.conductor.policy import Completion, Sampling
from podium.errors import UsageError
from podium.types import Message, Spent, Usage

_MAX_TOKENS = 384
"""The most tokens of a completion by default: enough for five steps with subtasks of a few sentences."""
_MAX_TOKEN_CHARS = 32
"""The assumed characters of the longest token. A text that would be too long even with such tokens is refused before it
is encoded, since encoding takes a second per megabyte and blocks all other threads."""
_CACHED_COMPLETIONS = 4096
"""The most greedy completions that are kept, so that the same prompt gets the same completion at once."""
_CACHED_PROMPTS = 4
"""How many finished prompts keep their KV cache, for prompts that begin with the same tokens."""
_MIN_SHARED_TOKENS = 16
"""The least number of common first tokens for which a KV cache is copied."""
_MAX_PREFILL_TOKENS = 512
"""No text joins a pass that already reads this many tokens of new prompts, since its activations would not fit into the
CPU cache."""
_NGRAM_TOKENS = 4
"""The length of the n-grams that find a draft in earlier completions."""
_MAX_DRAFT_TOKENS = 12
_MIN_DRAFT_PROBABILITY = 0.6
"""A draft is so short that it is right as a whole with at least this probability."""
_CACHED_NGRAMS = 100_000

_Key = tuple[tuple[int, ...], int, tuple[str, ...]]


@dataclass(slots=True, eq=False)
class _Text:
    """A completion that waits or is being written."""

    messages: tuple[Message, ...]
    sampling: Sampling
    done: Future[Completion]
    rng: random.Random
    prompt: list[int] = field(default_factory=list)
    limit: int = 0
    tokens: list[int] = field(default_factory=list)
    """The tokens of the completion so far, including the token that ends it."""
    cache: Any = None
    read: int = 0
    """How many tokens of prompt and completion the model has read."""
    on_text: Callable[[str], None] | None = None
    """Called with each piece of text, in the thread that writes."""
    shown: int = 0
    """How many characters `on_text` has received."""

    @property
    def key(self) -> _Key:
        return tuple(self.prompt), self.limit, self.sampling.stop


class _Prefix(NamedTuple):
    """The first tokens that a prompt shares with another."""

    cache: Any
    """The KV cache of the other prompt."""
    length: int
    is_read: bool
    """Whether the model has read the other prompt."""


class LocalPolicy:
    """A `Policy` over a loaded model. Its completions cost no money."""

    plan_format = None

    def __init__(self, name: str, model: LoadedModel, guide: Guide | None = None) -> None:
        self._guide = guide
        self.name = name
        self._model = model
        self._greedy: dict[_Key, list[int]] = {}
        """The tokens of earlier greedy completions."""
        self._following: dict[tuple[int, ...], tuple[int, int, int]] = {}
        """For an n-gram: a token, how often it followed, and how often any token did since it was chosen."""
        self._prompts: deque[tuple[list[int], Any]] = deque(maxlen=_CACHED_PROMPTS)
        """Finished prompts with their KV caches."""
        self._lock = Lock()
        self._waiting: deque[_Text] = deque()
        self._writing = False

    async def complete(
        self,
        messages: tuple[Message, ...],
        sampling: Sampling,
        context: CallContext | None = None,
        log: AttemptLog | None = None,
    ) -> Completion:
        """Write one completion in a thread, together with all other completions that are wanted now.

        Raises:
            UsageError: the prompt is longer than the model can read.
        """
        done = self.submit(messages, sampling)
        try:
            completion = await asyncio.wrap_future(done)
        finally:
            done.cancel()
        if context is not None:
            context.ledger.charge(Spent(completion.usage))
        return completion

    def submit(
        self, messages: tuple[Message, ...], sampling: Sampling, on_text: Callable[[str], None] | None = None
    ) -> Future[Completion]:
        """Begin one completion, for callers without an event loop. Cancelling the future stops the completion.

        Args:
            on_text: called with each piece of the text, in the thread that writes.
        """
        # A thread cannot be cancelled from outside, so the thread looks for cancelled texts before each pass.
        rng = random.Random(f"policy/{sampling.seed}")
        text = _Text(messages, sampling, Future(), rng, on_text=on_text)
        with self._lock:
            self._waiting.append(text)
            idle, self._writing = not self._writing, True
        if idle:
            Thread(target=self._write, name=f"policy {self.name}", daemon=True).start()
        return text.done

    def _write(self) -> None:
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
            except Exception as error:  # A bug, or too little memory: no caller may wait for ever.
                for text in active:
                    _settle(text, error)
            finally:
                with self._lock:
                    self._waiting.extendleft(reversed(arrived))
            active = [text for text in active if not text.done.done()]

    def _admit(self, arrived: deque[_Text], active: list[_Text]) -> None:
        """Let as many texts join the batch as there is room for. Texts that stay in `arrived` wait for a later pass."""
        unread = 0
        for text in list(arrived):
            if len(active) >= self._model.batch or unread >= _MAX_PREFILL_TOKENS:
                return
            try:
                begun = text.done.cancelled() or self._begin(text, active)
            except Exception as error:  # Only this text is refused.
                begun = True
                _settle(text, error)
            if begun:
                arrived.remove(text)
                if not text.done.done():
                    active.append(text)
                    unread += len(text.prompt) - text.read

    def _begin(self, text: _Text, active: Sequence[_Text]) -> bool:
        """Begin a text, if possible from the cache of a prompt with the same first tokens.

        Returns False if another text will read those tokens in the next pass. This text then waits for that cache.
        """
        if not text.prompt:
            self._encode(text)
        remembered = self._greedy.get(text.key) if text.sampling.temperature <= 0 else None
        if remembered is not None:
            text.tokens = remembered
            self._finish(text)
            return True
        capacity = len(text.prompt) + text.limit
        prefix, sharing = self._longest_prefix(text, active), self._model.sharing
        if prefix is None or sharing is None:
            text.cache = self._model.start(capacity)
        elif prefix.is_read:
            text.cache, text.read = sharing.copy(prefix.cache, prefix.length, capacity), prefix.length
        return prefix is None or prefix.is_read

    def _longest_prefix(self, text: _Text, active: Sequence[_Text]) -> _Prefix | None:
        """The most tokens that the prompt of `text` shares with another prompt. None if they are too few to copy."""
        if self._model.sharing is None:
            return None

        def shared(prompt: Sequence[int]) -> int:
            # The last token of a prompt is always read: the first token is sampled from the logits after it.
            return min(_common_length(prompt, text.prompt), len(text.prompt) - 1)

        prefixes = [_Prefix(cache, shared(prompt), is_read=True) for prompt, cache in self._prompts]
        prefixes += [
            _Prefix(other.cache, shared(other.prompt), is_read=other.read >= len(other.prompt))
            for other in active
        ]
        longest = max(prefixes, key=lambda prefix: prefix.length, default=None)
        return None if longest is None or longest.length < _MIN_SHARED_TOKENS else longest

    def _encode(self, text: _Text) -> None:
        model = self._model
        characters = sum(len(message.content) for message in text.messages)
        if characters > _MAX_TOKEN_CHARS * model.context:
            raise self._too_long(f"{characters} characters")
        text.prompt = model.codec.encode(text.messages)
        room = model.context - len(text.prompt)
        if room <= 0:
            raise self._too_long(f"{len(text.prompt)} tokens")
        text.limit = min(text.sampling.max_tokens or _MAX_TOKENS, room)

    def _too_long(self, size: str) -> UsageError:
        return UsageError(
            f"The question makes a prompt of {size}, but {self.name} reads at most {self._model.context - 1} tokens; "
            "ask a shorter question, or choose a model that reads longer prompts."
        )

    def _pass(self, active: Sequence[_Text]) -> None:
        """Run one pass of the model. Each text gets the right part of its draft, and one further token."""
        active = [text for text in active if not text.done.cancelled()]
        if not active:
            return
        drafts = [self._draft(text) for text in active]
        chunks = [
            TokenChunk(text.cache, [*(text.prompt + text.tokens)[text.read :], *draft], 1 + len(draft))
            for text, draft in zip(active, drafts, strict=True)
        ]
        for text, draft, logits in zip(active, drafts, self._model.read(chunks), strict=True):
            text.read = len(text.prompt) + len(text.tokens)
            for index, row in enumerate(logits):
                wrong = None if self._guide is None else self._guide.forbidden(text.tokens)
                allowed = row if wrong is None else _forbid(row, wrong)
                token = sample_token(allowed, text.sampling.temperature, text.rng)
                text.tokens.append(token)
                ended = token in self._model.eos_token_ids or len(text.tokens) >= text.limit
                if ended or (text.sampling.stop and self._text_so_far(text)[1]):
                    self._remember(text)
                    self._finish(text)
                    break
                if index < len(draft) and draft[index] != token:
                    break
                text.read += index < len(draft)
            if self._model.sharing is not None and draft and not text.done.done():
                self._model.sharing.cut(text.cache, text.read)
            if text.on_text is not None and not text.done.done():
                self._show(text)

    def _draft(self, text: _Text) -> list[int]:
        """A draft: the tokens that followed in earlier completions, as far as they are likely and within the text's
        limit."""
        if self._model.sharing is None:
            return []
        longest = min(_MAX_DRAFT_TOKENS, text.limit - len(text.tokens) - 1)
        ngram = (*text.prompt[-_NGRAM_TOKENS:], *text.tokens[-_NGRAM_TOKENS:])[-_NGRAM_TOKENS:]
        draft: list[int] = []
        chance = 1.0
        while len(draft) < longest and (found := self._following.get(ngram)) is not None:
            token, right, seen = found
            chance *= right / seen
            if chance < _MIN_DRAFT_PROBABILITY:
                break
            draft.append(token)
            ngram = (*ngram[1:], token)
        return draft

    def _remember(self, text: _Text) -> None:
        """Keep a finished completion, to return it again, to draft from it, and to share its prompt's cache."""
        if text.sampling.temperature <= 0:
            if len(self._greedy) >= _CACHED_COMPLETIONS:
                self._greedy.clear()
            self._greedy[text.key] = text.tokens
        if self._model.sharing is not None:
            if len(self._following) >= _CACHED_NGRAMS:
                self._following.clear()
            tokens = [*text.prompt[-_NGRAM_TOKENS:], *text.tokens]
            for end in range(_NGRAM_TOKENS, len(tokens)):
                ngram = tuple(tokens[end - _NGRAM_TOKENS : end])
                token, right, seen = self._following.get(ngram, (tokens[end], 0, 0))
                if token != tokens[end] and 2 * right < seen:
                    token, right, seen = tokens[end], 0, 0
                self._following[ngram] = token, right + (token == tokens[end]), seen + 1
            self._prompts.append((text.prompt, text.cache))

    def _text_so_far(self, text: _Text) -> tuple[str, bool]:
        """The text so far, and whether a stop text ended it."""
        written = self._model.codec.decode(
            [token for token in text.tokens if token not in self._model.eos_token_ids]
        )
        stops = [start for stop in text.sampling.stop if (start := written.find(stop)) >= 0]
        return written[: min(stops, default=len(written))], bool(stops)

    def _show(self, text: _Text, *, last: bool = False) -> None:
        """Call `on_text` with the new text. The end of it waits if it may be half a character or half a stop text."""
        assert text.on_text is not None
        written, stopped = self._text_so_far(text)
        held = max((len(stop) - 1 for stop in text.sampling.stop), default=0)
        end = len(written) if last or stopped else len(written.rstrip("\ufffd")) - held
        if end > text.shown:
            text.on_text(written[text.shown : end])
            text.shown = end

    def _finish(self, text: _Text) -> None:
        if text.on_text is not None:
            self._show(text, last=True)
        written, stopped = self._text_so_far(text)
        usage = Usage(input_tokens=len(text.prompt), output_tokens=len(text.tokens))
        truncated = not stopped and text.tokens[-1] not in self._model.eos_token_ids
        _settle(text, Completion(written, usage, truncated=truncated))


def _common_length(one: Sequence[int], other: Sequence[int]) -> int:
    length = min(len(one), len(other))
    return next((index for index in range(length) if one[index] != other[index]), length)


def _settle(text: _Text, outcome: Completion | BaseException) -> None:
    if not text.done.done() and text.done.set_running_or_notify_cancel():
        if isinstance(outcome, BaseException):
            text.done.set_exception(outcome)
        else:
            text.done.set_result(outcome)


def _forbid(logits: Logits, wrong: NDArray[np.int64]) -> Logits:
    allowed = logits.copy()
    allowed[wrong] = -np.inf
    return allowed


def sample_token(logits: Logits, temperature: float, rng: random.Random) -> int:
    """Sample one token from logits (V,). Temperature 0 takes the most likely token."""
    if temperature <= 0:
        return int(logits.argmax())
    scaled = logits.astype(np.float64) / temperature
    cumulated = np.exp(scaled - scaled.max()).cumsum()
    # Rounding may put the number on the upper end, one place too far.
    return min(int(cumulated.searchsorted(rng.random() * cumulated[-1], side="right")), len(logits) - 1)
