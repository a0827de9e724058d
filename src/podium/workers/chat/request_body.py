"""The body of a request to OpenAI's /chat/completions: messages, settings, tools and seed. It sends nothing."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

from podium.types import AnswerOptions, Message, ProviderState
from podium.workers.base import seed_number
from podium.workers.chat.provider_state import STATE_KEYS, read_state
from podium.workers.chat.tool_calls import CALL_STATE_KEYS
from podium.workers.spec import ChatSpec

MaxTokensKey = Literal["max_tokens", "max_completion_tokens"]
_OWN_KEYS = ("model", "messages", "stream", "n", "max_tokens", "max_completion_tokens")
"""Keys that the caller's further keys may not set: a budget has reserved what they cost."""


def chat_body(
    messages: Sequence[Message],
    spec: ChatSpec,
    model: str,
    max_tokens_key: MaxTokensKey,
    *,
    options: AnswerOptions,
    seed: str,
    stream: bool,
) -> dict[str, Any]:
    """The body of a request.

    Args:
        spec: the worker's settings. Only the `provider_state` of its own messages is sent, and its `extra` wins over
            all other keys but the caller's.
        options: the caller's settings, which win over the worker's. Its `extra` does not set the model, the messages
            or a limit.
    """
    extra = spec.extra
    body: dict[str, Any] = {"model": model, "messages": _messages(messages, spec.name)}
    if "max_tokens" not in extra and "max_completion_tokens" not in extra:
        body[max_tokens_key] = spec.limits.max_tokens
    if spec.temperature is not None:
        body["temperature"] = spec.temperature
    if spec.send_seed:
        body["seed"] = seed_number(seed)
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    body |= extra
    if not body.get("stream_options", True):  # A team file leaves it out by false: TOML has no null.
        del body["stream_options"]
    return body | _option_keys(options, body, max_tokens_key)


def sent_limit(body: Mapping[str, Any]) -> int | None:
    """The most tokens that a request's body allows, reasoning of some providers left aside. None if it names no
    limit."""
    first, second = body.get("max_tokens"), body.get("max_completion_tokens")
    if not isinstance(second, int):
        return first if isinstance(first, int) else None
    return min(first, second) if isinstance(first, int) else second


def _option_keys(
    options: AnswerOptions, body: Mapping[str, Any], max_tokens_key: MaxTokensKey
) -> dict[str, Any]:
    if not options.model_fields_set:
        return {}
    wanted = options.model_dump(exclude_defaults=True, mode="json")
    further = {key: value for key, value in wanted.pop("extra", {}).items() if key not in _OWN_KEYS}
    most = wanted.pop("max_tokens", None)
    if most is not None:
        key = next((k for k in ("max_tokens", "max_completion_tokens") if k in body), max_tokens_key)
        wanted[key] = min(most, body.get(key, most))
    return {**further, **wanted}


def _messages(messages: Sequence[Message], worker: str | None) -> list[dict[str, Any]]:
    ids: dict[str, str] = {}
    sent = []
    for message in messages:
        state = message.provider_state
        own = state if state is not None and state.worker == worker else None
        for call in message.tool_calls:
            ids[call.id] = (own and call.provider_id) or short_id(call.id)
        sent.append(_message(message, ids, own))
    return sent


_SHORT = re.compile("[a-zA-Z0-9]{9}")
_LETTERS = string.ascii_letters + string.digits


def short_id(id_: str) -> str:
    """An id of nine letters and digits for a call of another provider: Mistral takes no others."""
    if _SHORT.fullmatch(id_):
        return id_
    digest = sha256(id_.encode("utf-8", "surrogatepass")).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:9])


def _message(message: Message, ids: Mapping[str, str], own: ProviderState | None) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.name is not None:
        sent["name"] = message.name
    if message.images:
        pictures = [{"type": "image_url", "image_url": {"url": address}} for address in message.images]
        sent["content"] = [{"type": "text", "text": message.content}, *pictures]
    if message.tool_calls:
        sent["content"] = message.content or None
        sent["tool_calls"] = [
            {
                "id": ids[call.id],
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
                **(read_state(call.provider_state, CALL_STATE_KEYS) if own is not None else {}),
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        sent["tool_call_id"] = ids.get(message.tool_call_id) or short_id(message.tool_call_id)
    return sent if own is None else {**read_state(own.fields, STATE_KEYS), **sent}
