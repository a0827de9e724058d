"""Reads an endpoint's list of models with their prices, in OpenRouter's form, as the worker tables of a pool file.

A price is a text of dollars per token, as in {"prompt": "0.00000025", "completion": "0.000002"}. Models without a
price, or with a negative one (OpenRouter's routers, whose price depends on the question), and models that write no text
are left out and counted.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from podium.workers.chat.endpoint import Endpoint
from podium.workers.chat.failures import Failures, read_error_body
from podium.workers.connections import Connections

_MAX_LIST_BYTES = 64 << 20
"""The most bytes of a list."""
_TIMEOUT_S = 60.0
_OPENROUTER = "openrouter.ai"
_PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The models of one endpoint."""

    workers: tuple[dict[str, Any], ...]
    """A [[worker]] table for each."""
    left_out: int
    """Models without a usable price, and models that write no text."""


async def read_catalogue(base_url: str, key: str | None, key_env: str | None) -> Catalogue:
    """Ask the endpoint for its models.

    Args:
        base_url: up to and without /models, as in "https://openrouter.ai/api/v1".
        key: sent as "Bearer KEY". Without it, no key is sent.
        key_env: the environment variable that the workers read the key from.

    Raises:
        ConfigError: `base_url` is not an http or https address.
        WorkerError: no list of models came back.
    """
    connections = Connections()
    endpoint = Endpoint(base_url.rstrip("/").removesuffix("/models"), key, connections.secrets)
    models, failures = await fetch_models(endpoint, connections)
    try:
        tables = [_table(model, endpoint, key_env) for model in models]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise failures.malformed(json.dumps(models).encode()) from None
    kept = tuple(table for table in tables if table is not None)
    return Catalogue(kept, len(tables) - len(kept))


async def fetch_models(endpoint: Endpoint, connections: Connections) -> tuple[list[Any], Failures]:
    """The list at an endpoint's /models, as it came, and what words a fault in it. The connections are closed.

    Raises:
        WorkerError: no list came back.
    """
    failures = Failures(endpoint.base_url, connections.secrets)
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            content = await _get(endpoint, connections, failures)
    except TimeoutError:
        raise failures.error(f"no reply within {_TIMEOUT_S:g} s", "timeout", retryable=True) from None
    except (aiohttp.ClientError, OSError) as error:
        raise failures.transport(error) from None
    finally:
        await connections.close()
    try:
        return list(json.loads(content)["data"]), failures
    except (ValueError, RecursionError, KeyError, TypeError):
        raise failures.malformed(content) from None


async def _get(endpoint: Endpoint, connections: Connections, failures: Failures) -> bytes:
    session = await connections.session()
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


def _table(model: Mapping[str, Any], endpoint: Endpoint, key_env: str | None) -> dict[str, Any] | None:
    """The worker table of a model, or None if it is left out."""
    price = _price(model.get("pricing"))
    form = model.get("architecture") or {}
    if price is None or "text" not in form.get("output_modalities", ["text"]):
        return None
    name = str(model["id"])
    table: dict[str, Any] = {
        "name": name,
        "kind": "openai",
        "model": name,
        "base_url": endpoint.base_url,
        "profile": str(model.get("name") or name),
        "price": price,
    }
    if endpoint.host == _OPENROUTER:
        # It may route to more expensive hosts than the list names, unless it is told not to.
        most = {"prompt": price["input"], "completion": price["output"]}
        table["extra"] = {"provider": {"max_price": most}}
    if key_env is not None:
        table["api_key_env"] = key_env
    if "image" in form.get("input_modalities", ()):
        table["sees"] = True
    length = model.get("context_length")
    if isinstance(length, int) and length > 0:
        table["context_tokens"] = length
    return table


def _price(pricing: Any) -> dict[str, float] | None:
    """Dollars per million tokens, or None if there is no usable price."""
    try:
        sent, written = float(pricing["prompt"]), float(pricing["completion"])
    except (KeyError, TypeError, ValueError):
        return None
    if not all(math.isfinite(price) and price >= 0 for price in (sent, written)):
        return None
    # Rounded: 0.00000025 times a million is a little off.
    return {"input": round(sent * _PER_MILLION, 6), "output": round(written * _PER_MILLION, 6)}
