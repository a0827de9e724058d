"""A worker behind any endpoint that speaks OpenAI's /chat/completions.

Holds the model's settings; the package `chat` sends requests, reads responses and makes errors. One call is one
attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from podium.types import Limits, Message, Profile
from podium.workers.base import Reply, Request
from podium.workers.chat.client import ChatClient
from podium.workers.chat.request_body import seed_number


class OpenAIWorker:
    """A model behind a `ChatClient`.

    Args:
        system: the worker's own system prompt, the first message of every call.
        temperature: None: none is sent, so the endpoint's default holds; some models refuse any.
        extra: further keys of the request's body.
        stream: whether to ask for streamed replies; `limits.first_token_timeout` holds only then.
        send_seed: whether each call sends a seed, a number of 31 bits that is derived from the question's seed, the
            round and the step. So each sample and each step of a question has another number, and a repeated run
            has the same numbers. An endpoint may ignore it.
    """

    takes_extra = True
    """Whether `AnswerOptions.extra` reaches its model."""

    def __init__(
        self,
        profile: Profile,
        client: ChatClient,
        model: str,
        *,
        limits: Limits | None = None,
        fallback: str | None = None,
        system: str | None = None,
        temperature: float | None = None,
        extra: Mapping[str, Any] | None = None,
        stream: bool = False,
        send_seed: bool = False,
    ) -> None:
        self.profile = profile
        self.limits = limits or Limits()
        self.fallback = fallback
        self._client = client
        self._model = model
        self._system = (Message(role="system", content=system),) if system else ()
        self._temperature = temperature
        self._extra = dict(extra or {})
        self._stream = stream
        self._send_seed = send_seed

    def __repr__(self) -> str:
        return f"OpenAIWorker({self.profile.name!r}, {self._model!r}, {self._client!r})"

    @property
    def identity(self) -> Mapping[str, Any] | None:
        """Endpoint, model and settings; neither keys nor secret headers."""
        endpoint = self._client.endpoint
        return {
            "kind": "openai",
            "url": endpoint.base_url,
            "query": endpoint.query,
            "headers": endpoint.headers,
            "model": self._model,
            "system": [message.content for message in self._system],
            "max_tokens": self.limits.max_tokens,
            "temperature": self._temperature,
            "seed": self._send_seed,
            "extra": self._extra,
        }

    async def answer(self, request: Request) -> Reply:
        """One attempt. `repeat` and `sample` are not sent: the seed already differs by them."""
        reply = await self._client.chat(
            self._system + request.messages,
            model=self._model,
            worker=self.profile.name,
            timeout=self.limits.timeout,
            connect_timeout=self.limits.connect_timeout,
            first_token_timeout=self.limits.first_token_timeout,
            stream=self._stream,
            max_tokens=self.limits.max_tokens,
            temperature=self._temperature,
            seed=seed_number(request.seed) if self._send_seed else None,
            extra=self._extra,
            context_tokens=self.profile.context_tokens,
            options=request.options,
            thoughts_alone=request.thoughts_alone,
            on_text=request.on_text,
            on_reasoning=request.on_reasoning,
        )
        if not self._system:
            return reply
        system = {"system": self._system[0].content}
        return replace(reply, parameters=system | (reply.parameters or {}))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
