"""The models of paid endpoints: of known providers whose keys are in the environment, and of any list with prices.

A known provider's models come from a shipped file with list prices. A model is proposed only if the provider still
lists it, and the user has to check the price. Any other list has to have OpenRouter's form, where a price is a text of
dollars per token, such as {"prompt": "0.00000025", "completion": "0.000002"}.
"""

from __future__ import annotations

import asyncio
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
from pydantic import SecretStr, TypeAdapter

from podium.errors import WorkerError
from podium.types import Price
from podium.workers.chat.endpoint import Endpoint
from podium.workers.chat.failures import Failures, read_error_body
from podium.workers.connections import Connections
from podium.workers.discovery.models import FoundModel, FoundServer, parameters_in

_FILE = Path(__file__).parents[2] / "assets" / "providers.toml"
_MAX_LIST_BYTES = 64 << 20
"""The most bytes of a list."""
_TIMEOUT_S = 60.0
_CONCURRENCY = 8
"""How many questions a known provider is asked at once."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider and its models. The strongest model comes first."""

    name: str
    keys: tuple[str, ...]
    """The environment variables in which users keep the provider's key. The usual variable comes first."""
    base_url: str
    models: tuple[FoundModel, ...]
    key_header: str | None = None
    """The header that carries the key when models are listed. Default: Authorization."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers for listing models."""


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A variable of the environment that holds a provider's key."""

    provider: Provider
    env: str
    value: SecretStr


@cache
def known_providers() -> tuple[Provider, ...]:
    """The providers of the shipped file."""
    tables = tomllib.loads(_FILE.read_text(encoding="utf-8"))["provider"]
    return TypeAdapter(tuple[Provider, ...]).validate_python(tables)


def found_keys(environ: Mapping[str, str] = os.environ) -> tuple[FoundKey, ...]:
    """The keys of known providers that are set, one for each provider. Nothing is sent to anybody."""
    return tuple(
        FoundKey(provider, env, SecretStr(environ[env].strip()))
        for provider in known_providers()
        for env in [next((name for name in provider.keys if environ.get(name, "").strip()), None)]
        if env is not None
    )


async def list_models(key: FoundKey) -> FoundServer:
    """Ask a provider for its list of models, which costs nothing.

    Returns:
        the known models that the provider lists. The strongest model comes first. If there is none, `problem` says why.
    """
    provider = key.provider
    endpoint = Endpoint(
        provider.base_url,
        key.value.get_secret_value(),
        Connections(),
        key_header=provider.key_header,
        headers=provider.headers,
    )
    try:
        rows, _ = await _fetch_models(endpoint)
    except WorkerError as error:
        return FoundServer(provider.name, provider.base_url, problem=str(error))
    names = {str(row.get("id", "")).removeprefix("models/") for row in rows if isinstance(row, dict)}
    models = tuple(
        replace(
            model,
            base_url=provider.base_url,
            server=provider.name,
            parameters=parameters_in(model.id),
            concurrency=_CONCURRENCY,
            key_env=key.env,
        )
        for model in provider.models
        if model.id in names
    )
    problem = None if models else "it lists no model whose price Podium knows; write a team file by hand"
    return FoundServer(provider.name, provider.base_url, models, problem=problem)


async def read_catalogue(base_url: str, key: str | None, key_env: str | None) -> FoundServer:
    """Ask an endpoint for its models. Those without a price, with a negative price (OpenRouter's routers, whose price
    depends on the question), or that write no text, are left out.

    Args:
        base_url: up to and without /models, as in "https://openrouter.ai/api/v1".
        key: the key that is sent as "Bearer KEY". If it is None, no key is sent.
        key_env: the environment variable that the workers read the key from.

    Raises:
        ConfigError: `base_url` is not an http or https address.
        WorkerError: no list of models came back.
    """
    endpoint = Endpoint(base_url.rstrip("/").removesuffix("/models"), key, Connections())
    rows, failures = await _fetch_models(endpoint)
    try:
        found = {str(row["id"]): _priced_model(row, endpoint, key_env) for row in rows}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise failures.malformed(json.dumps(rows).encode()) from None
    models = tuple(model for model in found.values() if model is not None)
    left_out = tuple(name for name, model in found.items() if model is None)
    return FoundServer(endpoint.host, endpoint.base_url, models, left_out)


def _priced_model(row: Mapping[str, Any], endpoint: Endpoint, key_env: str | None) -> FoundModel | None:
    """A model of a list in OpenRouter's form. None if it is left out."""
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


async def _fetch_models(endpoint: Endpoint) -> tuple[list[Any], Failures]:
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
