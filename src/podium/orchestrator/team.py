"""A team as one worker: a pool and a planner of its own, within the limits of one call.

`open_pool` opens pools that may contain teams; `load_pool` of `podium.workers.pool` knows no teams. A team has its own
dispatcher, so it shares neither limits nor the response cache with the outer pool, which pays for it as for any worker.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator

from podium.baselines import find_baseline
from podium.errors import ConfigError, UsageError, WorkerError
from podium.executor import ExecutionSettings, StepText
from podium.executor.ledger import SpendLimit
from podium.orchestrator.events import Event, QuestionEnded
from podium.orchestrator.orchestrator import Orchestrator
from podium.orchestrator.planner_settings import PlannerSettings
from podium.shipped import shipped_checkpoint
from podium.trace import Trace
from podium.types import Budget, Limits, Message, Price, Profile, ProviderState, Question
from podium.workers.base import Reply, Request, Worker
from podium.workers.build import BuildContext, WorkerKind
from podium.workers.pool import (
    Pool,
    ReadPool,
    has_paid_workers,
    has_real_workers,
    load_pool,
    pool_file,
)
from podium.workers.spec import WorkerSpec

if TYPE_CHECKING:
    from podium.orchestrator.planning import OpenedPlanner

_MAX_DEPTH = 3
"""The most pools within one another."""
_TEAM = "podium_team"
"""The key under which a team's provider state has that of its own worker."""
_TIME_SHARE = 0.95
"""The share of a call's time that the team has for its question, so that it can return an answer before the timeout."""


class TeamSpec(WorkerSpec, PlannerSettings):
    """A team in a pool file: another pool with a planner of its own."""

    kind: Literal["podium"]
    limits: Limits = Limits(retries=0)
    """`timeout` and `max_usd` are the team's own budget for a question."""
    pool: str = Field(min_length=1)
    """The pool of its workers: a TOML file, relative to the outer pool file's folder, or a shipped pool's name."""
    rounds: int | None = Field(default=None, ge=1)
    """The most plans for one question. None: as many as its Conductor was trained with, or else 1."""
    max_steps: int | None = Field(default=None, ge=1)
    """The most steps of one plan. None: as many as its Conductor was trained with, or else 5."""
    early_stop: bool = False
    """Whether a vote of its plans calls no more workers once its winner is certain."""
    cache: bool = False
    """Whether a response cache may keep its answers, so that the same messages get the same answer."""

    @field_validator("price")
    @classmethod
    def _has_no_price(cls, price: Price) -> Price:
        if price != Price():
            raise ValueError("a team costs what its workers cost; leave its price out.")
        return price


class TeamWorker:
    """A worker whose answers an orchestrator gives.

    Args:
        profile: as for any worker, but without a price: a call costs what its workers and its planner cost.
        orchestrator: answers each call within its own budget. Its pool is closed with this worker.
        opened: its planner, if that has connections, which are closed with this worker too.
        limits, fallback: as for any worker. A dollar budget reserves `limits.max_usd` before a call; without it, each
            call that the team makes is paid from the budget of the question that it works for.
        identity: as for any worker; None: its answers are not cached.
    """

    def __init__(
        self,
        profile: Profile,
        orchestrator: Orchestrator,
        *,
        opened: OpenedPlanner | None = None,
        limits: Limits | None = None,
        fallback: str | None = None,
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        self.profile = profile
        self.orchestrator = orchestrator
        self.limits = limits or Limits(retries=0)
        self.fallback = fallback
        self.identity = identity
        self.opened = opened
        self.simulated = not has_real_workers(orchestrator.pool) and (
            opened is None or opened.release is None
        )
        """Whether all of its workers are simulated, and its planner calls no endpoint."""
        self.runs_here = not has_paid_workers(orchestrator.pool) and (
            opened is None or opened.release is None
        )
        """Whether no call of its workers or its planner costs money."""

    def __repr__(self) -> str:
        return f"TeamWorker({self.profile.name!r}, {self.orchestrator.planner.name!r}, {self.orchestrator.pool!r})"

    async def answer(self, request: Request) -> Reply:
        """Answer the last user message; the messages before it are the question's history.

        Raises:
            WorkerError: of kind "exhausted" if the team has no answer, "protocol" if it cannot take this request.
        """
        return await self.answer_within(request, ())

    async def answer_within(self, request: Request, accounts: Sequence[SpendLimit]) -> Reply:
        """As `answer`; `accounts` allow and pay each call that the team makes."""
        question = _question(request, self.profile.name)
        on_text = request.on_text

        spent: Trace | None = None

        def observe(event: Event) -> None:
            nonlocal spent
            if on_text is not None and isinstance(event, StepText) and not event.reasoning:
                on_text(event.text)
            elif isinstance(event, QuestionEnded):
                spent = event.trace

        try:
            trace = await self.orchestrator.answer(
                question,
                seed=request.seed,
                sample=request.sample,
                on_event=observe,
                streams=on_text is not None,
                accounts=accounts,
            )
        except asyncio.CancelledError as error:
            if spent is not None:
                vars(error).update(usage=spent.usage, cost_usd=spent.cost_usd)
            raise
        except UsageError as error:
            raise WorkerError(f"The team cannot take this question: {error}", kind="protocol") from None
        if trace.answer is None:
            raise WorkerError(
                f"The team has no answer. {trace.error}",
                kind="exhausted",
                usage=trace.usage,
                cost_usd=trace.cost_usd,
            )
        simulated = any(span.simulated_s is not None for span in trace.spans)
        return Reply(
            trace.answer,
            trace.usage,
            latency_s=trace.critical_path_s if simulated else None,
            cost_usd=trace.cost_usd,
            tool_calls=trace.tool_calls,
            provider_state=_nested_state(trace),
            nested=trace,
        )

    @property
    def names(self) -> frozenset[str]:
        """The workers of its pool, and of the teams in it."""
        pool = self.orchestrator.pool
        within = (worker.names for worker in pool if isinstance(worker, TeamWorker))
        return frozenset(pool.names).union(*within)

    def without(self, names: Collection[str]) -> TeamWorker | None:
        """The same team, which calls no worker of these names, nor do the teams in it; None: nobody is left in one."""
        if self.names.isdisjoint(names):
            return self
        full = self.orchestrator
        kept = without(full.pool, names)
        if kept is None:
            return None
        return TeamWorker(
            self.profile,
            Orchestrator(
                full.planner,
                kept,
                budget=full.budget,
                max_steps=full.max_steps,
                settings=full.settings,
                dispatcher=full.dispatcher,
                plan_fallback=full.plan_fallback,
            ),
            opened=self.opened,
            limits=self.limits,
            fallback=self.fallback,
            identity=None if self.identity is None else {**self.identity, "without": sorted(names)},
        )

    async def close(self) -> None:
        """Close the connections of its workers and its planner. Calling twice is fine."""
        try:
            await self.orchestrator.pool.close()
        finally:
            if self.opened is not None:
                await self.opened.close()


def without(pool: Pool, names: Collection[str]) -> Pool | None:
    """The pool without workers of these names, also in its teams; the pool itself if it has none; None: all are left
    out."""
    left = {
        number: worker.without(names) if isinstance(worker, TeamWorker) else worker
        for number, worker in enumerate(pool)
        if worker.profile.name not in names
    }
    kept = {number: worker for number, worker in left.items() if worker is not None}
    if not kept:
        return None
    if all(kept.get(number) is worker for number, worker in enumerate(pool)):
        return pool
    return pool.subset([*kept]).replaced({worker.profile.name: worker for worker in kept.values()})


def open_pool(name: str = "embedded", *, rated: bool = True, ready: bool = True) -> Pool:
    """Open a shipped pool by its name, or the pool of a file, with its teams.

    Args:
        name: its own, a file's, or a `ReadPool`, whose files are not read again.
        rated, ready: as `load_pool`.

    Raises:
        ConfigError: as `load_pool`; or a team's pool or planner cannot be opened, or pools contain themselves or are
            nested too deep.
    """
    path = pool_file(name)
    files = name.files if isinstance(name, ReadPool) else None
    return load_pool(path, rated=rated, ready=ready, kinds=_Teams((_real(path),), files).kinds, files=files)


def _real(path: Path) -> Path:
    """The path with links resolved. A loop of links stays as it is; reading the file then raises a `ConfigError`."""
    return Path(os.path.realpath(path))


class _Teams:
    """Opens the teams of one pool.

    Args:
        chain: the files of this pool and of the pools around it, the outermost first.
        files: as `load_pool`.
    """

    def __init__(self, chain: Sequence[Path], files: Mapping[Path, bytes] | None) -> None:
        self._chain = tuple(chain)
        self._files = files

    @property
    def kinds(self) -> dict[str, WorkerKind]:
        """The worker kinds "podium" and "local", for `load_pool`."""
        return {"podium": WorkerKind(TeamSpec, self._build)}

    def _build(self, spec: TeamSpec, context: BuildContext) -> Worker:
        folder = context.folder
        owner = f"Worker {spec.name!r}"
        path = pool_file(spec.pool, folder)
        chain = (*self._chain, _real(path))
        if chain[-1] in self._chain:
            circle = " -> ".join(str(file) for file in chain[self._chain.index(chain[-1]) :])
            raise ConfigError(f"{owner}: the pool contains itself: {circle}; name another pool.", ("pool",))
        if len(chain) > _MAX_DEPTH:
            nested = " -> ".join(str(file) for file in chain)
            raise ConfigError(
                f"{owner}: {nested} are more than {_MAX_DEPTH} pools within one another; leave one out.",
                ("pool",),
            )
        try:
            pool = load_pool(path, kinds=_Teams(chain, self._files).kinds, files=self._files)
        except ConfigError as error:
            raise ConfigError(f"{owner}: {error}", ("pool",)) from None
        try:
            return _team(spec, pool, _settings(spec, folder))
        except UsageError as error:
            raise ConfigError(f"{owner}: {error}", ("planner",)) from None


def _team(spec: TeamSpec, pool: Pool, settings: PlannerSettings) -> TeamWorker:
    from podium.orchestrator.planning import (  # noqa: PLC0415 - loads the Conductor's arithmetic
        open_planner,
        plan_settings,
    )

    trained = plan_settings(settings, pool)
    max_steps = spec.max_steps or trained.max_steps
    opened = open_planner(settings, pool, seed=f"team/{spec.name}")
    limits = spec.limits
    budget = Budget(
        rounds=spec.rounds or trained.rounds, usd=limits.max_usd, seconds=limits.timeout * _TIME_SHARE
    )
    identity: dict[str, Any] = {
        "kind": "podium",
        "planner": settings.model_dump(mode="json"),
        "pool": [[worker.profile.model_dump(mode="json"), worker.identity] for worker in pool],
        "budget": budget.model_dump(mode="json"),
        "max_steps": max_steps,
        "early_stop": spec.early_stop,
    }
    if pool.source is not None and (table := pool.source.tables.get("conductor")):
        identity["conductor"] = table
    return TeamWorker(
        spec.to_profile(),
        Orchestrator(
            opened.planner,
            pool,
            budget=budget,
            max_steps=max_steps,
            settings=ExecutionSettings(early_stop=spec.early_stop),
            plan_fallback=opened.fallback,
        ),
        opened=opened,
        limits=limits,
        fallback=spec.fallback,
        identity=identity if spec.cache else None,
    )


def _settings(spec: TeamSpec, folder: Path) -> PlannerSettings:
    """The planner settings of a team; paths are resolved against the folder of the pool file."""
    settings = PlannerSettings(**{name: getattr(spec, name) for name in PlannerSettings.model_fields})
    resolved: dict[str, str] = {}
    conducts = settings.planner.partition(":")[0] == "conductor"
    baseline = None if conducts else find_baseline(settings.planner)
    if baseline is not None and baseline[0].reads_files and baseline[1]:
        resolved["planner"] = f"{baseline[0].name}:{folder / baseline[1]}"
    if settings.conductor is not None and not shipped_checkpoint(settings.conductor):
        resolved["conductor"] = str(folder / settings.conductor)
    if settings.conductor_settings is not None and (folder / settings.conductor_settings).exists():
        resolved["conductor_settings"] = str(folder / settings.conductor_settings)
    return settings.model_copy(update=resolved)


def _nested_state(trace: Trace) -> str:
    """The provider state of the team's answer, with the name of the team's own worker that gave it."""
    state = trace.answer_state
    if state is None or not (state.fields or trace.tool_calls):
        return ""
    return json.dumps({_TEAM: state.model_dump()})


def _own_message(message: Message, team: str) -> Message:
    """A message that the team wrote, as one of the team's own worker that wrote it."""
    state = message.provider_state
    if state is None or state.worker != team or not state.fields:
        return message
    try:
        own = ProviderState.model_validate(json.loads(state.fields)[_TEAM])
    except (ValueError, KeyError, TypeError):  # A client may have written it.
        return message
    return message.model_copy(update={"provider_state": own})


def _question(request: Request, team: str) -> Question:
    """The last message of the user, after the others. If an answer or a tool's result follows it, the history has the
    whole conversation."""
    messages, options = tuple(_own_message(message, team) for message in request.messages), request.options
    last = max((i for i, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        raise WorkerError("The team needs a message of the user, and this request has none.", kind="protocol")
    latest, after = messages[last], messages[last + 1 :]
    if any(message.role != "system" for message in after):
        return Question(text=latest.content, history=messages, options=options)
    return Question(
        text=latest.content, history=(*messages[:last], *after), images=latest.images, options=options
    )
