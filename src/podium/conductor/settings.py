"""The `[conductor]` table of a team file: which Conductor plans, and how it is prompted and sampled.

`podium.conductor.opening` opens it. `podium.team.opened_planner` decides which Conductor plans where the table names
none.
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
    """The `[conductor]` table: a checkpoint, a worker of the pool, or an endpoint; without, `open_planner` chooses."""

    checkpoint: str | None = None
    """A folder, relative to the pool file's folder, or the name of a shipped checkpoint."""
    worker: str | None = None
    """The name of a worker of this pool, which then conducts untrained; its plans cost what its answers cost."""
    base_url: str | None = None
    """The URL of an OpenAI-compatible endpoint whose model conducts untrained, without /chat/completions."""
    model: str | None = None
    """The name of the model at that endpoint."""
    api_key_env: str | None = None
    """The environment variable that holds the key of that endpoint."""
    price: Price | None = None
    """The model's dollars per million tokens. Without them, plans are reported as unpriced."""
    limits: Limits = Limits(max_tokens=MAX_PLAN_TOKENS)
    """The limits of the endpoint, as a worker has them; its model may reason before it writes the three lists."""
    temperature: float | None = Field(default=None, ge=0)
    """The sampling temperature. Without one, none is sent."""
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] | None = None
    """The endpoint's key for `limits.max_tokens`. Without it, it is chosen as for a worker."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further keys of the request's body."""
    podium_file: str | None = None
    """Where the podium.json of a served, trained Conductor is, as `read_podium_file` takes it; paths are relative to
    the pool file's folder. The Conductor is then prompted and limited as in training, and refused for other pools."""
    prompt: PromptSettings = PromptSettings()
    """How a worker or an endpoint is prompted for a plan; a checkpoint has its own prompt settings."""
    plans: PlanChoice = "auto"
    """How a worker or an endpoint that conducts untrained is asked for a plan: by a JSON schema, a tool call, JSON mode
    or text. "auto": by the first of these that a probe finds obeyed. "text" asks for three lists."""
    fallback: str | None = None
    """The worker that answers a question when planning has failed. Default: the worker that conducts, or else the
    pool's first that is real."""

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
        """Whether it names a checkpoint, a worker or an endpoint."""
        return any(getattr(self, key) is not None for key in SOURCES)

    def with_training(self, trained: PodiumFile) -> Self:
        """This table with the prompt and the sampling that its policy was trained with. Keys that it sets stay."""
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
