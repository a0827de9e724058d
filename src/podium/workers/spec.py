"""A worker as a pool file describes it: one model for each kind, told apart by `kind`.

Only what TOML can say. `build` turns a spec into a worker.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from podium.config import Settings
from podium.types import Limits, Price, Profile

Chance = Annotated[float, Field(ge=0, le=1)]


class WorkerSpec(Settings):
    """What every kind has."""

    name: str = Field(min_length=1)
    profile: str = ""
    """Free text that planners read: "Strong at code and maths; dear."""
    skills: tuple[str, ...] = ()
    price: Price = Price()
    """Dollars per million tokens."""
    limits: Limits = Limits()
    fallback: str | None = None
    """Name of the worker that takes over a call that failed for good."""
    latency: float | None = Field(default=None, ge=0)
    """Typical seconds a call, told to planners."""
    context_tokens: int | None = Field(default=None, ge=1)

    def to_profile(self, description: str = "") -> Profile:
        """The profile that planners see; `description` stands in for an empty one."""
        return Profile(
            name=self.name,
            description=self.profile or description,
            skills=self.skills,
            price=self.price,
            latency_s=self.latency,
            context_tokens=self.context_tokens,
        )


class OpenAISpec(WorkerSpec):
    """An endpoint that speaks OpenAI's /chat/completions."""

    kind: Literal["openai"]
    model: str = Field(min_length=1)
    base_url: str
    """Up to and without /chat/completions, as in "https://api.openai.com/v1"."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; None: no key is sent."""
    system: str | None = None
    """The worker's own system prompt; stands before everything else."""
    temperature: float | None = Field(default=None, ge=0)
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further keys of the request's body, sent as they are."""


class SpecialistSpec(WorkerSpec):
    """A simulated model that really computes."""

    kind: Literal["specialist"]
    limits: Limits = Limits(retries=0)
    """A simulated worker has no failures that pass."""
    ability: dict[str, Chance]
    """Skill -> chance of success."""
    seconds: float = Field(default=1.0, ge=0)
    """Typical seconds a call, claimed and not slept."""


class ScriptedFailure(Settings):
    """A reply that is a failed call."""

    error: str
    """Kind of the `WorkerError`, such as "timeout"."""
    message: str = "The script says so."
    passing: bool = False
    retry_after_s: float | None = Field(default=None, ge=0)


class ScriptedSpec(WorkerSpec):
    """Replies written down beforehand."""

    kind: Literal["scripted"]
    replies: tuple[str | ScriptedFailure, ...] | dict[str, str | ScriptedFailure]
    """In the order of the calls; or by text that the subtask contains."""
    delay: float = Field(default=0.0, ge=0)
    """Seconds that each call takes."""


class ReplaySpec(WorkerSpec):
    """A recorded model, which gives the responses that it once gave."""

    kind: Literal["replay"]
    limits: Limits = Limits(retries=0)
    recording: Path
    """NAME.parquet, seen from the pool file's folder."""
    worker: str | None = None
    """Its name in the recording; None: the same."""
    samples: Literal["in turn", "random"] = "in turn"
    """Which of several responses to a question comes first; the others follow as it is asked again."""
    assumed_output_tokens: int | None = Field(default=None, ge=0)
    """Tokens of every response, in place of what the recording knows: for models whose thinking is hidden."""


class VoteSpec(WorkerSpec):
    """The built-in tool that counts answers."""

    kind: Literal["vote"]
    limits: Limits = Limits(retries=0)


AnySpec = Annotated[
    OpenAISpec | SpecialistSpec | ScriptedSpec | ReplaySpec | VoteSpec, Field(discriminator="kind")
]


class PoolSpec(Settings):
    """A pool file."""

    ratings: Path | None = None
    """What the workers were measured at (`podium rate`), seen from the pool file's folder."""
    worker: tuple[AnySpec, ...] = ()
