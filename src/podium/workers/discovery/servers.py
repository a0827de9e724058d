"""Looks for servers of models: Ollama, LM Studio, llama.cpp, vLLM, at their usual ports and at addresses of the user.

Every address is asked for the same lists at once, and the form of the lists shows which kind of server answers. Replies
without the form of a list of models do not count, since some servers answer 200 to any path.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlunsplit

import aiohttp

from podium.errors import ConfigError, UsageError
from podium.workers.chat.endpoint import Endpoint, split_address
from podium.workers.connections import Connections
from podium.workers.discovery import lists
from podium.workers.discovery.models import FoundServer

_USUAL_PORTS = (("LM Studio", 1234), ("llama.cpp", 8080), ("vLLM", 8000))
_OLLAMA_PORT = 11434
_USUAL_S, _NAMED_S, _DETAILS_S = 0.5, 5.0, 3.0
"""The time limits for a usual address, for an address that the user named, and for Ollama's details of models."""
_MAX_LIST_BYTES = 16 << 20
"""The most bytes of a list."""


class _Target(NamedTuple):
    """An address that is asked for its models."""

    root: str
    usual_kind: str
    """The kind of server that usually answers there."""
    limit_s: float


async def find_servers(
    urls: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> tuple[FoundServer, ...]:
    """Ask all usual addresses and `urls` at once, each only once. Servers at `urls` come first in the result.

    Args:
        urls: addresses with or without /v1, such as "http://127.0.0.1:18080/v1" or "gpu-1:8000".
        environ: OLLAMA_HOST says where Ollama listens, OLLAMA_CONTEXT_LENGTH which context it gives a model, and
            OLLAMA_MAX_LOADED_MODELS how many it holds at once.

    Raises:
        UsageError: one of `urls` is not an address.
    """
    targets: dict[str, _Target] = {}
    """The targets by their address with 127.0.0.1 for localhost."""
    for url in urls:
        targets.setdefault(_numeric(root := _root(url)), _Target(root, "server", _NAMED_S))
    named_count = len(targets)
    for kind, url in (
        ("Ollama", ollama_address(environ.get("OLLAMA_HOST", ""))),
        *((kind, f"http://127.0.0.1:{port}") for kind, port in _USUAL_PORTS),
    ):
        with suppress(UsageError):  # OLLAMA_HOST is no address, so there is no Ollama.
            targets.setdefault(_numeric(root := _root(url)), _Target(root, kind, _USUAL_S))
    connections = Connections()
    try:
        async with asyncio.TaskGroup() as group:
            probes = [
                group.create_task(_probe_server(connections, target, environ)) for target in targets.values()
            ]
    finally:
        await connections.close()
    return tuple(
        replace(probe.result(), is_named=number < named_count) for number, probe in enumerate(probes)
    )


def ollama_address(host: str) -> str:
    """The address that an OLLAMA_HOST such as "0.0.0.0", ":8080", "gpu-1:11434" or "https://host/path" names."""
    scheme, has_scheme, rest = host.strip().strip("\"'").rpartition("://")
    usual = {"http": 80, "https": 443}.get(scheme, _OLLAMA_PORT) if has_scheme else _OLLAMA_PORT
    authority, slash, path = rest.partition("/")
    address = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::(\d*))?", authority)
    if address is None:  # An IPv6 address without brackets.
        return f"{scheme or 'http'}://[{authority}]:{usual}{slash}{path}"
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(address[1], address[1])
    return f"{scheme or 'http'}://{name}:{address[2] or usual}{slash}{path}"


def _root(url: str) -> str:
    """The address before /v1 in a standard form, so that no server is asked twice."""
    written = url.strip() if "://" in url else f"http://{url.strip()}"
    try:
        parts = split_address(written)
    except ConfigError:
        raise UsageError(f"{url!r} is not an address such as http://127.0.0.1:8080/v1.") from None
    path = re.sub(r"(?:/v1)?(?:/chat/completions|/models)?/*$", "", parts.path)
    return urlunsplit((parts.scheme, parts.netloc.lower(), path, "", ""))


def _numeric(root: str) -> str:
    """The address with 127.0.0.1 for localhost, by which an address is asked only once. It is asked as it was given,
    since a server may listen at localhost's IPv6 address alone."""
    return re.sub(r"(?<=://)localhost(?=[:/]|$)", "127.0.0.1", root)


class _Server:
    """The lists of one server. Its endpoint is made as a worker's is, so that a worker can reach it too."""

    def __init__(self, connections: Connections, root: str) -> None:
        self._root = root
        self._endpoint = Endpoint(f"{root}/v1", None, connections)
        self.statuses: dict[str, int] = {}
        """The status of each path's answer."""

    async def get(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The JSON object at a path. It is empty if there is no object."""
        session = await self._endpoint.connections.session()
        try:
            async with session.request(
                "GET" if body is None else "POST",
                f"{self._root}{path}",
                json=body,
                allow_redirects=False,
                proxy=self._endpoint.proxy,
            ) as response:
                self.statuses[path] = response.status
                received = bytearray()
                async for piece in response.content.iter_any():
                    received += piece
                    if len(received) > _MAX_LIST_BYTES:
                        return {}
                body = json.loads(received) if response.status == 200 else {}
        except (aiohttp.ClientError, OSError, ValueError, RecursionError):
            return {}
        return body if isinstance(body, dict) else {}


async def _probe_server(connections: Connections, target: _Target, environ: Mapping[str, str]) -> FoundServer:
    root = target.root
    server = _Server(connections, root)
    answers: dict[str, Any] = {}

    async def ask(path: str) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(target.limit_s):
                answers[path] = await server.get(path)

    async with asyncio.TaskGroup() as group:
        for path in lists.PATHS:
            group.create_task(ask(path))
    reached = lists.read_lists(answers, root)
    kind = target.usual_kind if reached is None else reached.kind
    # Without its key, and while it loads its model, llama.cpp may give its list and nothing else.
    telling = "/props" if reached is not None and kind == lists.LLAMA_CPP else "/v1/models"
    status, problem = server.statuses.get(telling), None
    if status in (401, 403):
        problem = "it wants a key; write a team file with api_key_env by hand"
    elif status == 503:
        problem = "it is not ready, and may be loading its model; run podium init again later"
    elif reached is None:
        problem = "what answers there lists no models" if server.statuses else "nothing answers"
    if reached is None or problem is not None:
        return FoundServer(kind, root, problem=problem, answers=bool(server.statuses))
    if kind == lists.OLLAMA:
        return await _with_details(server, reached, answers[lists.TAGS], environ)
    return reached


async def _with_details(
    server: _Server, reached: FoundServer, tags: Mapping[str, Any], environ: Mapping[str, str]
) -> FoundServer:
    """The server with Ollama's details of each model. If they do not come in time, with what the names say."""
    loaded: Mapping[str, int | None] = {}
    shown: list[Any] = [{} for _ in reached.models]

    async def show(position: int, name: str) -> None:
        shown[position] = await server.get("/api/show", {"model": name})

    with suppress(TimeoutError):
        async with asyncio.timeout(_DETAILS_S):
            loaded = lists.ollama_contexts(await server.get("/api/ps"), tags)
            async with asyncio.TaskGroup() as group:
                for position, model in enumerate(reached.models):
                    group.create_task(show(position, model.id))
    default, most_loaded = (
        int(value) if (value := environ.get(name, "")).isdecimal() else None
        for name in ("OLLAMA_CONTEXT_LENGTH", "OLLAMA_MAX_LOADED_MODELS")
    )
    chats, others = [], []
    for model, details in zip(reached.models, shown, strict=True):
        detailed = lists.with_ollama_details(model, details, loaded, default, most_loaded)
        if detailed is None:
            others.append(model.id)
        else:
            chats.append(detailed)
    return replace(reached, models=tuple(chats), left_out=(*reached.left_out, *others))
