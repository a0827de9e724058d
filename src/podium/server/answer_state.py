"""The state of an answer that clients carry from one request to the next: the ids of tool calls, and provider state.

The id of a tool call names the trace and the worker that made the call. The provider state
(`podium.types.ProviderState`) is one text that the client need not understand, with the name of the worker that gave
it. In a chat completion the text is `extra_content.podium` of the first tool call, or of the message if there is no
tool call. In a response it is the reasoning item's `encrypted_content`. In Anthropic's message it is the signature of
the thinking block, or the data of a redacted block. If a client sends it back, any process of the server can continue
without a store. If a client drops it, the server finds tool calls by their ids, in the memory of this process or else
in the store.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from podium.server.keys import Caller
from podium.store import TraceStore
from podium.trace import Trace
from podium.types import Message, ProviderState, ToolCall

_LETTERS = "ghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ"
_ID = re.compile(r"call_([0-9a-f]{32})([g-zG-Z]{2})(\d{1,3})")
KEY = "podium"
"""The key of Podium's own text in `extra_content`."""
_PREFIX = "podium-state."
_MOST_BYTES = 8 << 20
"""The most bytes of a state that is read, after decompression."""
_REMEMBERED = 500
"""How many answers with tool calls this process remembers with their state."""


class CallId(NamedTuple):
    """A tool call's id as the caller sees it. For up to ten calls it has 40 characters, OpenAI's limit."""

    trace_id: str
    letters: str
    """The worker that made the call, as `worker_letters` gives it."""
    number: int

    @classmethod
    def parse(cls, id_: str) -> CallId | None:
        """Read an id. Returns None if Podium did not write it."""
        match = _ID.fullmatch(id_)
        return None if match is None else cls(match[1], match[2], int(match[3]))

    def __str__(self) -> str:
        return f"call_{self.trace_id}{self.letters}{self.number}"


def worker_letters(worker: str) -> str:
    """Two letters that stand for a worker. Neither is a hexadecimal digit."""
    first, second = sha256(worker.encode()).digest()[:2]
    return _LETTERS[first % len(_LETTERS)] + _LETTERS[second % len(_LETTERS)]


def answer_message(trace: Trace) -> Message:
    """The answer of a trace as an assistant's message. Its tool calls have the ids by which the caller knows them."""
    calls: tuple[ToolCall, ...] = ()
    if trace.tool_calls:
        last = trace.spans[-1]
        letters = worker_letters(last.answered_by or last.worker)
        calls = tuple(
            call.model_copy(update={"id": str(CallId(trace.id, letters, number)), "provider_id": call.id})
            for number, call in enumerate(trace.tool_calls)
        )
    return Message(
        role="assistant", content=trace.answer or "", tool_calls=calls, provider_state=trace.answer_state
    )


def write_state(answer: Message, *, reasoned: bool) -> str | None:
    """The state of an answer as text. None if the provider wants nothing back.

    Args:
        answer: the `answer_message`.
        reasoned: whether the client sees the reasoning, which it may send back. The text then says which part of the
            reasoning the provider wants.
    """
    state, calls = answer.provider_state, answer.tool_calls
    odd = any(not (call.provider_id or "").replace("_", "").replace("-", "").isalnum() for call in calls)
    states = [call.provider_state for call in calls]
    if state is None or not (state.fields or any(states) or (calls and (odd or reasoned))):
        return None
    document = {
        "worker": state.worker,
        "fields": state.fields,
        "calls": [[call.provider_id, call.provider_state] for call in calls],
    }
    return _PREFIX + urlsafe_b64encode(zlib.compress(json.dumps(document).encode(), 1)).decode()


def with_state(message: Message, text: object) -> Message:
    """The message with the state that a client sent back. It is unchanged if `write_state` did not write the text."""
    if message.role != "assistant" or not isinstance(text, str) or not text.startswith(_PREFIX):
        return message
    try:
        unpacker = zlib.decompressobj()
        document = json.loads(unpacker.decompress(urlsafe_b64decode(text[len(_PREFIX) :]), _MOST_BYTES))
        state = ProviderState(worker=document["worker"], fields=document["fields"])
        return _apply_state(message, state, document["calls"])
    except (ValueError, TypeError, KeyError, zlib.error, RecursionError):
        return message


def _apply_state(message: Message, state: ProviderState, calls: Sequence[tuple[str | None, str]]) -> Message:
    """The message with this state. `calls` has the id and state of each call. Raises ValueError if their number
    differs."""
    own = tuple(
        call.model_copy(update={"provider_id": id_, "provider_state": call_state})
        for call, (id_, call_state) in zip(message.tool_calls, calls, strict=True)
    )
    return message.model_copy(update={"provider_state": state, "tool_calls": own})


class ProviderStates:
    """The answers with tool calls, by the id of their trace, for clients that send back only ids. The store has the
    traces of other processes."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        self._known: OrderedDict[tuple[str, str | None], Message] = OrderedDict()

    def record(self, trace: Trace, caller: Caller) -> None:
        """Remember a trace's answer, if it calls tools."""
        if trace.tool_calls:
            self._remember((trace.id, caller.visible_owner), trace)

    async def restore(self, message: Message, caller: Caller) -> Message:
        """A message with its state, if it calls tools by ids that Podium wrote, the client dropped the state, and the
        state is known."""
        ids = [id_ for call in message.tool_calls if (id_ := CallId.parse(call.id)) is not None]
        traces = {id_.trace_id for id_ in ids}
        if message.provider_state is not None or len(ids) < len(message.tool_calls) or len(traces) != 1:
            return message
        key = traces.pop(), caller.visible_owner
        if key not in self._known:
            trace = await self._store.to_thread(self._store.find, *key)
            if trace is None:  # Another process may be writing it, so it is searched again next time.
                return message
            self._remember(key, trace)
        known = self._known.get(key)
        if (
            known is None
            or known.provider_state is None
            or max(id_.number for id_ in ids) >= len(known.tool_calls)
        ):
            return message
        calls = [known.tool_calls[id_.number] for id_ in ids]
        return _apply_state(
            message, known.provider_state, [(call.provider_id, call.provider_state) for call in calls]
        )

    def _remember(self, key: tuple[str, str | None], trace: Trace) -> None:
        self._known[key] = answer_message(trace)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
