"""Known providers: the variables that hold their keys, their addresses, and some of their models with list prices.

Nothing is sent to a provider before `list_models` is called. Prices change and models are retired: a model is proposed
only if the provider still lists it, and the user has to check the price.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pydantic import SecretStr, TypeAdapter

from podium.errors import WorkerError
from podium.types import Price
from podium.workers.chat.endpoint import Endpoint
from podium.workers.connections import Connections
from podium.workers.discovery.catalogue import fetch_models
from podium.workers.discovery.models import FoundModel, FoundServer, parameters_in

_FILE = Path(__file__).parents[2] / "assets" / "providers.toml"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model of a provider with its list price, in dollars per million tokens."""

    id: str
    input: float
    output: float
    about: str
    context_tokens: int
    sees: bool = False
    thinks: bool = False


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider and its models. The strongest model comes first."""

    name: str
    keys: tuple[str, ...]
    """The environment variables in which users keep the provider's key. The usual variable comes first."""
    base_url: str
    models: tuple[KnownModel, ...]
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
        rows, _ = await fetch_models(endpoint)
    except WorkerError as error:
        return FoundServer(provider.name, provider.base_url, problem=str(error))
    names = {str(row.get("id", "")).removeprefix("models/") for row in rows if isinstance(row, dict)}
    models = tuple(_found(model, key) for model in provider.models if model.id in names)
    problem = None if models else "it lists no model whose price Podium knows; write a pool file by hand"
    return FoundServer(provider.name, provider.base_url, models, problem=problem)


def _found(model: KnownModel, key: FoundKey) -> FoundModel:
    return FoundModel(
        model.id,
        key.provider.base_url,
        key.provider.name,
        parameters=parameters_in(model.id),
        context_tokens=model.context_tokens,
        concurrency=8,
        sees=model.sees,
        thinks=model.thinks,
        price=Price(input=model.input, output=model.output),
        key_env=key.env,
        about=model.about,
    )
