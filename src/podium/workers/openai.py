"""A worker behind any endpoint that speaks OpenAI's /chat/completions: sends the requests of a `ChatWorker`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from podium.workers.base import ENDPOINT
from podium.workers.chat.chat_worker import ChatWorker
from podium.workers.chat.endpoint import Endpoint, is_loopback
from podium.workers.chat.failures import Failures
from podium.workers.chat.request_body import MaxTokensKey
from podium.workers.chat.response_reader import ResponseReader
from podium.workers.spec import ChatSpec

_CLOSES = "llama.cpp"
"""The `Server` header of one that closes the connection of a streamed reply although it says that it keeps it. A call
that is sent on it at that moment fails."""


@cache
def _time_limits(connect_timeout: float) -> aiohttp.ClientTimeout:
    # By default aiohttp rounds limits over 5 s up to whole seconds.
    return aiohttp.ClientTimeout(total=None, connect=connect_timeout, ceil_threshold=float("inf"))


class _Body(aiohttp.BytesPayload):
    """The body of a request, which tells the reader when the connection is open and the body is sent."""

    def __init__(self, content: bytes, reader: ResponseReader) -> None:
        super().__init__(content)
        self._reader = reader

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self._reader.request_sent = True
        await super().write_with_length(writer, content_length)


class OpenAIWorker(ChatWorker):
    """A model behind an endpoint.

    Args:
        spec: the worker's settings.
        model: the endpoint's name for the model.
        max_tokens_key: the request key for the limit. Default: chosen by the address.
    """

    traits = ENDPOINT

    def __init__(
        self, spec: ChatSpec, endpoint: Endpoint, model: str, max_tokens_key: MaxTokensKey | None = None
    ) -> None:
        # OpenAI's newer models refuse max_tokens, which every other server accepts.
        is_openai = endpoint.host == "api.openai.com"
        default: MaxTokensKey = "max_completion_tokens" if is_openai else "max_tokens"
        secrets = endpoint.connections.secrets
        super().__init__(spec, model, endpoint.base_url, secrets, max_tokens_key or default)
        self._endpoint = endpoint
        self.identity = {
            **(self.identity or {}),
            "kind": "openai",
            "url": endpoint.base_url,
            "query": endpoint.query,
            "headers": endpoint.headers,
        }

    @property
    def computes_here(self) -> bool:
        return is_loopback(self._endpoint.host)

    def call_at(self, endpoint: Endpoint) -> None:
        """Make further calls at this endpoint."""
        self._endpoint = endpoint
        self._failures = Failures(endpoint.base_url, self._secrets)

    async def close(self) -> None:
        """Close the connections, also those shared with other workers; a later call opens new ones."""
        await self._endpoint.connections.close()

    async def _send(self, body: Mapping[str, Any], reader: ResponseReader) -> None:
        session = await self._endpoint.connections.session()
        async with session.post(
            f"{self._endpoint.base_url}/chat/completions",
            params=self._endpoint.query or None,
            data=_Body(json.dumps(body).encode(), reader),
            headers=self._endpoint.all_headers(),
            allow_redirects=False,
            proxy=self._endpoint.proxy,
            timeout=_time_limits(self.limits.connect_timeout),
        ) as response:
            protocol = None if response.connection is None else response.connection.protocol
            if protocol is not None and response.headers.get("Server") == _CLOSES:
                protocol.force_close()
            await reader.read(response)
