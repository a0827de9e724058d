"""A whole team as one worker: another pool and a planner of its own, within what one call may take.

Here pools are opened that may hold teams; `podium.workers.pool` opens those without. A team has a dispatcher of its
own: it shares neither limits nor response cache with the pool that it stands in, which pays for it as for any worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator

from podium.errors import ConfigError, UsageError, WorkerError
from podium.executor import ExecutionSettings, StepText
from podium.orchestrator.events import Event, QuestionEnded
from podium.orchestrator.orchestrator import Orchestrator
from podium.orchestrator.planner_settings import PlannerSettings
from podium.types import Budget, Limits, Message, Price, Profile, Question
from podium.workers.base import Reply, Request, Worker
from podium.workers.build import BuildContext, WorkerKind
from podium.workers.pool import Pool, has_real_workers, load_pool, pool_file
from podium.workers.spec import WorkerSpec

if TYPE_CHECKING:
    from podium.orchestrator.planning import OpenedPlanner

_DEEPEST = 3
"""Pools within one another."""
_SHARE = 0.95
"""Of the time for a call that the team takes, so that what it has by then is not lost with the call."""


class TeamSpec(WorkerSpec, PlannerSettings):
    """A whole team in a pool file: another pool, and a planner of its own."""

    kind: Literal["podium"]
    limits: Limits = Limits(retries=0)
    """`timeout` and `max_usd` are the team's own budget for a question."""
    pool: str = Field(min_length=1)
    """Its workers: a TOML file seen from the pool file's folder, or a shipped pool's name."""
    rounds: int | None = Field(default=None, ge=1)
    """Plans for a question at most. None: as many as its Conductor was trained with, else 1."""
    max_steps: int | None = Field(default=None, ge=1)
    """Steps that a plan may have. None: as many as its Conductor was trained with, else 5."""
    early_stop: bool = False
    """Whether its votes ask for no more responses once they are certain."""
    cache: bool = False
    """Whether its answers may be kept: the same messages get the same answer."""

    @field_validator("price")
    @classmethod
    def _priceless(cls, price: Price) -> Price:
        if price != Price():
            raise ValueError("a team costs what its workers cost; leave its price out.")
        return price


class TeamWorker:
    """Answers as another orchestrator does.

    Args:
        profile: as for any worker; it costs what its workers and its planner cost, and has no price.
        orchestrator: answers; its budget is what one call may take. Its pool is closed with this worker.
        opened: its planner, if that holds connections to be closed, too.
        limits, fallback: as for any worker. A budget in dollars needs `max_usd` to know beforehand what a call may
            cost; without it, a call is let through that costs more than is left.
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
        """Whether neither a worker of it nor its planner is asked for real."""

    def __repr__(self) -> str:
        return f"TeamWorker({self.profile.name!r}, {self.orchestrator.planner.name!r}, {self.orchestrator.pool!r})"

    async def answer(self, request: Request) -> Reply:
        """One question to the team: the last message of a user; what came before it is its past.

        Raises:
            WorkerError: "exhausted": the team has no answer, and why; "protocol": it cannot take this request.
        """
        question = _question(request)
        on_text = request.on_text

        spent_usd = 0.0

        def observe(event: Event) -> None:
            nonlocal spent_usd
            if on_text is not None and isinstance(event, StepText):
                on_text(event.text)
            elif isinstance(event, QuestionEnded):
                spent_usd = event.trace.cost_usd

        try:
            trace = await self.orchestrator.answer(
                question,
                seed=request.seed,
                sample=request.sample,
                on_event=observe,
                streams=on_text is not None,
            )
        except asyncio.CancelledError as error:
            # What was paid for is not lost with the call: the executor reads it here.
            error.cost_usd = spent_usd  # type: ignore[attr-defined]
            raise
        except UsageError as error:
            raise WorkerError(f"The team cannot be asked this: {error}", kind="protocol") from None
        if trace.answer is None:
            raise WorkerError(
                f"The team has no answer. {trace.error}", kind="exhausted", cost_usd=trace.cost_usd
            )
        simulated = any(span.simulated_s is not None for span in trace.spans)
        return Reply(
            trace.answer,
            trace.usage,
            latency_s=trace.critical_path_s if simulated else None,
            cost_usd=trace.cost_usd,
            tool_calls=trace.tool_calls,
            nested=trace,
        )

    async def close(self) -> None:
        """Give back the connections of its workers and its planner. Calling twice is fine."""
        try:
            await self.orchestrator.pool.close()
        finally:
            if self.opened is not None:
                await self.opened.close()


def open_pool(name: str = "embedded", *, rated: bool = True, ready: bool = True) -> Pool:
    """The pool that comes with the package under this name, or that of a file; with its teams.

    Args:
        rated, ready: as `load_pool`.

    Raises:
        ConfigError: as `load_pool`; a team's pool or planner cannot be opened, or pools go in a circle or too deep.
    """
    path = pool_file(name)
    return load_pool(path, rated=rated, ready=ready, kinds=_Teams((path.resolve(),)).kinds)


class _Teams:
    """Opens the teams of one pool.

    Args:
        chain: the files of the pools that it stands in, the outermost first, and its own.
    """

    def __init__(self, chain: Sequence[Path]) -> None:
        self._chain = tuple(chain)

    @property
    def kinds(self) -> dict[str, WorkerKind]:
        """The kind of worker that a team is, for `load_pool`."""
        return {"podium": WorkerKind(TeamSpec, self._build)}

    def _build(self, spec: TeamSpec, context: BuildContext) -> Worker:
        folder = context.folder
        owner = f"Worker {spec.name!r}"
        path = pool_file(spec.pool, folder)
        chain = (*self._chain, path.resolve())
        if chain[-1] in self._chain:
            circle = " -> ".join(str(file) for file in chain[self._chain.index(chain[-1]) :])
            raise ConfigError(f"{owner}: the pools go in a circle: {circle}; name another pool.", ("pool",))
        if len(chain) > _DEEPEST:
            nested = " -> ".join(str(file) for file in chain)
            raise ConfigError(
                f"{owner}: {nested} are more than {_DEEPEST} pools within one another; leave one out.",
                ("pool",),
            )
        try:
            pool = load_pool(path, kinds=_Teams(chain).kinds)
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
    budget = Budget(rounds=spec.rounds or trained.rounds, usd=limits.max_usd, seconds=limits.timeout * _SHARE)
    # Answers are kept under this document: `cost_sensitivity` has the key that it had when the first were, and later
    # keys are in it only where they are given.
    planner = settings.model_dump(mode="json")
    if settings.conductor_settings is None:
        del planner["conductor_settings"]
    identity: dict[str, Any] = {
        "kind": "podium",
        "planner": {"thrift" if key == "cost_sensitivity" else key: value for key, value in planner.items()},
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
    """Who plans, with the paths of that as our process sees them."""
    from podium.conductor.checkpoint import SHIPPED  # noqa: PLC0415 - loads NumPy

    settings = PlannerSettings(**{name: getattr(spec, name) for name in PlannerSettings.model_fields})
    seen: dict[str, str] = {}
    form, colon, file = settings.planner.partition(":")
    if form == "constant" and file:
        seen["planner"] = f"{form}{colon}{folder / file}"
    if settings.conductor is not None and settings.conductor not in SHIPPED:
        seen["conductor"] = str(folder / settings.conductor)
    if settings.conductor_settings is not None and (folder / settings.conductor_settings).exists():
        seen["conductor_settings"] = str(folder / settings.conductor_settings)
    return settings.model_copy(update=seen)


def _question(request: Request) -> Question:
    messages = request.messages
    last = max((i for i, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        raise WorkerError("The team cannot be asked without a message of a user.", kind="protocol")
    latest: Message = messages[last]
    return Question(
        text=latest.content, history=messages[:last], images=latest.images, options=request.options
    )
