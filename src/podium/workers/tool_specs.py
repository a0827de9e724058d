"""Tools of ours as a pool file describes them: they run no model and cost nothing."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from podium.types import Limits
from podium.workers.worker_spec import WorkerSpec


class VoteSpec(WorkerSpec):
    """The built-in tool that counts answers."""

    kind: Literal["vote"]
    limits: Limits = Limits(retries=0)


class CalculatorSpec(WorkerSpec):
    """The built-in tool that computes exactly."""

    kind: Literal["calculator"]
    limits: Limits = Limits(retries=0)


class CodeSpec(WorkerSpec):
    """The built-in tool that runs Python programs in the sandbox."""

    kind: Literal["code"]
    limits: Limits = Limits(retries=0)
    """What a program prints beyond `max_tokens`, four characters each, is cut off."""
    seconds: float = Field(default=6.0, gt=0)
    """Processor time of a program; three times as much by the clock."""
    memory_mb: int = Field(default=2048, ge=64)
    """Megabytes of a program with all its processes."""
    allow_weak_sandbox: bool = False
    """Whether programs run without walls where bubblewrap is not to be had: only for programs that you trust."""
