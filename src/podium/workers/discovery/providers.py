"""Known providers: the variables that hold their keys, their addresses, and some of their models with list prices.

Nothing is sent to a provider before `list_models` is called. Prices change and models are retired: a model is proposed
only if the provider still lists it, and the user has to check the price.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import SecretStr

from podium.errors import WorkerError
from podium.types import Price
from podium.workers.chat.endpoint import Endpoint
from podium.workers.connections import Connections
from podium.workers.discovery.catalogue import fetch_models
from podium.workers.discovery.models import FoundModel, FoundServer, parameters_in


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
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers for listing models."""


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A variable of the environment that holds a provider's key."""

    provider: Provider
    env: str
    value: SecretStr


_GPT_5 = "Strong at code, maths and planning; thinks first."
_GPT_MINI = "Good at maths, code and planning, cheap; thinks first."
_SONNET, _HAIKU = "Strong at code and at following instructions; dear.", "Good at most things; quick."
_GEMINI_PRO, _GEMINI_FLASH = (
    "Strong at maths, science and long texts.",
    "Good at facts, long texts and languages; quick.",
)
_DEEPSEEK = "Good at code and maths; cheap."
_LLAMA_70B = "Fair at everything; quick and cheap."
PROVIDERS = (
    Provider(
        "OpenAI",
        ("OPENAI_API_KEY",),
        "https://api.openai.com/v1",
        (
            KnownModel("gpt-5", 1.25, 10.0, _GPT_5, 400_000, sees=True, thinks=True),
            KnownModel("gpt-5-mini", 0.25, 2.0, _GPT_MINI, 400_000, sees=True, thinks=True),
        ),
    ),
    Provider(
        "Anthropic",
        ("ANTHROPIC_API_KEY",),
        "https://api.anthropic.com/v1",
        (
            KnownModel("claude-sonnet-4-5-20250929", 3.0, 15.0, _SONNET, 200_000, sees=True),
            KnownModel("claude-haiku-4-5-20251001", 1.0, 5.0, _HAIKU, 200_000, sees=True),
        ),
        key_header="x-api-key",
        headers=(("anthropic-version", "2023-06-01"),),
    ),
    Provider(
        "Google",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "https://generativelanguage.googleapis.com/v1beta/openai",
        (
            KnownModel("gemini-2.5-pro", 1.25, 10.0, _GEMINI_PRO, 1_048_576, sees=True, thinks=True),
            KnownModel("gemini-2.5-flash", 0.3, 2.5, _GEMINI_FLASH, 1_048_576, sees=True, thinks=True),
        ),
    ),
    Provider(
        "OpenRouter",
        ("OPENROUTER_API_KEY",),
        "https://openrouter.ai/api/v1",
        (
            KnownModel("openai/gpt-5-mini", 0.25, 2.0, _GPT_MINI, 400_000, sees=True, thinks=True),
            KnownModel("deepseek/deepseek-chat-v3.1", 0.6, 1.7, _DEEPSEEK, 131_072),
            KnownModel("meta-llama/llama-3.3-70b-instruct", 0.4, 0.8, _LLAMA_70B, 131_072),
        ),
    ),
    Provider(
        "Mistral",
        ("MISTRAL_API_KEY",),
        "https://api.mistral.ai/v1",
        (
            KnownModel("mistral-medium-latest", 0.4, 2.0, "Good at code and languages.", 131_072, sees=True),
            KnownModel("mistral-small-latest", 0.1, 0.3, "Fair at most things; cheap.", 131_072, sees=True),
        ),
    ),
    Provider(
        "DeepSeek",
        ("DEEPSEEK_API_KEY",),
        "https://api.deepseek.com/v1",
        (
            KnownModel("deepseek-reasoner", 0.56, 1.68, "Strong at maths; slow.", 131_072, thinks=True),
            KnownModel("deepseek-chat", 0.56, 1.68, _DEEPSEEK, 131_072),
        ),
    ),
    Provider(
        "Groq",
        ("GROQ_API_KEY",),
        "https://api.groq.com/openai/v1",
        (
            KnownModel("openai/gpt-oss-120b", 0.15, 0.75, "Good at maths and code.", 131_072, thinks=True),
            KnownModel("llama-3.3-70b-versatile", 0.59, 0.79, _LLAMA_70B, 131_072),
        ),
    ),
    Provider(
        "xAI",
        ("XAI_API_KEY",),
        "https://api.x.ai/v1",
        (
            KnownModel(
                "grok-4", 3.0, 15.0, "Strong at maths and facts; dear.", 256_000, sees=True, thinks=True
            ),
        ),
    ),
    Provider(
        "Together",
        ("TOGETHER_API_KEY",),
        "https://api.together.xyz/v1",
        (KnownModel("meta-llama/Llama-3.3-70B-Instruct-Turbo", 0.88, 0.88, _LLAMA_70B, 131_072),),
    ),
)


def found_keys(environ: Mapping[str, str] = os.environ) -> tuple[FoundKey, ...]:
    """The keys of known providers that are set, one for each provider. Nothing is sent to anybody."""
    return tuple(
        FoundKey(provider, env, SecretStr(environ[env].strip()))
        for provider in PROVIDERS
        for env in [next((name for name in provider.keys if environ.get(name, "").strip()), None)]
        if env is not None
    )


async def list_models(key: FoundKey) -> FoundServer:
    """Ask a provider for its list of models, which costs nothing.

    Returns:
        the known models that the provider lists. The strongest model comes first. If there is none, `problem` says why.
    """
    provider = key.provider
    connections = Connections()
    endpoint = Endpoint(
        provider.base_url,
        key.value.get_secret_value(),
        connections.secrets,
        key_header=provider.key_header,
        headers=dict(provider.headers),
    )
    try:
        rows, _ = await fetch_models(endpoint, connections)
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
