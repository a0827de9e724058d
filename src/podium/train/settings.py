"""What a GRPO run is told. Defaults are the vetted setting for the tiny policy; nothing here loads torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from podium.config import Settings


class GRPOSettings(Settings):
    """One run of GRPO on one device."""

    iterations: int = Field(default=400, ge=1)
    """Each is one batch and one step of the optimiser; the learning rate's cosine ends here."""
    questions: int = Field(default=8, ge=1)
    """Tasks of an iteration."""
    group: int = Field(default=32, ge=2)
    """Rollouts of each task."""
    lr: float = Field(default=3e-4, gt=0)
    """Peak learning rate."""
    warmup: float = Field(default=0.03, ge=0, lt=1)
    """Share of the iterations that the learning rate rises."""
    temperature: float = Field(default=1.0, gt=0)
    max_tokens: int = Field(default=128, ge=1)
    """Longest completion; one that is cut off there is most likely no plan and earns nothing."""
    max_steps: int = Field(default=5, ge=1)
    """Longest plan."""
    loss_type: Literal["bnpo", "grpo", "dr_grpo"] = "bnpo"
    floor: float = Field(default=1e-4, gt=0)
    """Added to a group's deviation when advantages are scaled. The paper's code has 1e-4; where rewards have small
    parts, such as costs, a larger one keeps groups that differ in those alone from counting like the others."""
    clip: float = Field(default=0.2, gt=0, lt=1)
    max_norm: float = Field(default=1.0, gt=0)
    """Gradients are scaled down to this norm."""
    dtype: Literal["auto", "fp32", "bf16"] = "auto"
    """Of the matrix products; weights and optimiser are always fp32."""
    minutes: float | None = Field(default=None, gt=0)
    """Stop before this time is exceeded; the learning rate does not know of it."""
    seed: int = 0
    save_every: int = Field(default=10, ge=1)
    """Iterations from checkpoint to checkpoint; a killed run repeats fewer than that."""
    eval_every: int = Field(default=0, ge=0)
    """Iterations from evaluation to evaluation; 0: none."""
