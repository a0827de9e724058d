"""A planner over a pool, within a budget, with a store for its traces: what answers when Inspect asks.

Opened from settings, as `inspect eval` takes them behind -M. Knows nothing of Inspect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from podium.baselines import open_baseline
from podium.baselines.open import NAMES
from podium.conductor.conducting import open_conductor, served_conductor, served_policy
from podium.conductor.served_policy import ServedPolicy
from podium.config import Settings, build
from podium.orchestrator import Event, Orchestrator, QuestionEnded
from podium.planner import Planner
from podium.trace import Trace
from podium.trace.store import TraceStore, default_path
from podium.types import Budget, Question
from podium.workers.pool import Pool, open_pool


class TeamSettings(Settings):
    """Who answers, and within which limits."""

    pool: str = "embedded"
    """The workers: a TOML file, or a shipped pool's name."""
    planner: str = "conductor"
    """conductor, or a baseline: single:WORKER, self-consistency:WORKER:SAMPLES, constant:FILE or random."""
    conductor: str | None = None
    """A Conductor's checkpoint folder; or warmstart, the shipped one before its training."""
    thrift: int | None = None
    """How much a Conductor that knows levels of thrift is to save; 0 is nothing."""
    conductor_url: str | None = None
    """An OpenAI-compatible endpoint whose model conducts, up to and without /chat/completions."""
    conductor_model: str | None = None
    """The name of the model there."""
    conductor_key_env: str | None = None
    """The environment variable that holds the key for it."""
    conductor_price: tuple[float, float] | None = None
    """Its dollars per million tokens, input and output."""
    max_steps: int = Field(default=5, ge=1)
    """Steps that a plan may have."""
    rounds: int = Field(default=1, ge=1)
    """Plans for a question at most."""
    budget_calls: int | None = Field(default=None, ge=0)
    """Worker calls for a question at most."""
    budget_tokens: int | None = Field(default=None, ge=0)
    """Tokens for a question at most, workers and planner together."""
    budget_usd: float | None = Field(default=None, ge=0)
    """Dollars for a question at most."""
    budget_seconds: float | None = Field(default=None, gt=0)
    """Seconds for a question at most."""
    store: Path | None = None
    """The SQLite file of traces; None: the one of `podium ask`."""
    no_store: bool = False
    """Keep no traces."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        endpoint = (self.conductor_url, self.conductor_model, self.conductor_key_env, self.conductor_price)
        served = any(setting is not None for setting in endpoint)
        local = self.conductor is not None or self.thrift is not None
        if self.planner != "conductor" and (served or local):
            raise ValueError(
                f"the planner {self.planner} plans without a Conductor; leave thrift and the conductor settings out."
            )
        if served and local:
            raise ValueError(
                "conductor and thrift are for a Conductor of Podium's own, conductor_url and its neighbours "
                "for a server; give the one or the other."
            )
        if served and (self.conductor_url is None or self.conductor_model is None):
            raise ValueError("a served Conductor needs both conductor_url and conductor_model.")
        return self

    @property
    def budget(self) -> Budget:
        """The limits of one question."""
        return Budget(
            rounds=self.rounds,
            calls=self.budget_calls,
            tokens=self.budget_tokens,
            usd=self.budget_usd,
            seconds=self.budget_seconds,
        )


def read_settings(name: str, given: Mapping[str, Any]) -> TeamSettings:
    """The settings of the model `podium/<name>`: its name is a planner or a pool, unless -M says otherwise.

    Raises:
        ConfigError: a key or a value that is not known, or settings that exclude each other.
    """
    planners = {form.partition(":")[0] for form in ("conductor", *NAMES)}
    named = "planner" if name.partition(":")[0] in planners else "pool"
    return build({named: name, **given}, TeamSettings, source=f"podium/{name}")


@dataclass(frozen=True, slots=True)
class Team:
    """Answers questions, any number at a time; all of them share their workers' limits."""

    orchestrator: Orchestrator
    policy: ServedPolicy | None
    """The served Conductor's, to be closed; None: the planner holds no connections."""
    store: TraceStore | None

    async def answer(self, question: Question, *, seed: str) -> Trace:
        """The trace of a question, which is on disk when it is returned.

        Raises:
            UsageError: the question is empty, or too long for the planner's model.
            StoreError: the trace could not be kept.
        """
        trace = await self.orchestrator.answer(question, seed=seed, on_event=self._keep)
        if self.store is not None:
            # Inspect's own log may outlive a process that is killed: what it names must be there.
            await asyncio.to_thread(self.store.flush)
        return trace

    def _keep(self, event: Event) -> None:
        """Also the trace of a question that was cancelled."""
        if self.store is not None and isinstance(event, QuestionEnded):
            self.store.add(event.trace)

    async def close(self) -> None:
        """Give back connections and the store. Calling twice is fine; nothing is answered afterwards."""
        try:
            await self.orchestrator.pool.close()
            if self.policy is not None:
                await self.policy.close()
        finally:
            if self.store is not None:
                await asyncio.to_thread(self.store.close)


def open_team(settings: TeamSettings, *, seed: str = "0") -> Team:
    """Open pool, planner and store.

    Args:
        seed: names the randomness of a planner that plans at random.

    Raises:
        UsageError: whatever the settings name is missing or unusable.
    """
    pool = open_pool(settings.pool)
    policy = _served_policy(settings)
    planner = _open_planner(settings, policy, pool, seed)
    orchestrator = Orchestrator(planner, pool, budget=settings.budget, max_steps=settings.max_steps)
    store = None if settings.no_store else TraceStore(settings.store or default_path())
    return Team(orchestrator, policy, store)


def _open_planner(settings: TeamSettings, policy: ServedPolicy | None, pool: Pool, seed: str) -> Planner:
    if settings.planner != "conductor":
        return open_baseline(settings.planner, pool.profiles, seed=seed)
    if policy is not None:
        return served_conductor(policy)
    return open_conductor(settings.conductor or "conductor", thrift=settings.thrift)


def _served_policy(settings: TeamSettings) -> ServedPolicy | None:
    if settings.conductor_url is None or settings.conductor_model is None:
        return None
    return served_policy(
        settings.conductor_url,
        settings.conductor_model,
        key_env=settings.conductor_key_env,
        price=settings.conductor_price,
    )
