"""Builds a worker from its spec, by a table of kinds: each row has a spec class and a build function.

Another package adds a kind by an entry point of the group "podium.workers", whose value is a `WorkerKind`. The module
of a kind is imported when the first worker of that kind is built, so a pool without endpoints loads no HTTP client.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from podium.config.open_union import OpenUnion
from podium.errors import ConfigError, WorkerError
from podium.plugins import PluginGroup
from podium.workers.base import Request, Worker
from podium.workers.redaction import Secrets, read_key
from podium.workers.scripted import ScriptedWorker
from podium.workers.spec import (
    CalculatorSpec,
    CodeSpec,
    CommandSpec,
    FunctionSpec,
    GgufSpec,
    LiteLLMSpec,
    OpenAISpec,
    ReplaySpec,
    ScriptedFailure,
    ScriptedSpec,
    VoteSpec,
    WorkerSpec,
)
from podium.workers.vote import VoteWorker

if TYPE_CHECKING:
    from podium.workers.connections import Connections
    from podium.workers.gguf import GgufServers


@dataclass(frozen=True)
class BuildContext:
    """What the workers of one pool share while they are built."""

    secrets: Secrets = field(default_factory=Secrets.of_proxies)
    folder: Path = Path()
    """Paths in specs are relative to this folder."""

    @cached_property
    def connections(self) -> Connections:
        """The connections of workers behind endpoints."""
        from podium.workers.connections import Connections  # noqa: PLC0415

        return Connections(self.secrets)

    @cached_property
    def gguf_servers(self) -> GgufServers:
        """The processes that serve the pool's GGUF files."""
        from podium.workers.gguf import GgufServers  # noqa: PLC0415

        return GgufServers()


@dataclass(frozen=True, slots=True)
class WorkerKind:
    """One kind of worker. Its name is that of the entry point, or the key in `BUILT_IN`."""

    spec: type[WorkerSpec]
    """The class of the worker's table in a team file."""
    build: Callable[[Any, BuildContext], Worker]
    """Builds the worker from such a spec. Raises `ConfigError`, whose `where` is the key at fault."""


INSTALLED_KINDS = PluginGroup[WorkerKind]("podium.workers", "kind of worker", WorkerKind)
"""Kinds of workers that installed packages add."""


def build_worker(
    spec: WorkerSpec, context: BuildContext | None = None, further: Mapping[str, WorkerKind] | None = None
) -> Worker:
    """The worker that `spec` describes, whose kind is built in, installed, or one of `further`.

    Raises:
        ConfigError: something that the worker needs is missing or cannot be used, such as its key, program or file.
    """
    kind = (further or {}).get(spec.kind) or _find_kind(spec.kind)
    assert kind is not None
    try:
        return kind.build(spec, context or BuildContext())
    except ConfigError as error:
        raise ConfigError(f"Worker {spec.name!r}: {error}", error.where) from None


class UnavailableWorker(Worker):
    """Stands for a worker that could not be built, in a pool that is only listed or checked. Every call fails."""

    def __init__(self, spec: WorkerSpec, reason: ConfigError) -> None:
        self.profile, self.limits, self.fallback = spec.to_profile(), spec.limits, spec.fallback
        self.identity = {"kind": spec.kind}
        self.traits = spec.traits
        self.reason = str(reason).removeprefix(f"Worker {spec.name!r}: ")

    async def answer(self, request: Request) -> NoReturn:
        """Fail, with the reason for which the worker could not be built.

        Raises:
            WorkerError: always.
        """
        del request
        raise WorkerError(self.reason, kind="unready")


def _build_openai(spec: OpenAISpec, context: BuildContext) -> Worker:
    from podium.workers.chat.endpoint import Endpoint  # noqa: PLC0415
    from podium.workers.openai import OpenAIWorker  # noqa: PLC0415

    endpoint = Endpoint(
        spec.base_url,
        None if spec.api_key_env is None else read_key(spec.api_key_env),
        context.connections,
        key_header=spec.key_header,
        query=spec.query,
        headers=spec.headers,
        secret_headers={
            name: read_key(variable, where=("headers_env", name))
            for name, variable in spec.headers_env.items()
        },
    )
    return OpenAIWorker(spec, endpoint, spec.model, spec.max_tokens_key)


def _build_gguf(spec: GgufSpec, context: BuildContext) -> Worker:
    from podium.workers.gguf import build_gguf  # noqa: PLC0415

    return build_gguf(spec, context.folder, context.gguf_servers, context.connections)


def _build_litellm(spec: LiteLLMSpec, context: BuildContext) -> Worker:
    from podium.workers.litellm import LiteLLMWorker, check_installed  # noqa: PLC0415

    check_installed()
    key = None if spec.api_key_env is None else read_key(spec.api_key_env)
    context.secrets.add(key or "")
    _read_env(spec.env, context.secrets)
    return LiteLLMWorker(spec, context.secrets, key)


def _build_command(spec: CommandSpec, context: BuildContext) -> Worker:
    from podium.workers.command import CommandWorker  # noqa: PLC0415

    folder = (context.folder / spec.folder).absolute()
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder; correct `folder`.", ("folder",))
    return CommandWorker(spec, folder, _read_env(spec.env, context.secrets), context.secrets.scrub)


def _build_function(spec: FunctionSpec, context: BuildContext) -> Worker:
    from podium.workers.function import FunctionWorker, find_function, function_digest  # noqa: PLC0415

    _read_env(spec.env, context.secrets)
    try:
        function = find_function(spec.callable, None if spec.path is None else context.folder / spec.path)
        worker = FunctionWorker(
            spec.to_profile(), function, limits=spec.limits, fallback=spec.fallback, secrets=context.secrets
        )
    except ConfigError as error:
        raise ConfigError(str(error), error.where or ("callable",)) from None
    if spec.cache:
        worker.identity = {
            "kind": "python",
            "callable": spec.callable,
            "file": function_digest(function),
            "seed": "seed" in worker.keywords,
            "max_tokens": spec.limits.max_tokens,
        }
    return worker


def _read_env(names: Iterable[str], secrets: Secrets) -> dict[str, str]:
    """The environment variables that a spec names in `env`, with their values, which are added to `secrets`."""
    for name in names:
        if not name.isidentifier():
            # The name is most likely the secret itself, so the message does not repeat it.
            raise ConfigError(
                "env contains an item that is no name of an environment variable; give names, not values.",
                ("env",),
            )
        if name not in os.environ:
            raise ConfigError(
                f"the environment variable {name} is not set; set it, or leave it out of env.", ("env",)
            )
        secrets.add(os.environ[name])
    return {name: os.environ[name] for name in names}


def _build_replay(spec: ReplaySpec, context: BuildContext) -> Worker:
    from podium.recordings import Recording  # noqa: PLC0415
    from podium.workers.replay import ReplayWorker  # noqa: PLC0415

    return ReplayWorker(spec, Recording.open(context.folder / spec.recording))


def _build_calculator(spec: CalculatorSpec, _: BuildContext) -> Worker:
    from podium.workers.calculator import CalculatorWorker  # noqa: PLC0415

    return CalculatorWorker(spec)


def _build_code(spec: CodeSpec, _: BuildContext) -> Worker:
    from podium.workers.code import CodeWorker  # noqa: PLC0415

    return CodeWorker(spec)


def _build_scripted(spec: ScriptedSpec, _: BuildContext) -> Worker:
    def reply(written: str | ScriptedFailure) -> str | WorkerError:
        if isinstance(written, str):
            return written
        how = written.model_dump(include={"retryable", "retry_after_s"})
        return WorkerError(written.message, kind=written.error, **how)

    replies = spec.replies
    return ScriptedWorker(
        spec.name,
        {part: reply(written) for part, written in replies.items()}
        if isinstance(replies, dict)
        else [reply(written) for written in replies],
        delay=spec.delay,
        profile=spec.to_profile(),
        limits=spec.limits,
        fallback=spec.fallback,
    )


BUILT_IN: Mapping[str, WorkerKind] = MappingProxyType(
    {
        "openai": WorkerKind(OpenAISpec, _build_openai),
        "gguf": WorkerKind(GgufSpec, _build_gguf),
        "litellm": WorkerKind(LiteLLMSpec, _build_litellm),
        "command": WorkerKind(CommandSpec, _build_command),
        "python": WorkerKind(FunctionSpec, _build_function),
        "scripted": WorkerKind(ScriptedSpec, _build_scripted),
        "replay": WorkerKind(ReplaySpec, _build_replay),
        "vote": WorkerKind(VoteSpec, lambda spec, _: VoteWorker(spec=spec)),
        "calculator": WorkerKind(CalculatorSpec, _build_calculator),
        "code": WorkerKind(CodeSpec, _build_code),
    }
)
"""The kinds that come with Podium. `podium.team.team_file` adds teams ("podium") and local models ("local")."""


def _find_kind(name: str) -> WorkerKind | None:
    return BUILT_IN.get(name) or INSTALLED_KINDS.find(name)


def spec_union(further: Mapping[str, type[WorkerSpec]] = MappingProxyType({})) -> OpenUnion:
    """The annotation of a worker's table, whose kind is built in, installed, or one of `further`."""

    def find(name: str) -> type[WorkerSpec] | None:
        kind = None if name in further else _find_kind(name)
        return further.get(name) if kind is None else kind.spec

    return OpenUnion("kind", find, lambda: (*BUILT_IN, *further))


AnySpec = Annotated[WorkerSpec, spec_union()]
"""A worker's table, of any kind that is built in or installed."""
