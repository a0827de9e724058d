"""A worker of the kind openai with any profile, for an endpoint that a test has."""

from __future__ import annotations

from typing import Any

from podium.types import Profile
from podium.workers.chat.endpoint import Endpoint
from podium.workers.connections import Connections
from podium.workers.openai import OpenAIWorker
from podium.workers.spec import OpenAISpec


class ChatClient:
    """An endpoint, and the workers that were made for it, by their settings. `parts` are those of `Endpoint`."""

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        connections: Connections | None = None,
        max_tokens_key: Any = None,
        **parts: Any,
    ) -> None:
        self.endpoint = Endpoint(base_url, key, connections or Connections(), **parts)
        self.max_tokens_key = max_tokens_key
        self.workers: dict[str, OpenAIWorker] = {}

    async def close(self) -> None:
        await self.endpoint.connections.close()


def chat_worker(profile: Profile, client: ChatClient, model: str = "m", **settings: Any) -> OpenAIWorker:
    """The worker; `settings` are keys of its table in a team file."""
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
    settled = spec.model_dump_json()
    if settled not in client.workers:
        client.workers[settled] = OpenAIWorker(spec, client.endpoint, model, client.max_tokens_key)
    return client.workers[settled]
