"""The team that answers Inspect's questions: a planner over a pool, within a budget, with a store for its traces.

It is opened from settings, which `inspect eval` takes with -M. This module does not import Inspect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from podium.baselines import baseline_forms
from podium.config import build
from podium.executor import Dispatcher, ExecutionSettings
from podium.executor.accounts import open_day_account
from podium.executor.state_file import CooldownFile
from podium.orchestrator import Event, Orchestrator, QuestionEnded
from podium.orchestrator.planner_settings import PlannerSettings
from podium.orchestrator.planning import OpenedPlanner, open_planner, pays_for_plans, plan_settings
from podium.orchestrator.team import open_pool
from podium.trace import Trace
from podium.trace.store import TraceStore, default_path
from podium.types import Budget, Question
from podium.workers.pool import Pool, has_real_workers
from podium.workers.response_cache import ResponseCache


class TeamSettings(PlannerSettings):
    """The planner, the pool, and the limits of a question."""

    pool: str = "embedded"
    """The workers: a TOML file, or a shipped pool's name."""
    max_steps: int | None = Field(default=None, ge=1)
    """Steps that a plan may have. None: as many as its Conductor was trained with, else 5."""
    early_stop: bool = False
    """Whether votes stop once their result is certain."""
    rounds: int | None = Field(default=None, ge=1)
    """Plans for a question at most. None: as many as its Conductor was trained with, else 1."""
    budget_calls: int | None = Field(default=None, ge=0)
    """Worker calls for a question at most."""
    budget_tokens: int | None = Field(default=None, ge=0)
    """Tokens for a question at most, workers and planner together."""
    budget_usd: float | None = Field(default=None, ge=0)
    """Dollars for a question at most."""
    budget_seconds: float | None = Field(default=None, gt=0)
    """Seconds for a question at most."""
    day_budget_usd: float | None = Field(default=None, ge=0)
    """Dollars of a day (UTC) for all commands together; None: $PODIUM_DAY_BUDGET_USD."""
    cache: Path | None = None
    """The SQLite file of the response cache."""
    replay: bool = False
    """Answer from the response cache alone."""
    store: Path | None = None
    """The SQLite file of traces; None: the same as for `podium ask`."""
    no_store: bool = False
    """Keep no traces."""

    @model_validator(mode="after")
    def _from_a_cache(self) -> Self:
        if self.replay and self.cache is None:
            raise ValueError("replay answers from a response cache; name its file with cache.")
        return self

    @property
    def budget(self) -> Budget:
        """The limits of one question, with 1 round where none is given."""
        return Budget(
            rounds=self.rounds or 1,
            calls=self.budget_calls,
            tokens=self.budget_tokens,
            usd=self.budget_usd,
            seconds=self.budget_seconds,
        )


def read_settings(name: str, settings: Mapping[str, Any]) -> TeamSettings:
    """The settings of the model `podium/<name>`: the name is a planner's or a pool's, unless -M says otherwise.

    Raises:
        ConfigError: an unknown key or value, or settings that exclude each other.
    """
    planners = {form.partition(":")[0] for form in ("conductor", *baseline_forms())}
    named = "planner" if name.partition(":")[0] in planners else "pool"
    return build({named: name, **settings}, TeamSettings, source=f"podium/{name}")


@dataclass(frozen=True, slots=True)
class Team:
    """Answers any number of questions at a time, which share their workers' limits."""

    orchestrator: Orchestrator
    opened: OpenedPlanner
    """The planner, which is closed with the team."""
    store: TraceStore | None
    files: ExitStack
    """All open files: store, response cache, accounts."""

    async def answer(self, question: Question, *, seed: str, sample: int = 0) -> Trace:
        """Answer a question; its trace is on disk when this returns.

        Args:
            sample: as `Orchestrator.answer`'s.

        Raises:
            UsageError: the question is empty, or too long for the planner's model.
            StoreError: the trace could not be kept.
        """
        trace = await self.orchestrator.answer(question, seed=seed, sample=sample, on_event=self._keep)
        if self.store is not None:
            # Inspect's log may outlive a killed process, and the traces that it names must exist.
            await asyncio.to_thread(self.store.flush)
        return trace

    def _keep(self, event: Event) -> None:
        """Store the trace when a question ends, also if it was cancelled."""
        if self.store is not None and isinstance(event, QuestionEnded):
            self.store.add(event.trace)

    async def close(self) -> None:
        """Close connections and files. Calling twice is fine. The team cannot answer afterwards."""
        try:
            await self.orchestrator.pool.close()
            await self.opened.close()
        finally:
            await asyncio.to_thread(self.files.close)


def open_team(settings: TeamSettings, *, seed: str = "0") -> Team:
    """Open pool, planner, store, and the dispatcher that all calls share.

    Args:
        seed: seeds a planner that plans at random.

    Raises:
        UsageError: something that the settings name is missing or unusable.
    """
    pool = open_pool(settings.pool)
    with ExitStack() as files:
        dispatcher = _open_dispatcher(settings, pool, files)
        opened = open_planner(settings, pool, seed=seed, dispatcher=dispatcher)
        trained = plan_settings(settings, pool)
        orchestrator = Orchestrator(
            opened.planner,
            pool,
            budget=settings.budget.model_copy(update={"rounds": settings.rounds or trained.rounds}),
            max_steps=settings.max_steps or trained.max_steps,
            settings=ExecutionSettings(early_stop=settings.early_stop),
            dispatcher=dispatcher,
        )
        store = None
        if not settings.no_store:
            store = files.enter_context(TraceStore(settings.store or default_path()))
        return Team(orchestrator, opened, store, files.pop_all())


def _open_dispatcher(settings: TeamSettings, pool: Pool, files: ExitStack) -> Dispatcher:
    """The dispatcher, opened as for `podium ask`: a pool of simulated workers alone does not use the day's budget."""
    cache = None
    if settings.cache is not None:
        cache = files.enter_context(ResponseCache(settings.cache, replay=settings.replay))
    paid = pays_for_plans(settings, pool) or has_real_workers(pool)
    day = open_day_account(settings.day_budget_usd) if paid else None
    accounts = [] if day is None else [files.enter_context(closing(day))]
    return Dispatcher(cache=cache, accounts=accounts, cooldowns=files.enter_context(closing(CooldownFile())))
