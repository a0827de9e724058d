"""Sends texts to one endpoint's /embeddings, once, and returns their vectors or raises a `WorkerError`.

`client` does the same for chats. The caller, `podium.baselines.encoder`, makes batches and retries.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from typing import Any

import aiohttp

from podium.errors import WorkerError
from podium.workers.chat.endpoint import Endpoint
from podium.workers.chat.failures import Failures, find_error, read_error_body
from podium.workers.connections import Connections

_MOST = 256 << 20
"""Most bytes of a reply."""
_MOST_ERROR = 1 << 16


class EmbeddingClient:
    """Sends texts to one endpoint.

    Args:
        base_url: up to and without /embeddings, as in "https://api.openai.com/v1".
        key: sent as "Bearer KEY"; None: none is sent.

    Raises:
        ConfigError: `base_url` is not an http or https address.
    """

    def __init__(self, base_url: str, key: str | None = None) -> None:
        self._connections = Connections()
        self._endpoint = Endpoint(
            base_url.rstrip("/").removesuffix("/embeddings"), key, self._connections.secrets
        )
        self._failures = Failures(self._endpoint.base_url, self._connections.secrets)

    def __repr__(self) -> str:
        return f"EmbeddingClient({self.base_url!r})"

    @property
    def base_url(self) -> str:
        """The address, as error messages name it."""
        return self._endpoint.base_url

    async def embed(
        self,
        texts: Sequence[str],
        *,
        model: str,
        timeout: float = 120.0,  # noqa: ASYNC109 - of one attempt, named in messages
    ) -> list[list[float]]:
        """A vector for each text, all of one length: [N][D].

        Args:
            timeout: seconds for the whole call.

        Raises:
            WorkerError: no such vectors came back.
        """
        sent = json.dumps({"model": model, "input": list(texts)}).encode()
        try:
            async with asyncio.timeout(timeout):
                content = await self._post(sent)
        except TimeoutError:
            raise self._failures.error(f"no reply within {timeout:g} s", "timeout", retryable=True) from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._failures.transport(error) from None
        return self._vectors(content, len(texts))

    async def close(self) -> None:
        """Close the connections. Calling twice is fine; a later call opens new ones."""
        await self._connections.close()

    async def _post(self, content: bytes) -> bytes:
        session = await self._connections.session()
        async with session.post(
            f"{self.base_url}/embeddings",
            data=content,
            headers=self._endpoint.all_headers(),
            allow_redirects=False,
            proxy=self._endpoint.proxy,
        ) as response:
            if 300 <= response.status < 400:
                raise self._failures.redirect(response.status, response.headers.get("Location", ""))
            good = 200 <= response.status < 300
            most = _MOST if good else _MOST_ERROR
            received = bytearray()
            async for piece in response.content.iter_any():
                received += piece
                if len(received) > most:
                    break
            if not good:
                provider_error = read_error_body(bytes(received[:most]))
                raise self._failures.status(response.status, response.headers, provider_error)
            if len(received) > most:
                raise self._failures.too_big(f"{most >> 20} MiB")
            return bytes(received)

    def _vectors(self, content: bytes, wanted: int) -> list[list[float]]:
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            raise self._failures.malformed(content) from None
        if not isinstance(body, dict):
            raise self._wrong("the reply is no JSON object")
        provider_error = find_error(body)
        if provider_error is not None:
            raise self._failures.reported({}, provider_error, begun=False)
        data = body.get("data")
        if not isinstance(data, list) or not all(isinstance(entry, dict) for entry in data):
            raise self._wrong("the reply has no list of vectors (is this an embedding model?)")
        if len(data) != wanted:
            raise self._wrong(f"it gave {len(data)} vectors for {wanted} texts")
        places = [entry.get("index", place) for place, entry in enumerate(data)]
        if not all(isinstance(place, int) for place in places) or sorted(places) != list(range(wanted)):
            raise self._wrong("its vectors are not numbered from 0 on")
        vectors = [entry.get("embedding") for _, entry in sorted(zip(places, data, strict=True), key=_place)]
        if not all(map(_is_vector, vectors)):
            raise self._wrong("a vector is no list of finite numbers")
        lengths = sorted({len(vector) for vector in vectors})
        if len(lengths) > 1:
            raise self._wrong(f"its vectors have different lengths, from {lengths[0]} to {lengths[-1]}")
        return vectors

    def _wrong(self, what: str) -> WorkerError:
        return self._failures.error(what, "protocol")


def _place(numbered: tuple[int, Any]) -> int:
    return numbered[0]


def _is_vector(vector: Any) -> bool:
    return (
        isinstance(vector, list)
        and bool(vector)
        and all(type(number) in (int, float) and math.isfinite(number) for number in vector)
    )
