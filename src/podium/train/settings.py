"""The settings of a GRPO run: what a configuration file may hold under `[grpo]`, and the whole file around it.

Defaults are those of the run whose policy ships. Nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, Field, model_validator

from podium.config import Settings, suggestion
from podium.rollout import RewardSettings
from podium.rollout.random_pools import PoolDraw
from podium.tasks.embedded import HOP_SHARES
from podium.train.objective import ADVANTAGES, LOSSES, ScaleRewards
from podium.train.runtime import Precision


def _named_in(table: Mapping[str, object]) -> AfterValidator:
    """A validator that takes the names in a table, as it is when the settings are read."""

    def check(name: str) -> str:
        if name not in table:
            raise ValueError(f"{name!r} is not known; {suggestion(name, table)}")
        return name

    return AfterValidator(check)


class GRPOSettings(Settings):
    """One run of GRPO on one device."""

    iterations: int = Field(default=130, ge=1)
    """Each is one batch of rollouts; the learning rate's cosine ends here."""
    questions: int = Field(default=16, ge=1)
    """Tasks of an iteration."""
    group: int = Field(default=16, ge=2)
    """Rollouts of each task."""
    lr: float = Field(default=2e-4, gt=0)
    """Peak learning rate."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """AdamW, as in the paper, or Muon on the layers' matrices. AdamW follows the largest directions of a gradient,
    Muon makes all of them equally long; what a policy learns about few questions is a small part of a gradient."""
    warmup: float = Field(default=0.03, ge=0, lt=1)
    """Share of the iterations in which the learning rate rises."""
    temperature: float = Field(default=0.7, gt=0)
    """Of sampling in training. The most likely plan is what runs after training, so training looks near it."""
    max_tokens: int = Field(default=128, ge=1)
    """Longest completion; one that is cut off there is most likely no plan and earns nothing."""
    max_steps: int = Field(default=5, ge=1)
    """Longest plan."""
    early_stop: bool = False
    """Whether a vote calls no more workers once its result is certain."""
    rounds: int = Field(default=1, ge=1)
    """Most plans of a rollout. With more than 1 the policy sees what came of its plan, and accepts the answer or plans
    again. All rounds of a rollout earn its one reward."""
    loss_type: Annotated[str, _named_in(LOSSES)] = "bnpo"
    """How tokens are averaged, in TRL's words: "bnpo" over all tokens of the batch, as in the paper's code, "grpo" over
    each completion and then over completions, "dr_grpo" over completions times `max_tokens`."""
    advantage: Annotated[str, _named_in(ADVANTAGES)] = "grpo"
    """How rewards become advantages: "grpo" against the mean of their group."""
    scale_rewards: ScaleRewards = "group"
    """What an advantage is divided by, in TRL's words: the standard deviation of its "group", as in the paper, that of
    the whole "batch", or by nothing ("none"), as in Dr. GRPO. docs/training.md says what that does to penalties."""
    std_eps: float = Field(default=0.1, gt=0, validation_alias=AliasChoices("std_eps", "floor"))
    """Added to the standard deviation that advantages are divided by. The paper's code has 1e-4. Where rewards have
    small parts, such as costs, a larger value keeps groups that differ in those alone from counting like the others."""
    cost_weights: tuple[float, ...] = Field(
        default=(), validation_alias=AliasChoices("cost_weights", "thrift")
    )
    """Reward lost for each dollar, at each level of cost sensitivity that the prompt may name, in place of
    `reward.cost`. Each question has one level, drawn by the seed. Empty: the prompt names no level."""
    beta: float = Field(default=0.0, ge=0, validation_alias=AliasChoices("beta", "kl"))
    """At first, the weight in the loss of the KL divergence from the policy that training started from. The paper has
    none; with one, plans that are seldom tried are not given up before they could pay."""
    beta_end: float | None = Field(default=None, ge=0, validation_alias=AliasChoices("beta_end", "kl_end"))
    """The same weight at the end, reached in equal ratios; None: it stays as it is."""
    freeze_prob: float = Field(default=1.0, gt=0, le=1, validation_alias=AliasChoices("freeze_prob", "sure"))
    """At the end of a completion, tokens that were all drawn with this probability or more are left out of the update:
    0.999 halves the work and changes the gradient by a thousandth. 1: only those of probability 1."""
    num_iterations: int = Field(default=1, ge=1)
    """Steps of the optimiser on each batch of rollouts (TRL's name; the paper has 1). From the second on the policy has
    moved away from the one that sampled."""
    clip: float = Field(default=0.2, gt=0, lt=1)
    """How far the ratio of a token's probability to the one that it was sampled with may leave 1, before moving further
    gains nothing."""
    max_norm: float = Field(default=1.0, gt=0)
    """Gradients are scaled down to this norm."""
    dtype: Precision = "auto"
    """Of the matrix products; weights and optimiser are always fp32."""
    minutes: float | None = Field(default=None, gt=0)
    """Stop before this time is exceeded; the learning rate does not depend on it."""
    seed: int = 0
    save_every: int = Field(default=10, ge=1)
    """Iterations from checkpoint to checkpoint; a killed run repeats fewer than that."""
    eval_every: int = Field(default=0, ge=0)
    """Iterations from evaluation to evaluation; 0: none."""


class Stage(Settings):
    """One stage of a curriculum."""

    start: int = Field(ge=0)
    """The iteration from which it holds."""
    hop_shares: tuple[float, ...]
    """Shares of questions with 1, 2, ... hops."""


class Experiment(Settings):
    """The whole configuration file of a GRPO run of the small engine."""

    engine: Literal["auto", "small"] = "auto"
    """Which engine trains: "small" insists on this one; `podium.train.lm` has the other."""
    start: str = "warmstart"
    """A shipped checkpoint's name, or a checkpoint folder."""
    pool: str = "embedded"
    """A shipped pool's name, or a pool file."""
    pool_draw: PoolDraw = PoolDraw()
    tasks: str = "embedded"
    """The task set, or a recording, NAME.parquet: its training questions, each once before any comes again."""
    curriculum: tuple[Stage, ...] = (Stage(start=0, hop_shares=HOP_SHARES),)
    """Of the embedded questions."""
    grpo: GRPOSettings = GRPOSettings()
    reward: RewardSettings = RewardSettings()

    @model_validator(mode="after")
    def _begins_at_once(self) -> Experiment:
        starts = [stage.start for stage in self.curriculum]
        if not starts or starts[0] != 0 or starts != sorted(set(starts)):
            raise ValueError("the curriculum's stages must start at 0 and then later and later")
        return self


FREE = ("grpo.minutes", "grpo.eval_every", "grpo.save_every")
"""Settings that a resumed run may change: they do not change what is learned."""
