"""What a GRPO run is told. Defaults are the vetted setting for the tiny policy; nothing here loads torch."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, Field

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
    optimizer: Literal["adamw", "muon"] = "adamw"
    """The paper's, or Muon on the layers' matrices. What is better for few questions is a small part of a gradient:
    Muon makes all its directions equally long, AdamW follows the largest."""
    warmup: float = Field(default=0.03, ge=0, lt=1)
    """Share of the iterations that the learning rate rises."""
    temperature: float = Field(default=1.0, gt=0)
    max_tokens: int = Field(default=128, ge=1)
    """Longest completion; one that is cut off there is most likely no plan and earns nothing."""
    max_steps: int = Field(default=5, ge=1)
    """Longest plan."""
    early_stop: bool = False
    """Whether votes ask for no more responses once they are certain."""
    rounds: int = Field(default=1, ge=1)
    """Plans of a rollout at most; with more than 1 the policy sees what came of its plan, and accepts it or plans
    again. All rounds of a rollout earn its one reward."""
    loss_type: Literal["bnpo", "grpo", "dr_grpo"] = "bnpo"
    floor: float = Field(default=1e-4, gt=0)
    """Added to a group's deviation when advantages are scaled. The paper's code has 1e-4; where rewards have small
    parts, such as costs, a larger one keeps groups that differ in those alone from counting like the others."""
    cost_weights: tuple[float, ...] = Field(
        default=(), validation_alias=AliasChoices("cost_weights", "thrift")
    )
    """Reward lost for each dollar at each level of cost sensitivity that the prompt may name, not `reward.cost`; every
    question is asked at one of them, drawn by the seed. None: the prompt names no level."""
    kl: float = Field(default=0.0, ge=0)
    """Reward lost at first for each nat by which a completion is likelier than under the policy that training started
    from. The paper has none; with one, plans that are seldom tried are not given up before they could pay."""
    kl_end: float | None = Field(default=None, ge=0)
    """The same at the end, reached in equal ratios; None: it stays as it is."""
    sure: float = Field(default=1.0, gt=0, le=1)
    """At the end of a completion, tokens that were all drawn with this probability or more are left out of the update:
    0.999 halves the work and changes the gradient by a thousandth. 1: only what is certain."""
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
