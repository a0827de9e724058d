"""Endpoints that answer well, but take only some requests: no such parameter, or messages in one form only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from podium_testing.completion import content_text, error
from podium_testing.exchange import Exchange, Fault


class RefusedParameters(Fault):
    """A refusal of each request that has one of some keys; else a good reply."""

    kind: Literal["refused-parameters"] = "refused-parameters"
    names: tuple[str, ...]
    """The keys of the body, in the order in which they are refused."""
    message: str = "Unsupported parameter: '{name}' is not supported with this model."
    """With {name} and {value} in the places of the key and its value."""
    code: int = Field(default=400, ge=400, le=599)

    async def serve(self, exchange: Exchange) -> None:
        name = next((name for name in self.names if name in exchange.body), None)
        if name is None:
            await exchange.reply(await exchange.answer())
            return
        message = self.message.replace("{name}", name).replace("{value}", str(exchange.body[name]))
        await exchange.send_json(error(message, "invalid_request_error", self.code), code=self.code)


class StrictTemplate(Fault):
    """A refusal of messages that a strict chat template cannot render; else a good reply."""

    kind: Literal["strict-template"] = "strict-template"
    system: bool = True
    """Whether the template knows a system role."""
    ends_with_user: bool = False
    """Whether an assistant's message may not be the last."""
    code: int = Field(default=400, ge=400, le=599)
    message: str | None = None
    """Said of every fault. Default: what templates of that kind say."""

    async def serve(self, exchange: Exchange) -> None:
        fault = next(self._faults(exchange.body["messages"]), None)
        if fault is None:
            await exchange.reply(await exchange.answer())
            return
        await exchange.send_json(error(self.message or fault, "BadRequestError", self.code), code=self.code)

    def _faults(self, messages: Sequence[dict[str, Any]]) -> Iterator[str]:
        roles = [message["role"] for message in messages]
        if not self.system and "system" in roles:
            yield "System role not supported"
        if "system" in roles[1:]:
            yield "System message must be at the beginning."
        turns = [
            message["role"]
            for message in messages
            if message["role"] == "user" or (message["role"] == "assistant" and not message.get("tool_calls"))
        ]
        if any(role != ("user", "assistant")[index % 2] for index, role in enumerate(turns)):
            yield "Conversation roles must alternate user/assistant/user/assistant/..."
        if not all(
            content_text(message.get("content")).strip() or message.get("tool_calls") for message in messages
        ):
            yield "all messages must have non-empty content"
        if self.ends_with_user and roles[-1] == "assistant":
            yield "Assistant message prefill is not supported. The conversation must end with a user message."
