"""What the spec of a worker has, whatever its kind. The kinds are in `spec`."""

from __future__ import annotations

from pydantic import Field

from podium.config import Settings
from podium.types import Limits, Price, Profile


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
