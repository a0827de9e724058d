"""The `[conductor]` table of a pool file: who leads its workers, in the words of the file.

Words only: `podium.orchestrator.planning` opens what they name.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from podium.conductor.prompt import PromptSettings
from podium.config import Settings, suggestion
from podium.errors import ConfigError
from podium.types import Limits, Price
from podium.workers.pool import Pool


class ConductorSettings(Settings):
    """A checkpoint, a worker of the pool, or an endpoint; nothing of these: what `open_planner` takes by itself."""

    checkpoint: str | None = None
    """A folder seen from the pool file's folder, or a shipped checkpoint's name."""
    cost_sensitivity: float | None = Field(
        default=None, validation_alias=AliasChoices("cost_sensitivity", "thrift")
    )
    """How much a checkpoint that knows levels of cost sensitivity is to save."""
    worker: str | None = None
    """The name of a worker of this pool, which then conducts untrained, at its own price."""
    base_url: str | None = None
    """An OpenAI-compatible endpoint whose model conducts untrained, up to and without /chat/completions."""
    model: str | None = None
    """The name of the model there."""
    api_key_env: str | None = None
    """The environment variable that holds the key for it."""
    price: Price | None = None
    """Its dollars per million tokens; None: not known, and plans are shown as unpriced."""
    limits: Limits = Limits(max_tokens=8192)
    """Of the endpoint, as a worker's; it may reason at length before it writes the three lists."""
    temperature: float | None = Field(default=None, ge=0)
    """None: none is sent."""
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] | None = None
    """What the endpoint calls `limits.max_tokens`; None: as for a worker."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further keys of the request's body."""
    prompt: PromptSettings = PromptSettings()
    """How a worker or an endpoint is asked for a plan; a checkpoint brings its own."""
    fallback: str | None = None
    """The worker that takes a question whose planning failed for good; None: the one that conducts, else the first
    that is asked for real."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        sources = [key for key in ("checkpoint", "worker", "base_url") if getattr(self, key) is not None]
        if len(sources) > 1:
            raise ValueError(f"{' and '.join(sources)} each name a Conductor; keep one of them.")
        if (self.base_url is None) != (self.model is None):
            raise ValueError("an endpoint needs both base_url and model.")
        of_endpoint = {"api_key_env", "price", "limits", "temperature", "max_tokens_key", "extra"}
        if self.base_url is None and (idle := sorted(of_endpoint & self.model_fields_set)):
            raise ValueError(f"{idle[0]} is for an endpoint; add base_url and model, or leave it out.")
        if self.checkpoint is None and self.cost_sensitivity is not None:
            raise ValueError("cost_sensitivity is for a checkpoint; add checkpoint, or leave it out.")
        if self.checkpoint is not None and "prompt" in self.model_fields_set:
            raise ValueError("a checkpoint brings its own prompt; leave prompt out.")
        return self


class _PoolFile(BaseModel):
    """A pool file, of which the `[conductor]` table alone is looked at."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    conductor: ConductorSettings = ConductorSettings()


def conductor_settings(pool: Pool) -> ConductorSettings:
    """What the pool's file says of its Conductor; of a pool without a file, nothing.

    Raises:
        ConfigError: the table cannot be used, or names a worker that the pool lacks; with the file and the line.
    """
    if pool.source is None:
        return ConductorSettings()
    settings = pool.source.into(_PoolFile).conductor
    for key in ("worker", "fallback"):
        name = getattr(settings, key)
        if name is not None and name not in pool.names:
            raise pool.source.refuse(
                ConfigError(
                    f"conductor.{key} names {name!r}, which is not in the pool; {suggestion(name, pool.names)}",
                    ("conductor", key),
                )
            )
    return settings
