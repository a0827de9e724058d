"""Reads an endpoint's list of models, with prices if the list has OpenRouter's form.

A price is a text of dollars per token, such as {"prompt": "0.00000025", "completion": "0.000002"}. Some models are left
out and counted: models without a price, with a negative price (OpenRouter's routers, whose price depends on the
question), or that write no text.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aiohttp

from podium.types import Price
from podium.workers.chat.endpoint import Endpoint
from podium.workers.chat.failures import Failures, read_error_body
from podium.workers.connections import Connections
from podium.workers.discovery.models import FoundModel, FoundServer

_MAX_LIST_BYTES = 64 << 20
"""The most bytes of a list."""
_TIMEOUT_S = 60.0


async def read_catalogue(base_url: str, key: str | None, key_env: str | None) -> FoundServer:
    """Ask the endpoint for its models, and find those that have a price and write text.

    Args:
        base_url: up to and without /models, as in "https://openrouter.ai/api/v1".
        key: the key that is sent as "Bearer KEY". If it is None, no key is sent.
        key_env: the environment variable that the workers read the key from.

    Raises:
        ConfigError: `base_url` is not an http or https address.
        WorkerError: no list of models came back.
    """
    endpoint = Endpoint(base_url.rstrip("/").removesuffix("/models"), key, Connections())
    rows, failures = await fetch_models(endpoint)
    try:
        found = {str(row["id"]): _found(row, endpoint, key_env) for row in rows}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise failures.malformed(json.dumps(rows).encode()) from None
    models = tuple(model for model in found.values() if model is not None)
    left_out = tuple(name for name, model in found.items() if model is None)
    return FoundServer(endpoint.host, endpoint.base_url, models, left_out)


async def fetch_models(endpoint: Endpoint) -> tuple[list[Any], Failures]:
    """The list at an endpoint's /models, and what makes messages about faults in it. The connections are closed.

    Raises:
        WorkerError: no list came back.
    """
    failures = Failures(endpoint.base_url, endpoint.connections.secrets)
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            content = await _get(endpoint, failures)
    except TimeoutError:
        raise failures.error(f"no reply within {_TIMEOUT_S:g} s", "timeout", retryable=True) from None
    except (aiohttp.ClientError, OSError) as error:
        raise failures.transport(error) from None
    finally:
        await endpoint.connections.close()
    try:
        return list(json.loads(content)["data"]), failures
    except (ValueError, RecursionError, KeyError, TypeError):
        raise failures.malformed(content) from None


async def _get(endpoint: Endpoint, failures: Failures) -> bytes:
    session = await endpoint.connections.session()
    async with session.get(
        f"{endpoint.base_url}/models",
        headers=endpoint.all_headers(),
        allow_redirects=False,
        proxy=endpoint.proxy,
    ) as response:
        if 300 <= response.status < 400:
            raise failures.redirect(response.status, response.headers.get("Location", ""))
        received = bytearray()
        async for piece in response.content.iter_any():
            received += piece
            if len(received) > _MAX_LIST_BYTES:
                raise failures.too_big(f"{_MAX_LIST_BYTES >> 20} MiB")
        if response.status != 200:
            raise failures.status(response.status, response.headers, read_error_body(bytes(received)))
        return bytes(received)


def _found(row: Mapping[str, Any], endpoint: Endpoint, key_env: str | None) -> FoundModel | None:
    """A model of the list. None if the model is left out."""
    form = row.get("architecture") or {}
    try:
        # Round, since 0.00000025 times a million is a little off.
        sent, written = (round(float(row["pricing"][key]) * 1e6, 6) for key in ("prompt", "completion"))
        price = Price(input=sent, output=written)
    except (KeyError, TypeError, ValueError):
        return None
    if "text" not in form.get("output_modalities", ["text"]):
        return None
    name, length = str(row["id"]), row.get("context_length")
    return FoundModel(
        name,
        endpoint.base_url,
        endpoint.host,
        context_tokens=length if isinstance(length, int) and length > 0 else None,
        sees="image" in form.get("input_modalities", ()),
        price=price,
        key_env=key_env,
        about=str(row.get("name") or name),
    )
