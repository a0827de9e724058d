"""The JSON of a message, and the stream of events that Anthropic's client assembles into one.

If the caller requested thinking, a thinking block has the team's progress, or the reasoning of a worker that is called
directly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from podium.errors import APIError
from podium.executor import StepText
from podium.server.answers import ServedAnswer, progress
from podium.server.api_errors import to_anthropic_body
from podium.server.openai.conversation import called, returned_state
from podium.server.streaming import StreamedText, sse_event
from podium.team import Event
from podium.types import Profile, ToolCall, Usage

_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def message_body(
    answer: ServedAnswer, model: str, *, thinks: bool, names: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """The JSON of a whole message.

    Args:
        thinks: whether the caller requested thinking blocks.
        names: the caller's names of tools, by those that workers got in their place.
    """
    state = returned_state(answer)
    thoughts = [_thinking(answer.reasoning, state or "")] if thinks and answer.reasoning else []
    if state is not None and not thoughts:
        thoughts = [_redacted(state)]
    texts = [_text(answer.text)] if answer.text or not answer.tool_calls else []
    return {
        **_message(answer.trace_id, model),
        "content": [*thoughts, *texts, *(_tool_use(call, _input(call)) for call in _called(answer, names))],
        "stop_reason": _STOPS[answer.finish],
        "usage": message_usage(answer.usage, answer.cost_usd),
        "podium": answer.podium,
    }


def message_usage(usage: Usage, cost_usd: float) -> dict[str, Any]:
    """The usage of a message: tokens and dollars of workers and planners; input read from caches, and written into
    them, is counted apart."""
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens,
        "cache_creation": None,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "inference_geo": None,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        "server_tool_use": None,
        "service_tier": "standard",
        "cost": cost_usd,
    }


def _message(trace_id: str, model: str) -> dict[str, Any]:
    return {
        "id": f"msg_{trace_id}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "container": None,
        "stop_details": None,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": message_usage(Usage(), 0.0),
    }


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "citations": []}


def _thinking(text: str, signature: str = "") -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


def _redacted(state: str) -> dict[str, Any]:
    """A block that carries the state of the answer alone."""
    return {"type": "redacted_thinking", "data": state}


def _called(answer: ServedAnswer, names: Mapping[str, str]) -> list[ToolCall]:
    return [call.model_copy(update={"name": names.get(call.name, call.name)}) for call in called(answer)]


def _tool_use(call: ToolCall, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": call.id,
        "name": call.name,
        "input": arguments,
        "caller": {"type": "direct"},
    }


def _input(call: ToolCall) -> dict[str, Any]:
    """A call's arguments as an object. If the worker wrote no JSON object, its text becomes the field `arguments`."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"arguments": call.arguments}


class MessageEvents:
    """The events of one message.

    Args:
        pool: profiles of the workers, which plans refer to by number.
        thinks: whether the caller requested thinking blocks.
        direct: whether one worker is called directly. Then the thinking is the worker's, and not the team's progress.
        names: as in `message_body`.
    """

    def __init__(
        self,
        trace_id: str,
        model: str,
        pool: Sequence[Profile],
        *,
        thinks: bool,
        direct: bool,
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._trace_id = trace_id
        self._model = model
        self._pool = pool
        self._thinks = thinks
        self._direct = direct
        self._names = names
        self._text = StreamedText()
        self._started = False
        self._index = -1
        self._open: str | None = None
        """The type of the open content block; None: no block is open."""

    def start(self) -> bytes:
        """The first events; empty after the first call."""
        if self._started:
            return b""
        self._started = True
        return _event("message_start", message=_message(self._trace_id, self._model)) + _event("ping")

    def heartbeat(self) -> bytes:
        """A sign of life."""
        return self.start() or _event("ping")

    def for_event(self, event: Event) -> bytes:
        """The events for one event of the runner. For the end of the answer, call `end`."""
        if isinstance(event, StepText) and not event.reasoning:
            text = self._text.add(event.attempt, event.text)
            return self._write("text", text) if text else b""
        if not self._thinks or self._open == "text":
            return b""
        if isinstance(event, StepText):
            return self._write("thinking", event.text) if self._direct else b""
        reported = None if self._direct else progress(event, self._pool)
        return b"" if reported is None else self._write("thinking", f"{reported[0]}\n")

    def end(self, answer: ServedAnswer) -> bytes:
        """The last events.

        Raises:
            APIError: the answer does not begin with the text that was sent.
        """
        rest = self._text.finish(answer.text, answer.trace_id)
        has_text = rest or not (answer.tool_calls or self._open == "text")
        state = returned_state(answer)
        pieces = []
        if state is not None and self._open == "thinking":
            pieces.append(self._stop(state))
            state = None
        if has_text:
            pieces.append(self._write("text", rest))
        if state is not None:
            pieces.append(self._begin(_redacted(state)))
        for call in _called(answer, self._names):
            pieces += [
                self._begin(_tool_use(call, {})),
                self._delta("input_json_delta", partial_json=call.arguments),
            ]
        pieces.append(self._stop())
        delta = {"stop_reason": _STOPS[answer.finish], "stop_sequence": None}
        usage = message_usage(answer.usage, answer.cost_usd)
        pieces.append(_event("message_delta", delta=delta, usage=usage, podium=answer.podium))
        return b"".join([*pieces, _event("message_stop")])

    def fail(self, error: APIError) -> bytes:
        """The last event of a message without an answer."""
        return sse_event(to_anthropic_body(error), "error")

    def _write(self, kind: str, text: str) -> bytes:
        """The events that add text to a block of text or thinking. If no such block is open, one is opened."""
        empty = _text("") if kind == "text" else _thinking("")
        opening = b"" if self._open == kind else self._begin(empty)
        return opening + (self._delta(f"{kind}_delta", **{kind: text}) if text else b"")

    def _begin(self, block: dict[str, Any]) -> bytes:
        ended = self._stop()
        self._index, self._open = self._index + 1, block["type"]
        return ended + _event("content_block_start", index=self._index, content_block=block)

    def _delta(self, kind: str, **fields: Any) -> bytes:
        return _event("content_block_delta", index=self._index, delta={"type": kind, **fields})

    def _stop(self, state: str = "") -> bytes:
        """The events that end the open block; `state`: of the answer, the signature of a thinking block."""
        if self._open is None:
            return b""
        signature = self._delta("signature_delta", signature=state) if self._open == "thinking" else b""
        self._open = None
        return signature + _event("content_block_stop", index=self._index)


def _event(kind: str, **fields: Any) -> bytes:
    return sse_event({"type": kind, **fields}, kind)
