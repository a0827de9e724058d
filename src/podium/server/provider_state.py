"""Sends provider state (`podium.types.ProviderState`), which a provider wants back with an answer, through the client.

The client gets the state as one text that it need not understand, with the name of the worker that gave it. In a chat
completion the text is `extra_content.podium` of the first tool call, or of the message if there is no tool call. In a
response it is the reasoning item's `encrypted_content`. In Anthropic's message it is the signature of the thinking
block, or the data of a redacted block. If a client sends it back, any process of the server can continue without a
store. If a client drops it, the server finds tool calls by their ids, in the memory of this process or else in the
store.
"""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Sequence

from podium.server.keys import Caller
from podium.store.async_store import AsyncTraceStore
from podium.trace import Trace
from podium.types import Message, ProviderState, ToolCall

KEY = "podium"
"""The key of Podium's own text in `extra_content`."""
_PREFIX = "podium-state."
_MOST_BYTES = 8 << 20
"""The most bytes of a state that is read, after decompression."""
_REMEMBERED = 500
"""How many answers with tool calls this process remembers with their state."""


def write_state(state: ProviderState | None, calls: Sequence[ToolCall], *, reasoned: bool) -> str | None:
    """The state of an answer as text. None if the provider wants nothing back.

    Args:
        calls: the answer's tool calls, each with its `provider_id` and `provider_state`.
        reasoned: whether the client sees the reasoning, which it may send back. The text then says which part of the
            reasoning the provider wants.
    """
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
        ToolCall(
            id=call.id, name=call.name, arguments=call.arguments, provider_id=id_, provider_state=call_state
        )
        for call, (id_, call_state) in zip(message.tool_calls, calls, strict=True)
    )
    return message.model_copy(update={"provider_state": state, "tool_calls": own})


class ProviderStates:
    """The state of answers with tool calls, by the id of their trace, for clients that send back only ids. The store
    has the traces of other processes."""

    def __init__(self, store: AsyncTraceStore) -> None:
        self._store = store
        self._known: OrderedDict[tuple[str, str | None], tuple[ProviderState, tuple[ToolCall, ...]] | None]
        self._known = OrderedDict()

    def record(self, trace: Trace, caller: Caller) -> None:
        """Remember the state of a trace's answer, if the answer calls tools."""
        if trace.tool_calls:
            self._remember(trace.id, caller, trace)

    async def restore(
        self, message: Message, trace_id: str, numbers: Sequence[int], caller: Caller
    ) -> Message:
        """An assistant's message with its state, if the state is known. Its tool calls have these `numbers` in the
        trace, in order."""
        key = trace_id, caller.visible_owner
        if key not in self._known:
            trace = await self._store.find(trace_id, caller.visible_owner)
            if trace is None:  # Another process may be writing it, so it is searched again next time.
                return message
            self._remember(trace_id, caller, trace)
        known = self._known.get(key)
        if known is None or max(numbers) >= len(known[1]):
            return message
        calls = [known[1][number] for number in numbers]
        return _apply_state(message, known[0], [(call.id, call.provider_state) for call in calls])

    def _remember(self, trace_id: str, caller: Caller, trace: Trace) -> None:
        state = trace.answer_state
        known = None if state is None else (state, trace.tool_calls)
        self._known[trace_id, caller.visible_owner] = known
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
