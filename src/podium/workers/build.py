"""Turns a worker's spec into the worker: the one place that knows every kind.

Each kind is imported when it is asked for, so that a pool without endpoints loads no HTTP client.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podium.errors import ConfigError, WorkerError
from podium.recordings.shelf import Shelf
from podium.workers.base import Worker
from podium.workers.scripted import ScriptedWorker
from podium.workers.spec import (
    AnySpec,
    OpenAISpec,
    ReplaySpec,
    ScriptedFailure,
    ScriptedSpec,
    SpecialistSpec,
)
from podium.workers.vote import DESCRIPTION, VoteWorker

if TYPE_CHECKING:
    from podium.workers.connections import Connections


def build_worker(spec: AnySpec, connections: Connections | None = None, shelf: Shelf | None = None) -> Worker:
    """The worker that `spec` describes.

    Args:
        spec: one `[[worker]]` of a pool file.
        connections: shared by the endpoints of a pool; None: each has its own.
        shelf: shared by the recorded models of a pool; None: paths are seen from the working folder.

    Raises:
        ConfigError: a key that is not in the environment, a `base_url` that is not one, or a recording that
            cannot be read or lacks the worker.
    """
    if isinstance(spec, OpenAISpec):
        return _openai(spec, connections)
    if isinstance(spec, SpecialistSpec):
        return _specialist(spec)
    if isinstance(spec, ScriptedSpec):
        return _scripted(spec)
    if isinstance(spec, ReplaySpec):
        return _replay(spec, shelf or Shelf())
    return VoteWorker(profile=spec.to_profile(DESCRIPTION), limits=spec.limits, fallback=spec.fallback)


def read_key(variable: str, needed_by: str, environment: Mapping[str, str] | None = None) -> str:
    """The secret in an environment variable (by default of this process).

    Raises:
        ConfigError: it is not set, is empty, or could not be sent as a header.
    """
    key = (os.environ if environment is None else environment).get(variable, "").strip()
    if not variable.isidentifier():
        # Most likely the key itself, so it is not repeated.
        raise ConfigError(f"{needed_by}: api_key_env must be the name of an environment variable, not a key.")
    if not key:
        raise ConfigError(
            f"{needed_by}: the environment variable {variable} is not set; put the key there, or leave "
            "api_key_env out where none is needed."
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(f"{needed_by}: the environment variable {variable} does not hold a usable key.")
    return key


def _openai(spec: OpenAISpec, connections: Connections | None) -> Worker:
    from podium.workers.openai import ChatClient, OpenAIWorker  # noqa: PLC0415

    owner = f"Worker {spec.name!r}"
    key = read_key(spec.api_key_env, owner) if spec.api_key_env is not None else None
    try:
        client = ChatClient(spec.base_url, key, connections=connections)
    except ConfigError as error:
        raise ConfigError(f"{owner}: {error}") from None
    return OpenAIWorker(
        spec.to_profile(),
        client,
        spec.model,
        limits=spec.limits,
        fallback=spec.fallback,
        system=spec.system,
        temperature=spec.temperature,
        extra=spec.extra,
    )


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


def _scripted(spec: ScriptedSpec) -> Worker:
    def reply(written: str | ScriptedFailure) -> str | WorkerError:
        if isinstance(written, str):
            return written
        return WorkerError(
            written.message, kind=written.error, passing=written.passing, retry_after_s=written.retry_after_s
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
