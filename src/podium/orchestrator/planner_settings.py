"""The settings that name a planner, shared by team workers, the server, the library, Inspect's model, suites and
commands.

`podium.orchestrator.planning` opens the planner that they name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from pydantic import model_validator

from podium.config import Settings


class PlannerSettings(Settings):
    """A Conductor, local or served, or a baseline."""

    planner: str = "conductor"
    """conductor; or conductor:WORKER, a worker of the pool that conducts untrained; or a baseline: single:WORKER,
    self-consistency:WORKER:SAMPLES, constant:FILE or random."""
    conductor: str | None = None
    """A trained Conductor's folder, or the name of a shipped one: conductor, warmstart, world-conductor or
    world-warmstart."""
    cost_sensitivity: float | None = None
    """How much plans should save, for a Conductor trained with levels: 0 saves nothing, 2.5 is between two levels."""
    conductor_url: str | None = None
    """The URL of an OpenAI-compatible endpoint whose model conducts, without /chat/completions."""
    conductor_model: str | None = None
    """The name of the model there."""
    conductor_key_env: str | None = None
    """The environment variable that holds the key for it."""
    conductor_price: tuple[float, float] | None = None
    """Its dollars per million tokens, input and output."""
    conductor_settings: str | None = None
    """The podium.json of the trained Conductor that the endpoint serves: its folder, the file itself, or OWNER/NAME on
    the Hugging Face hub. None: the model conducts untrained."""
    quarantine_failing: bool = False
    """Whether a worker is left for a while when outcomes say that it has begun to fail (`QuarantinePlanner`)."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        conflict = self.conflict()
        if conflict is not None:
            raise ValueError(conflict)
        return self

    @property
    def conducting_worker(self) -> str | None:
        """The worker that conducts untrained, if `planner` names one."""
        kind, colon, worker = self.planner.partition(":")
        return worker if colon and kind == "conductor" else None

    @property
    def served(self) -> tuple[str, ...]:
        """The keys of a served Conductor that have values."""
        keys = (
            "conductor_url",
            "conductor_model",
            "conductor_key_env",
            "conductor_price",
            "conductor_settings",
        )
        return tuple(key for key in keys if getattr(self, key) is not None)

    def conflict(self, option_name: Callable[[str], str] = str) -> str | None:
        """Why these settings cannot go together, in one sentence; None: they can.

        Args:
            option_name: returns the caller's name for a key, for the sentence.
        """
        if self.planner != "conductor":
            own = ("conductor",) if self.conductor is not None else ()
            given = " and ".join(option_name(key) for key in (*own, *self.served))
            if given:
                does = (
                    "plans without a Conductor" if self.conducting_worker is None else "names the Conductor"
                )
                return f"{option_name('planner')} {self.planner} {does}; leave {given} out."
            if self.cost_sensitivity is not None:
                whose = "a Conductor" if self.conducting_worker is None else "a trained Conductor"
                return f"{option_name('cost_sensitivity')} is for {whose}; leave it out."
            if self.quarantine_failing and self.conducting_worker is None:
                return f"{option_name('quarantine_failing')} is for a Conductor; leave it out."
            return None
        return self._fault_of_served(option_name) if self.served else None

    def _fault_of_served(self, option_name: Callable[[str], str]) -> str | None:
        url = option_name("conductor_url")
        if self.cost_sensitivity is not None:
            return f"{option_name('cost_sensitivity')} is for a Conductor of Podium's own; leave it out, or {url}."
        if self.conductor is not None:
            return f"{option_name('conductor')} names a folder, {url} a server; give one of them."
        if self.conductor_url is None or self.conductor_model is None:
            return f"A served Conductor needs both {url} and {option_name('conductor_model')}."
        if self.conductor_price is not None and min(self.conductor_price) < 0:
            return f"{option_name('conductor_price')} is below 0; give dollars per million tokens."
        return None
