"""The configuration file of a run that trains a language model through TRL.

Settings that Podium needs have names here, with the paper's run as their defaults (section A.1). Everything else that
TRL's trainers, peft and bitsandbytes can do is set under `[trl]`, `[lora]` and `[quantization]`, in their own words.
Nothing here loads torch.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from podium.config import Settings
from podium.scoring.settings import ScoringSettings


class GRPOStage(Settings):
    """The reinforcement stage."""

    iterations: int = Field(default=200, ge=1)
    """Each is one batch of rollouts."""
    questions: int = Field(default=4, ge=1)
    """Tasks of an iteration."""
    group: int = Field(default=64, ge=2)
    """Rollouts of each task. With several rounds they are shared out: group / rounds samples of each round, which are
    compared with one another alone."""
    discount: float = Field(default=0.25, ge=0, le=1)
    """With several rounds: the share of a plan's reward that comes from the round after it, d in (1 - d) r0 + d r1."""
    temperature: float = Field(default=1.0, gt=0)
    max_tokens: int = Field(default=1024, ge=1)
    """Longest completion; TRL's `max_completion_length`."""
    lr: float = Field(default=1e-6, gt=0)
    """Peak learning rate; TRL's `learning_rate`."""
    warmup: float = Field(default=0.03, ge=0, lt=1)
    """Share of the iterations in which the learning rate rises."""
    loss_type: str = "bnpo"
    """TRL's `loss_type`: "bnpo", as in the paper's code, "grpo", "dr_grpo", "dapo", ..."""
    scale_rewards: Literal["group", "batch", "none"] = "group"
    """What advantages are divided by, TRL's `scale_rewards`."""
    beta: float = Field(default=0.0, ge=0)
    """Weight of the KL divergence from the start; the paper has none."""
    clip: float = Field(default=0.2, gt=0)
    """TRL's `epsilon`."""
    num_iterations: int = Field(default=1, ge=1)
    """Passes of the optimiser over each batch of rollouts."""
    max_norm: float = Field(default=1.0, gt=0)
    """Gradients are scaled down to this norm; TRL's `max_grad_norm`."""
    micro_batch: int = Field(default=8, ge=1)
    """Rollouts in one forward and backward pass on one device; TRL's `per_device_train_batch_size`."""
    save_every: int = Field(default=20, ge=1)
    """Iterations from checkpoint to checkpoint; a killed run repeats fewer than that."""
    patience: int = Field(default=20, ge=1)
    """The run stops after so many iterations in a row whose groups all have equal rewards: nothing is learned there."""
    eval_every: int = Field(default=0, ge=0)
    """Iterations between evaluations of the policy on validation questions, greedily; 0: none, since they are paid."""
    eval_questions: int = Field(default=100, ge=1)
    """Questions of an evaluation; the command's --eval-questions."""


class SFTStage(Settings):
    """The supervised stage: TRL's SFTTrainer on prompts and plans."""

    examples: str = "random"
    """Where plans come from: a JSONL of messages, a store of traces (NAME.sqlite), or "random": random valid plans."""
    count: int = Field(default=1000, ge=1)
    """Examples at most."""
    min_score: float = Field(default=1.0, ge=0, le=1)
    """Of traces: the least grade."""
    max_cost_usd: float | None = Field(default=None, ge=0)
    """Of traces: the most that a question may have cost."""
    max_plan_chars: int | None = Field(default=None, ge=1)
    """Of traces: the longest plan."""
    epochs: float = Field(default=1.0, gt=0)
    lr: float = Field(default=1e-5, gt=0)
    batch: int = Field(default=16, ge=1)
    """Examples of a step of the optimiser."""
    micro_batch: int = Field(default=4, ge=1)
    save_every: int = Field(default=100, ge=1)
    """Steps from checkpoint to checkpoint."""


class LMExperiment(ScoringSettings):
    """The whole configuration file."""

    engine: Literal["auto", "trl"] = "auto"
    stage: Literal["grpo", "sft"] = "grpo"
    """The command's --stage."""
    start: str
    """The model to train: a folder, a shipped checkpoint's name, or a model's name on the Hugging Face hub."""
    revision: str | None = None
    """Of a model on the hub: a branch, tag or commit."""
    chat_template: str | None = None
    """A Jinja file, for a base model that has no chat template of its own."""
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the chat template, such as enable_thinking = false for Qwen3."""
    grpo: GRPOStage = GRPOStage()
    sft: SFTStage = SFTStage()
    trl: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of TRL's GRPOConfig or SFTConfig, such as bf16, gradient_checkpointing, use_vllm, report_to.
    Each stage takes those that its trainer knows."""
    lora: dict[str, Any] | None = None
    """Arguments of peft's LoraConfig; None: all weights are trained."""
    quantization: dict[str, Any] | None = None
    """Arguments of BitsAndBytesConfig, for QLoRA."""
    scoring_url: str | None = None
    """A scoring service that runs already; None: this run scores for itself, and starts a service for several ranks."""
    scoring_key_env: str | None = None
    """The environment variable that holds that service's key."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.grpo.group % self.rounds or self.grpo.group // self.rounds < 2:
            raise ValueError(
                f"grpo.group = {self.grpo.group} cannot be shared out over {self.rounds} rounds with at least 2 "
                "samples each; give a multiple of the rounds."
            )
        if self.quantization is not None and self.lora is None:
            raise ValueError("quantized weights cannot be trained; add [lora], or leave [quantization] out.")
        if self.prompt.guide:
            raise ValueError("TRL samples without a guide; leave prompt.guide out.")
        if self.prompt.levels != len(self.cost_weights):
            raise ValueError(
                f"the prompt knows {self.prompt.levels} levels of cost sensitivity and cost_weights has "
                f"{len(self.cost_weights)}; give one weight for each level."
            )
        return self

    @property
    def samples(self) -> int:
        """Samples that are compared with one another: those of one question in one round."""
        return self.grpo.group // self.rounds

    @property
    def batch(self) -> int:
        """Completions of an iteration, of all rounds."""
        return self.grpo.questions * self.grpo.group

    @property
    def plans(self) -> int:
        """Plans of the whole run at most, those of its evaluations too."""
        every = self.grpo.eval_every
        evaluations = self.grpo.iterations // every if every else 0
        return self.grpo.iterations * self.batch + evaluations * self.grpo.eval_questions * self.rounds


CHANGEABLE_ON_RESUME = (
    "grpo.save_every",
    "grpo.patience",
    "grpo.eval_every",
    "grpo.eval_questions",
    "scoring_url",
    "scoring_key_env",
    "trl.report_to",
)
"""Settings that a resumed run may change: they do not change what is learned."""
