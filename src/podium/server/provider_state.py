"""What a provider wants back with an answer, on its way through the client: `podium.types.ProviderState`.

The client gets it as one text that it need not understand, with the name of the worker that gave it: in a chat
completion as `extra_content.podium` (of the first tool call, else of the message), in a response as the reasoning
item's `encrypted_content`, in Anthropic's message as the signature of the thinking block or the data of a redacted one.
A client that sends it back needs no store and no particular process of the server. For one that drops it, the server
finds tool calls by their ids: in this process's memory, else in the store.
"""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Sequence

from podium.server.keys import Caller
from podium.trace import Trace
from podium.trace.store.async_store import AsyncTraceStore
from podium.types import Message, ProviderState, ToolCall

KEY = "podium"
"""The key of Podium's own text in `extra_content`."""
_PREFIX = "podium-state."
_MOST_BYTES = 8 << 20
"""The most bytes of a state that is read, after decompression."""
_REMEMBERED = 500
"""Answers with tool calls whose state this process remembers."""


def write_state(state: ProviderState | None, calls: Sequence[ToolCall], *, reasoned: bool) -> str | None:
    """The state of an answer as text, or None if there is nothing that a provider wants back.

    Args:
        calls: the answer's tool calls, each with its `provider_id` and `provider_state`.
        reasoned: whether the client sees the reasoning, which it may send back: the text says what of it the provider
            wants.
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
    """The message with the state that a client sent back with it; unchanged if `write_state` did not write the text."""
    if message.role != "assistant" or not isinstance(text, str) or not text.startswith(_PREFIX):
        return message
    try:
        unpacker = zlib.decompressobj()
        document = json.loads(unpacker.decompress(urlsafe_b64decode(text[len(_PREFIX) :]), _MOST_BYTES))
        state = ProviderState(worker=document["worker"], fields=document["fields"])
        return _given(message, state, document["calls"])
    except (ValueError, TypeError, KeyError, zlib.error, RecursionError):
        return message


def _given(message: Message, state: ProviderState, calls: Sequence[tuple[str | None, str]]) -> Message:
    """The message with this state; `calls` has id and state of each call. `ValueError` if their number differs."""
    own = tuple(
        ToolCall(
            id=call.id, name=call.name, arguments=call.arguments, provider_id=id_, provider_state=call_state
        )
        for call, (id_, call_state) in zip(message.tool_calls, calls, strict=True)
    )
    return message.model_copy(update={"provider_state": state, "tool_calls": own})


class ProviderStates:
    """The state of answers with tool calls, by the id of their trace, for clients that send back no more than ids.

    Args:
        store: where the traces of other processes are.
    """

    def __init__(self, store: AsyncTraceStore) -> None:
        self._store = store
        self._known: OrderedDict[tuple[str, str | None], tuple[ProviderState, tuple[ToolCall, ...]] | None]
        self._known = OrderedDict()

    def record(self, trace: Trace, caller: Caller) -> None:
        """Remember the state of a trace's answer, if it calls tools."""
        if trace.tool_calls:
            self._remember(trace.id, caller, trace)

    async def restore(
        self, message: Message, trace_id: str, numbers: Sequence[int], caller: Caller
    ) -> Message:
        """The message with its state, if it is known.

        Args:
            message: an assistant's message with tool calls of this trace.
            numbers: which calls of the trace they are, in order.
        """
        key = trace_id, caller.visible_owner
        if key not in self._known:
            self._remember(trace_id, caller, await self._store.find(trace_id, caller.visible_owner))
        known = self._known.get(key)
        if known is None or max(numbers) >= len(known[1]):
            return message
        calls = [known[1][number] for number in numbers]
        return _given(message, known[0], [(call.id, call.provider_state) for call in calls])

    def _remember(self, trace_id: str, caller: Caller, trace: Trace | None) -> None:
        state = None if trace is None else trace.answer_state
        known = None if trace is None or state is None else (state, trace.tool_calls)
        self._known[trace_id, caller.visible_owner] = known
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
