"""The settings of a GRPO run: what a configuration file may hold under `[grpo]`, and the whole file around it.

Defaults are those of the run whose policy ships. Nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from podium.config import Settings, suggestion
from podium.rollout import RewardSettings
from podium.rollout.random_pools import PoolDraw
from podium.tasks.embedded import HOP_SHARES, EmbeddedTasks
from podium.train.objective import ADVANTAGES, LOSSES, ScaleRewards
from podium.train.runtime import Precision


def _named_in(table: Mapping[str, object]) -> AfterValidator:
    """A validator that accepts the names in a table. It looks them up when the settings are read."""

    def check(name: str) -> str:
        if name not in table:
            raise ValueError(f"{name!r} is not known; {suggestion(name, table)}")
        return name

    return AfterValidator(check)


class GRPOSettings(Settings):
    """One run of GRPO on one device."""

    iterations: int = Field(default=130, ge=1)
    """Number of batches of rollouts. The cosine schedule of the learning rate ends with the last one."""
    questions: int = Field(default=16, ge=1)
    """Tasks in each iteration."""
    group: int = Field(default=16, ge=2)
    """Rollouts of each task (TRL's `num_generations`)."""
    lr: float = Field(default=2e-4, gt=0)
    """Peak learning rate."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """AdamW, as in the paper, or Muon on the layers' matrices. AdamW mostly follows the largest directions of the
    gradient. Muon gives all directions the same length, so the policy also learns what only a few questions teach."""
    warmup: float = Field(default=0.03, ge=0, lt=1)
    """Share of the iterations in which the learning rate rises."""
    temperature: float = Field(default=0.7, gt=0)
    """Sampling temperature in training. After training the most likely plan is run, so a temperature below 1 samples
    plans close to it."""
    max_tokens: int = Field(default=128, ge=1)
    """Most tokens of a completion. A completion that is cut off there is rarely a valid plan, and then earns 0."""
    max_steps: int = Field(default=5, ge=1)
    """Most steps of a plan."""
    early_stop: bool = False
    """Whether a vote calls no more workers once its result is certain."""
    rounds: int = Field(default=1, ge=1)
    """Most rounds of a rollout. With more than 1 the policy sees the result of its plan, then accepts the answer or
    plans again."""
    discount: float | None = Field(default=None, ge=0, le=1)
    """Of several rounds. None: a rollout has one reward, and every round of it is trained on that reward. A number, as
    in the paper (0.25): each round has its own reward, for the answer after it, is compared with the same round of the
    other rollouts, and gives this share of the reward of the round before it."""
    loss_type: Annotated[str, _named_in(LOSSES)] = "bnpo"
    """How the loss averages over tokens, in TRL's words. "bnpo", as in the paper's code: over all tokens of the batch.
    "grpo": over the tokens of each completion, then over completions. "dr_grpo": the sum over all tokens is divided by
    the number of completions times `max_tokens`."""
    advantage: Annotated[str, _named_in(ADVANTAGES)] = "grpo"
    """How rewards become advantages. "grpo": a reward is compared with the mean of its group. "maxrl": the
    difference from the mean is divided by the mean, so that rare right plans weigh most."""
    scale_rewards: ScaleRewards = "group"
    """What an advantage is divided by, in TRL's words. "group", as in the paper: the standard deviation of its group.
    "batch": that of the whole batch. "none", as in Dr. GRPO: nothing. docs/training.md says how each choice changes the
    effect of a penalty."""
    std_eps: float = Field(default=0.1, gt=0)
    """Added to the standard deviation that advantages are divided by. The paper's code has 1e-4. The larger default
    keeps advantages small in groups whose rewards differ only a little, for instance only by costs."""
    cost_weights: tuple[float, ...] = ()
    """Reward lost for each dollar, one weight for each level of cost sensitivity. The weights replace `reward.cost`.
    The seed draws a level for each question, and the prompt names it. Empty: there are no levels."""
    beta: float = Field(default=0.0, ge=0)
    """Weight of the KL term in the loss, in the first iteration. The KL divergence is measured from the policy that
    training started from. The paper has no KL term. With one, the policy does not give up plans that it samples rarely
    before they have earned a reward."""
    beta_end: float | None = Field(default=None, ge=0)
    """Weight of the KL term in the last iteration. Each iteration multiplies the weight by the same factor. None: the
    weight stays at `beta`."""
    skip_suffix_min_prob: float = Field(default=1.0, gt=0, le=1)
    """The update leaves out the last tokens of a completion if the policy drew each of them with at least this
    probability. 0.999 halves the work and changes the gradient by a thousandth. 1 leaves out only tokens of
    probability 1."""
    num_iterations: int = Field(default=1, ge=1)
    """Optimiser steps on each batch of rollouts (TRL's name; the paper has 1). From the second step on, the policy that
    is trained differs from the policy that sampled, and `clip` takes effect."""
    clip: float = Field(default=0.2, gt=0, lt=1)
    """The importance ratio of a token is its probability now over its probability when it was sampled. The loss rewards
    no further change once the ratio is this far from 1."""
    max_norm: float = Field(default=1.0, gt=0)
    """Gradients are clipped to this norm."""
    dtype: Precision = "auto"
    """Dtype of the matrix products. Weights and optimiser states are always fp32."""
    minutes: float | None = Field(default=None, gt=0)
    """Training stops before it takes longer than this. The learning rate does not depend on it."""
    seed: int = 0
    save_every: int = Field(default=10, ge=1)
    """Iterations between checkpoints. A resumed run repeats fewer iterations than that."""
    eval_every: int = Field(default=0, ge=0)
    """Iterations between evaluations; 0: none."""


_Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Stage(Settings):
    """One stage of a curriculum."""

    start: int = Field(ge=0)
    """The first iteration of the stage."""
    hop_shares: tuple[_Share, ...] = Field(min_length=1)
    """Shares of questions with 1, 2, ... hops."""

    @model_validator(mode="after")
    def _draws_questions(self) -> Stage:
        if not sum(self.hop_shares):
            raise ValueError("a stage needs a share above 0")
        return self


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
    """A task set, or a recording, NAME.parquet. An epoch draws each training question once."""
    curriculum: tuple[Stage, ...] = (Stage(start=0, hop_shares=HOP_SHARES),)
    """Stages of generated questions (`embedded`, `world`), whose default is the set's own shares. Other task sets have
    none."""
    grpo: GRPOSettings = GRPOSettings()
    reward: RewardSettings = RewardSettings()

    @model_validator(mode="after")
    def _begins_at_once(self) -> Experiment:
        starts = [stage.start for stage in self.curriculum]
        if not starts or starts[0] != 0 or starts != sorted(set(starts)):
            raise ValueError(
                "the curriculum's first stage must start at 0, and each other after the one before"
            )
        return self

    @model_validator(mode="after")
    def _has_questions_of_all_shares(self) -> Experiment:
        longest = max(len(stage.hop_shares) for stage in self.curriculum)
        if self.tasks == EmbeddedTasks.set_name and longest > len(HOP_SHARES):
            raise ValueError(
                f"embedded questions have at most {len(HOP_SHARES)} hops, and a stage has {longest} shares"
            )
        return self


CHANGEABLE_ON_RESUME = ("grpo.minutes", "grpo.eval_every", "grpo.save_every")
"""Settings that may differ when a run is resumed, because they do not change what the policy learns."""
