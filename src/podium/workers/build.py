"""Turns a worker's spec into the worker: the one place that knows every kind.

Each kind is imported when it is asked for, so that a pool without endpoints loads no HTTP client.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from podium.errors import ConfigError, WorkerError
from podium.recordings.shelf import Shelf
from podium.workers.base import Worker
from podium.workers.connections import Connections
from podium.workers.scripted import ScriptedWorker
from podium.workers.secrets import Secrets, read_key
from podium.workers.spec import (
    AnySpec,
    CommandSpec,
    FunctionSpec,
    LiteLLMSpec,
    OpenAISpec,
    PodiumSpec,
    ReplaySpec,
    ScriptedFailure,
    ScriptedSpec,
    SpecialistSpec,
)
from podium.workers.tool_specs import CalculatorSpec, CodeSpec
from podium.workers.vote import DESCRIPTION, VoteWorker

TeamBuilder: TypeAlias = Callable[[PodiumSpec, Path], Worker]
"""From a team's spec and the folder that its paths are seen from."""


def build_worker(  # noqa: PLR0911 - one for each kind
    spec: AnySpec,
    connections: Connections | None = None,
    shelf: Shelf | None = None,
    *,
    folder: Path = Path(),
    teams: TeamBuilder | None = None,
) -> Worker:
    """The worker that `spec` describes.

    Args:
        spec: one `[[worker]]` of a pool file.
        connections: shared by the endpoints of a pool; None: each has its own.
        shelf: shared by the recorded models of a pool; None: paths are seen from the working folder.
        folder: what the paths of other kinds are seen from.
        teams: builds the workers that are whole teams, which live on a floor above; None: they are refused.

    Raises:
        ConfigError: a key that is not in the environment, a `base_url` that is not one, a recording that
            cannot be read or lacks the worker, a program or function that is not there, a team that cannot be opened.
    """
    connections = connections or Connections()
    if isinstance(spec, OpenAISpec):
        return _openai(spec, connections)
    if isinstance(spec, LiteLLMSpec):
        return _litellm(spec, connections.secrets)
    if isinstance(spec, CommandSpec):
        return _command(spec, connections.secrets, folder)
    if isinstance(spec, FunctionSpec):
        return _function(spec, connections.secrets, folder)
    if isinstance(spec, PodiumSpec):
        if teams is None:
            raise ConfigError(
                f"Worker {spec.name!r} is a team, and is not opened here; open the pool with "
                "podium.orchestrator.team.open_pool.",
                ("kind",),
            )
        return teams(spec, folder)
    if isinstance(spec, SpecialistSpec):
        return _specialist(spec)
    if isinstance(spec, ScriptedSpec):
        return _scripted(spec)
    if isinstance(spec, ReplaySpec):
        return _replay(spec, shelf or Shelf())
    if isinstance(spec, CalculatorSpec):
        return _calculator(spec)
    if isinstance(spec, CodeSpec):
        return _code(spec)
    return VoteWorker(profile=spec.to_profile(DESCRIPTION), limits=spec.limits, fallback=spec.fallback)


def _openai(spec: OpenAISpec, connections: Connections) -> Worker:
    from podium.workers.chat.client import ChatClient  # noqa: PLC0415
    from podium.workers.openai import OpenAIWorker  # noqa: PLC0415

    owner = f"Worker {spec.name!r}"
    key = read_key(spec.api_key_env, owner) if spec.api_key_env is not None else None
    secret_headers = {
        name: read_key(variable, owner, where=("headers_env", name))
        for name, variable in spec.headers_env.items()
    }
    try:
        client = ChatClient(
            spec.base_url,
            key,
            connections=connections,
            key_header=spec.key_header,
            query=spec.query,
            headers=spec.headers,
            secret_headers=secret_headers,
            max_tokens_key=spec.max_tokens_key,
        )
    except ConfigError as error:
        raise ConfigError(f"{owner}: {error}", ("base_url",)) from None
    return OpenAIWorker(
        spec.to_profile(),
        client,
        spec.model,
        limits=spec.limits,
        fallback=spec.fallback,
        system=spec.system,
        temperature=spec.temperature,
        extra=spec.extra,
        stream=spec.stream,
        send_seed=spec.send_seed,
    )


def _litellm(spec: LiteLLMSpec, secrets: Secrets) -> Worker:
    from podium.workers.litellm import LiteLLMWorker, check_installed  # noqa: PLC0415

    owner = f"Worker {spec.name!r}"
    try:
        check_installed()
    except ConfigError as error:
        raise ConfigError(f"{owner}: {error}", ("kind",)) from None
    key = read_key(spec.api_key_env, owner) if spec.api_key_env is not None else None
    for secret in (key, *_read_env(spec.env, owner).values()):
        secrets.add(secret or "")
    return LiteLLMWorker(
        spec.to_profile(),
        spec.model,
        key=key,
        base_url=spec.base_url,
        limits=spec.limits,
        fallback=spec.fallback,
        system=spec.system,
        temperature=spec.temperature,
        extra=spec.extra,
        scrub=secrets.scrub,
    )


def _command(spec: CommandSpec, secrets: Secrets, seen_from: Path) -> Worker:
    from podium.workers.command import CommandWorker, digests, find_program, kept_environment  # noqa: PLC0415

    owner = f"Worker {spec.name!r}"
    folder = (seen_from / spec.folder).absolute()
    if not folder.is_dir():
        raise ConfigError(f"{owner}: {folder} is not a folder; mend `folder`.", ("folder",))
    try:
        command = (find_program(spec.command[0], folder), *spec.command[1:])
    except ConfigError as error:
        raise ConfigError(f"{owner}: {error}", ("command",)) from None
    named = _read_env(spec.env, owner)
    for value in named.values():
        secrets.add(value)
    identity = {
        "kind": "command",
        "command": list(spec.command),
        "folder": str(folder),
        "files": digests(command, folder),
        "env": sorted(named),
        "output": spec.output,
        "max_tokens": spec.limits.max_tokens,
    }
    return CommandWorker(
        spec.to_profile(),
        command,
        folder=folder,
        environment=kept_environment(os.environ) | named,
        output=spec.output,
        limits=spec.limits,
        fallback=spec.fallback,
        scrub=secrets.scrub,
        identity=identity if spec.cache else None,
    )


def _function(spec: FunctionSpec, secrets: Secrets, seen_from: Path) -> Worker:
    from podium.workers.function import FunctionWorker, digest, find_function  # noqa: PLC0415

    owner = f"Worker {spec.name!r}"
    for value in _read_env(spec.env, owner).values():
        secrets.add(value)
    try:
        function = find_function(spec.callable, None if spec.path is None else seen_from / spec.path)
        worker = FunctionWorker(
            spec.to_profile(), function, limits=spec.limits, fallback=spec.fallback, scrub=secrets.scrub
        )
    except ConfigError as error:
        where = ("path",) if error.where == ("path",) else ("callable",)
        raise ConfigError(f"{owner}: {error}", where) from None
    if spec.cache:
        worker.identity = {
            "kind": "python",
            "callable": spec.callable,
            "file": digest(function),
            "seed": "seed" in worker.keywords,
            "max_tokens": spec.limits.max_tokens,
        }
    return worker


def _read_env(names: Iterable[str], owner: str) -> dict[str, str]:
    """The variables of a spec's `env`, with their values."""
    for name in names:
        if not name.isidentifier():  # Most likely the secret itself, so it is not repeated.
            raise ConfigError(
                f"{owner}: env holds what is not the name of an environment variable; give names, not values.",
                ("env",),
            )
        if name not in os.environ:
            raise ConfigError(
                f"{owner}: the environment variable {name} is not set; set it, or leave it out of env.",
                ("env",),
            )
    return {name: os.environ[name] for name in names}


def _specialist(spec: SpecialistSpec) -> Worker:
    from podium.workers.specialist import Specialist  # noqa: PLC0415

    return Specialist(
        spec.to_profile(),
        ability=spec.ability,
        seconds=spec.seconds,
        limits=spec.limits,
        fallback=spec.fallback,
    )


def _replay(spec: ReplaySpec, shelf: Shelf) -> Worker:
    from podium.workers.replay import ReplayWorker  # noqa: PLC0415

    return ReplayWorker(
        spec.to_profile(),
        shelf.open(spec.recording),
        spec.worker or spec.name,
        samples=spec.samples,
        assumed_output_tokens=spec.assumed_output_tokens,
        limits=spec.limits,
        fallback=spec.fallback,
    )


def _calculator(spec: CalculatorSpec) -> Worker:
    from podium.workers.calculator import DESCRIPTION, CalculatorWorker  # noqa: PLC0415

    return CalculatorWorker(profile=spec.to_profile(DESCRIPTION), limits=spec.limits, fallback=spec.fallback)


def _code(spec: CodeSpec) -> Worker:
    from podium.workers.code import DESCRIPTION, CodeWorker  # noqa: PLC0415

    return CodeWorker(
        profile=spec.to_profile(DESCRIPTION),
        seconds=spec.seconds,
        memory_mb=spec.memory_mb,
        allow_weak_sandbox=spec.allow_weak_sandbox,
        limits=spec.limits,
        fallback=spec.fallback,
    )


def _scripted(spec: ScriptedSpec) -> Worker:
    def reply(written: str | ScriptedFailure) -> str | WorkerError:
        if isinstance(written, str):
            return written
        return WorkerError(
            written.message,
            kind=written.error,
            retryable=written.retryable,
            retry_after_s=written.retry_after_s,
        )

    return ScriptedWorker(
        spec.name,
        {part: reply(written) for part, written in spec.replies.items()}
        if isinstance(spec.replies, dict)
        else [reply(written) for written in spec.replies],
        delay=spec.delay,
        profile=spec.to_profile(),
        limits=spec.limits,
        fallback=spec.fallback,
    )
