"""What one endpoint was found not to take, and how a request is changed for it.

An endpoint's error says what it does not take (`unsupported_parameters`, `message_form`). The client then asks again at
once, and remembers what helped for as long as it lives. It leaves out only hints, and says in the reply which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from podium.types import Message
from podium.workers.chat.failures import ProviderError
from podium.workers.chat.message_form import MessageForm
from podium.workers.chat.unsupported_parameters import LIMITS, token_limit, unsupported_parameters

_MAX_CHANGES = 12
"""How often one call is sent again. Each time it leaves out one thing more."""
_OTHER_REASONS = frozenset({401, 402, 403, 407, 408, 413, 429})
"""Statuses of errors that are not about what the request says."""
_DEPENDENT_KEYS = {"stream": "stream_options", "logprobs": "top_logprobs"}
"""A key, and the key that goes with it: endpoints refuse `stream_options` and `top_logprobs` without the other."""
_LEAST_ROOM = 16
"""Tokens that an answer must have room for. Below this a call is not worth its price."""


@dataclass(frozen=True, slots=True)
class Adaptation:
    """The parts of a request that an endpoint does not take, as its errors have said. Empty: nothing is known."""

    dropped: frozenset[str] = frozenset()
    """Keys of the body that are not sent."""
    conflicts: frozenset[tuple[str, str]] = frozenset()
    """Pairs of keys: where a request has both, the first is not sent."""
    limit_key: str | None = None
    """The key for the most tokens of a reply. None keeps the client's own."""
    form: MessageForm = MessageForm.AS_WRITTEN
    context_tokens: int | None = None
    """The most tokens of the server's context."""
    output_tokens: int | None = None
    """The highest limit of a reply that it takes."""
    input_tokens: int | None = None
    """The tokens of this call's messages, as the server counts them. They are not remembered."""

    def __or__(self, other: Adaptation) -> Adaptation:
        """Both together; where they differ, `other` holds, which is the newer."""
        # The tokens of one call's messages are not remembered.
        return Adaptation(
            self.dropped | other.dropped,
            self.conflicts | other.conflicts,
            other.limit_key or self.limit_key,
            self.form | other.form,
            other.context_tokens or self.context_tokens,
            other.output_tokens or self.output_tokens,
        )

    def apply(self, body: dict[str, Any], room: int | None = None) -> dict[str, Any]:
        """The body without what the endpoint does not take: `body` itself if it has none of that. `room` is the tokens
        that the context leaves for the reply, if they are known."""
        if not (self.dropped or self.conflicts or self.limit_key or self.output_tokens or room):
            return body
        dropped = set(self.dropped) | {key for key, other in self.conflicts if other in body and key in body}
        dropped |= {_DEPENDENT_KEYS[key] for key in dropped if key in _DEPENDENT_KEYS}
        changed = {key: value for key, value in body.items() if key not in dropped or _means_more(key, value)}
        output_limit = min((n for n in (room, self.output_tokens) if n is not None), default=None)
        limits = {key: changed[key] for key in LIMITS if isinstance(changed.get(key), int)}
        if output_limit is not None:
            changed |= {key: min(value, output_limit) for key, value in limits.items()}
        if limits and self.limit_key is not None:
            least = min(changed.pop(key) for key in limits)
            changed[self.limit_key] = least
        return changed

    def after(
        self, error: ProviderError, body: Mapping[str, Any], messages: Sequence[Message]
    ) -> Adaptation | None:
        """The adaptation after the endpoint has refused a request with this body, made of these messages, which are not
        folded. None if the next request would be the same."""
        form = self.form.after(error.text, messages)
        if form is not None:
            return replace(self, form=form)
        limited = self._limited(error, body)
        if limited is not None:
            return limited
        for name, other in unsupported_parameters(error, body):
            if name in LIMITS:
                if self.limit_key is None:
                    return replace(self, limit_key=LIMITS[name == LIMITS[0]])
            elif not _means_more(name, body[name]):
                if other is not None:
                    return replace(self, conflicts=self.conflicts | {(name, other)})
                return replace(self, dropped=self.dropped | {name})
        return None

    def _limited(self, error: ProviderError, body: Mapping[str, Any]) -> Adaptation | None:
        """The adaptation with the limits of tokens that the error names, or None if it names none below the
        request's."""
        limit = token_limit(error)
        limits = [body[key] for key in LIMITS if isinstance(body.get(key), int)]
        if limit is None or not limits:
            return None
        asked = min(limits)
        if limit.context is None:
            lower = limit.output is not None and limit.output < asked
            return replace(self, output_tokens=limit.output) if lower else None
        count = limit.input if limit.input is not None or limit.total is None else limit.total - asked
        if count is None or not _LEAST_ROOM <= limit.context - count < asked:
            return None
        return replace(self, context_tokens=limit.context, input_tokens=count)

    def room(self, message_tokens: int, context_tokens: int | None) -> int | None:
        """Tokens that messages of so many tokens (estimated) leave for the reply in the context of the server or the
        profile. None if that is not known, or too few, which the server shall judge."""
        known = [tokens for tokens in (context_tokens, self.context_tokens) if tokens is not None]
        room = min(known, default=0) - (self.input_tokens or message_tokens)
        return room if room >= _LEAST_ROOM else None


@dataclass(slots=True)
class AdaptedRequest:
    """One call of an endpoint, changed after each error that says what the endpoint does not take."""

    messages: tuple[Message, ...]
    """As the caller has them."""
    build: Callable[[Sequence[Message]], dict[str, Any]]
    """Makes the body of the request with these messages."""
    known: Adaptation
    """What the endpoint is known not to take."""
    message_tokens: int
    """Estimated tokens of the messages."""
    profile_tokens: int | None
    """The most tokens of the context, as the worker's profile has it."""
    changes: int = 0
    """How often it was changed."""
    body: dict[str, Any] = field(init=False)
    """The body of the next request."""
    folded: bool = field(init=False)
    """Whether its messages differ from the caller's."""
    dropped: tuple[str, ...] = field(init=False)
    """Keys that are not in it, since the endpoint does not take them."""

    def __post_init__(self) -> None:
        self._rebuild()

    @property
    def context_tokens(self) -> int | None:
        """The most tokens of the context: as the server has said, else as the worker's profile has it."""
        return self.known.context_tokens or self.profile_tokens

    def _rebuild(self) -> None:
        messages = self.known.form.fold(self.messages)
        whole = self.build(messages)
        self.body = self.known.apply(whole, self.known.room(self.message_tokens, self.profile_tokens))
        self.folded = messages != self.messages
        gone = () if self.body is whole else whole.keys() - self.body.keys() - set(LIMITS)
        self.dropped = tuple(sorted(gone))

    def change(self, error: ProviderError) -> bool:
        """Change the body after this error. Returns False if no change might help."""
        if error.status in _OTHER_REASONS or self.changes == _MAX_CHANGES:
            return False
        further = self.known.after(error, self.body, self.messages)
        if further is None:
            return False
        self.known = further
        self.changes += 1
        self._rebuild()
        return True


def too_long(message_tokens: int, context_tokens: int | None) -> str | None:
    """Why messages of so many tokens (estimated) are not sent: they leave no room for a reply in the context of the
    worker's profile, and some servers cut them in silence. None if they fit."""
    if context_tokens is None or message_tokens + _LEAST_ROOM <= context_tokens:
        return None
    return (
        f"the messages take about {message_tokens:,} tokens, and context_tokens is {context_tokens:,}: let it read "
        "less, or name a fallback with a longer context"
    )


def _means_more(key: str, value: Any) -> bool:
    """Whether the caller would lose more than a hint: to force or forbid a tool is no hint."""
    return key == "tool_choice" and value != "auto"
