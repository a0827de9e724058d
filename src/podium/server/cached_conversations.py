"""Remembers which worker answered each conversation last, and how much of it the providers' prompt caches hold.

It keeps hashes, names and counts, but no texts, and only in this process. It forgets them when the providers do.
`podium.team.sticky_worker` decides whether the worker stays.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import takewhile
from typing import Any

from podium.server.keys import Caller
from podium.server.requests import full_conversation
from podium.team.sticky_worker import MIN_CACHED_TOKENS, PastTurn
from podium.trace import Span, Trace
from podium.types import Message, Question, estimate_tokens
from podium.workers.pool import Pool

_UNSAID: dict[str, Any] = {
    "content": True,
    "provider_state": True,
    "tool_calls": {"__all__": {"provider_id", "provider_state"}},
}
"""Fields of a message that do not belong to its content, or that a client may not send back."""


@dataclass(frozen=True, slots=True)
class _CachedTokens:
    """The part of a conversation that a provider's prompt cache holds."""

    tokens: int
    """How many tokens the provider keeps. 0 if the provider turned out not to cache this conversation."""
    until: float
    """When the provider forgets the tokens, on the clock of `CachedConversations`."""


@dataclass(frozen=True, slots=True)
class _Turn:
    worker: str
    output_tokens: int
    held: Mapping[str, _CachedTokens]


class CachedConversations:
    """The latest turns of conversations, by the content of the conversations.

    Args:
        pool: the workers. Only workers with a price of cached input are assumed to have a prompt cache.
        seconds: how long a provider keeps cached tokens. If it is 0, nothing is remembered.
        most: the most turns that are remembered. After that, the oldest are forgotten.
        clock: returns seconds that only grow.
    """

    def __init__(
        self,
        pool: Pool,
        seconds: float,
        *,
        most: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        priced = [profile.name for profile in pool.profiles if profile.price.cached_input is not None]
        self._caching_workers = frozenset(priced if seconds else ())
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._turns: OrderedDict[bytes, _Turn] = OrderedDict()

    def past_turn(self, question: Question, caller: Caller) -> PastTurn | None:
        """The turn before this question. None if the caller had none lately, or no cache holds a part of the
        conversation."""
        if not (self._caching_workers and question.history):
            return None
        turn = self._previous_turn(_prefix_digests(question, caller))
        held = {} if turn is None else self._unexpired(turn)
        if turn is None or not held:
            return None
        return PastTurn(turn.worker, turn.output_tokens, {name: cache.tokens for name, cache in held.items()})

    def record(self, trace: Trace, caller: Caller) -> None:
        """Remember who answered `trace`, and what the provider's cache now holds of the conversation."""
        span = next((span for span in reversed(trace.spans) if span.status == "done"), None)
        if not self._caching_workers or span is None or span.cached:
            return
        digests = _prefix_digests(trace.question, caller)
        previous = self._previous_turn(digests)
        held = {} if previous is None else self._unexpired(previous)
        worker = span.answered_by or span.worker
        tokens = _shared_tokens(span, full_conversation(trace.question))
        if worker in held and not span.usage.cached_tokens:
            tokens = 0  # The provider should have read from its cache, but did not.
        if worker in self._caching_workers and (worker in held or tokens >= MIN_CACHED_TOKENS):
            held[worker] = _CachedTokens(tokens, self._clock() + self._seconds)
        if held:
            self._turns[digests[-1]] = _Turn(worker, span.usage.output_tokens, held)
            self._turns.move_to_end(digests[-1])
        while len(self._turns) > self._most:
            self._turns.popitem(last=False)

    def _previous_turn(self, digests: list[bytes]) -> _Turn | None:
        return next((self._turns[key] for key in digests[-2::-1] if key in self._turns), None)

    def _unexpired(self, turn: _Turn) -> dict[str, _CachedTokens]:
        now = self._clock()
        return {name: held for name, held in turn.held.items() if held.until > now}


def _prefix_digests(question: Question, caller: Caller) -> list[bytes]:
    """A digest of each beginning of a conversation, the shortest first. It includes the caller, who must learn nothing
    from others' conversations, and the tools, which providers read before all messages."""
    read = blake2b(json.dumps([caller.name, question.options.tools]).encode())
    digests = []
    for message in full_conversation(question):
        # The long text is not written as JSON, since that would take ten times as long as its digest.
        rest = json.dumps([len(message.content), message.model_dump(exclude=_UNSAID)])
        read.update(rest.encode() + message.content.encode("utf-8", "surrogatepass"))
        digests.append(read.digest())
    return digests


def _shared_tokens(span: Span, conversation: tuple[Message, ...]) -> int:
    """How many tokens of the input the next turn will begin with, estimated as a share of the provider's count."""
    pairs = list(zip(span.messages, conversation, strict=False))
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    shared = sum(estimate_tokens(sent.content) for sent, _ in pairs[:same])
    # The message with a step's subtask begins with the question, which the next turn has in its history.
    for sent, own in pairs[same : same + 1]:
        if sent.role == own.role and sent.content.startswith(own.content):
            shared += estimate_tokens(own.content)
    total = sum(estimate_tokens(message.content) for message in span.messages)
    return span.usage.input_tokens * shared // max(1, total)
