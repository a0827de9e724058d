"""The `[conductor]` table of a team file: which Conductor plans, and how it is prompted and sampled.

`podium.conductor.open` opens the Conductor. `podium.team.opened_planner` chooses one if the table names none.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from podium.conductor.checkpoint import PlanLimits, PodiumFile
from podium.conductor.plan_format import PlanChoice
from podium.conductor.prompt import PromptSettings
from podium.config import Settings
from podium.types import Limits, Price

MAX_PLAN_TOKENS = 8192
"""The default limit of a plan's completion. An instruct model may reason at length before it writes the three lists."""
SOURCES = ("checkpoint", "worker", "base_url")
"""The keys that each name a Conductor."""


class ConductorSettings(Settings):
    """The `[conductor]` table: a checkpoint, a worker of the pool, or an endpoint. `open_planner` chooses if it names
    none."""

    checkpoint: str | None = None
    """A folder, relative to the team file's folder, or the name of a shipped checkpoint."""
    worker: str | None = None
    """The name of a worker of this pool that conducts untrained. Its plans are priced like its answers."""
    base_url: str | None = None
    """The URL of an OpenAI-compatible endpoint whose model conducts untrained, without /chat/completions."""
    model: str | None = None
    """The name of the model at that endpoint."""
    api_key_env: str | None = None
    """The environment variable that holds the key of that endpoint."""
    price: Price | None = None
    """The model's dollars per million tokens. Default: plans are reported as unpriced."""
    limits: Limits = Limits(max_tokens=MAX_PLAN_TOKENS)
    """The limits of the endpoint, as for a worker. `max_tokens` is high, since the model may reason before it writes a
    plan."""
    temperature: float | None = Field(default=None, ge=0)
    """The sampling temperature. Default: none is sent."""
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] | None = None
    """The endpoint's key for `limits.max_tokens`. Default: as for a worker."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further keys of the request's body."""
    podium_file: str | None = None
    """The podium.json of a trained Conductor that a server runs, as `find_podium_file` takes it. Paths are relative to
    the team file's folder. The Conductor is then prompted and limited as in training, and refused for other pools."""
    prompt: PromptSettings = PromptSettings()
    """How a worker or an endpoint is prompted for a plan. A checkpoint has its own prompt settings."""
    plans: PlanChoice = "auto"
    """How an untrained worker or endpoint is asked for a plan: by a JSON schema, a tool call, JSON mode or text. "auto"
    takes the first of these that the endpoint obeys in a probe. "text" asks for three lists."""
    fallback: str | None = None
    """The worker that answers a question when planning has failed. Default: the worker that conducts, or else the
    pool's first live worker."""

    @model_validator(mode="after")
    def _refuse_conflicts(self) -> Self:
        sources = [key for key in SOURCES if getattr(self, key) is not None]
        if len(sources) > 1:
            raise ValueError(f"{' and '.join(sources)} each name a Conductor; keep one of them.")
        if (self.base_url is None) != (self.model is None):
            raise ValueError("an endpoint needs both base_url and model.")
        of_endpoint = {
            "api_key_env",
            "price",
            "limits",
            "temperature",
            "max_tokens_key",
            "extra",
            "podium_file",
        }
        if self.base_url is None and (idle := sorted(of_endpoint & self.model_fields_set)):
            raise ValueError(f"{idle[0]} is for an endpoint; add base_url and model, or leave it out.")
        if self.checkpoint is not None and "prompt" in self.model_fields_set:
            raise ValueError("a checkpoint brings its own prompt; leave prompt out.")
        trained = self.checkpoint is not None or self.podium_file is not None
        if trained and "plans" in self.model_fields_set:
            raise ValueError("plans is for a model that conducts untrained; leave it out.")
        if self.podium_file is not None and "prompt" in self.model_fields_set:
            raise ValueError("podium_file brings the prompt of the trained Conductor; leave prompt out.")
        return self

    @property
    def names_conductor(self) -> bool:
        """Whether the table names a checkpoint, a worker or an endpoint."""
        return any(getattr(self, key) is not None for key in SOURCES)

    def with_training(self, trained: PodiumFile) -> Self:
        """This table with the prompt and the sampling of its policy's training. Keys that the table sets keep their
        values."""
        plan = trained.plan or PlanLimits()
        update: dict[str, Any] = {"prompt": trained.prompt}
        if self.temperature is None and trained.plan is not None:
            update["temperature"] = plan.temperature
        says = "limits" in self.model_fields_set and "max_tokens" in self.limits.model_fields_set
        if plan.max_plan_tokens is not None and not says:
            update["limits"] = self.limits.model_copy(update={"max_tokens": plan.max_plan_tokens})
        if plan.chat_template_kwargs and "chat_template_kwargs" not in self.extra:
            update["extra"] = {**self.extra, "chat_template_kwargs": plan.chat_template_kwargs}
        return self.model_copy(update=update)
