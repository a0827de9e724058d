"""A worker of the kind openai with any profile, over a client that a test has."""

from __future__ import annotations

from typing import Any

from podium.types import Profile
from podium.workers.chat.client import ChatClient
from podium.workers.openai import OpenAIWorker
from podium.workers.spec import OpenAISpec


def chat_worker(profile: Profile, client: ChatClient, model: str = "m", **settings: Any) -> OpenAIWorker:
    """The worker; `settings` are keys of its table in a pool file."""
    spec = OpenAISpec(
        kind="openai",
        name=profile.name,
        profile=profile.description,
        skills=profile.skills,
        price=settings.pop("price", profile.price),
        latency=profile.latency_s,
        context_tokens=profile.context_tokens,
        sees=profile.sees,
        calls_tools=profile.calls_tools,
        base_url=client.endpoint.base_url,
        model=model,
        **{key: value for key, value in settings.items() if value is not None},
    )
    return OpenAIWorker(spec, client, model)
