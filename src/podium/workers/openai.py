"""A worker behind any endpoint that speaks OpenAI's /chat/completions.

This module has the model's settings. The package `chat` sends requests, reads responses and makes errors. One call is
one attempt.
"""

from __future__ import annotations

from dataclasses import replace

from podium.trace import Reply
from podium.types import Message
from podium.workers.base import Request, Worker
from podium.workers.chat.client import ChatClient
from podium.workers.spec import ChatSpec
from podium.workers.traits import ENDPOINT


class OpenAIWorker(Worker):
    """A model behind a `ChatClient`.

    Args:
        spec: the worker's settings.
        model: the endpoint's name for the model.
    """

    traits = ENDPOINT

    def __init__(self, spec: ChatSpec, client: ChatClient, model: str) -> None:
        self.profile, self.limits, self.fallback = spec.to_profile(), spec.limits, spec.fallback
        self._spec = spec
        self._client = client
        self._model = model
        self._system = (Message(role="system", content=spec.system),) if spec.system else ()
        endpoint = self._client.endpoint
        self.identity = {
            "kind": "openai",
            "url": endpoint.base_url,
            "query": endpoint.query,
            "headers": endpoint.headers,
            "model": self._model,
            "system": [message.content for message in self._system],
            "max_tokens": self.limits.max_tokens,
            "temperature": self._spec.temperature,
            "seed": self._spec.send_seed,
            "extra": self._spec.extra,
        }

    async def answer(self, request: Request) -> Reply:
        """Call the model once. `earlier_calls` and `sample` are not sent, since the seed already depends on them."""
        if not self._system:
            return await self._client.chat(request, self._spec, self._model)
        sent = replace(request, messages=self._system + request.messages)
        reply = await self._client.chat(sent, self._spec, self._model)
        system = {"system": self._system[0].content}
        return replace(reply, parameters=system | (reply.parameters or {}))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
