"""The configuration of a training: `podium train --config FILE key=value`.

One file serves both stages and both engines. The defaults are those of the paper's run (section A.1). `ENGINE_ONLY` has
the settings that only one engine supports, and a run of the other engine that sets one is refused. The tables `[trl]`,
`[lora]` and `[quantization]` pass further arguments to TRL's trainers, peft and bitsandbytes, under their own names.
`start.resolve` reads the start for what a file leaves to it. Nothing here reads a file or loads torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from podium.config import Settings, suggestion
from podium.errors import ConfigError
from podium.scoring.settings import ScoringSettings
from podium.train.objective import ADVANTAGES, PAPER_STD_EPS, ScaleRewards
from podium.train.runtime import Precision

EngineName = Literal["auto", "shared_prefix", "trl"]


def _named_in(table: Mapping[str, object]) -> AfterValidator:
    """A validator that accepts the names in a table. It looks them up when the settings are read."""

    def check(name: str) -> str:
        if name not in table:
            raise ValueError(f"{name!r} is not known; {suggestion(name, table)}")
        return name

    return AfterValidator(check)


class GateSettings(Settings):
    """What the plans of the first batch must show. If they do not, the run is refused. The defaults let every batch
    pass."""

    readable: float = Field(default=0.0, ge=0, le=1)
    """The least share of plans that can be read. Reinforcement of an unreadable start mostly teaches the form."""
    first_worker_entropy: float = Field(default=0.0, ge=0)
    """The least entropy, in nats, of the worker of the first step."""
    all_workers: bool = False
    """Whether every worker of the pool must be named by some plan."""
    all_steps: bool = False
    """Whether plans of each number of steps, from 1 to `max_steps`, must occur."""
    topologies: int = Field(default=0, ge=0)
    """The fewest different topologies: which earlier steps each step of a plan reads."""


class GRPOSettings(Settings):
    """The stage of reinforcement. Some fields say which setting of TRL means the same."""

    iterations: int = Field(default=200, ge=1)
    """Batches of rollouts. The cosine schedule of the learning rate ends with the last batch."""
    questions: int = Field(default=4, ge=1)
    """The number of different tasks in an iteration."""
    group: int = Field(default=64, ge=2)
    """Completions of each task, over all rounds. With several rounds there are group / rounds rollouts, and the
    completions of a round are compared only with each other."""
    discount: Annotated[float, Field(ge=0, le=1)] | Literal["none"] = 0.25
    """With several rounds, the share of a plan's reward that comes from the round after it: d in (1 - d) r0 + d r1.
    With "none", every plan of a rollout earns the reward of the whole rollout."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature. After training the most likely plan is run, and a temperature below 1 samples near that
    plan."""
    max_tokens: int = Field(default=1024, ge=1)
    """The most tokens of a completion. TRL's `max_completion_length`."""
    lr: float = Field(default=1e-6, gt=0)
    """Peak learning rate. TRL's `learning_rate`."""
    warmup: float = Field(default=0.03, ge=0, lt=1)
    """Share of the iterations in which the learning rate rises."""
    loss_type: str = "bnpo"
    """How the loss averages over tokens. TRL's `loss_type`. "bnpo" averages over all tokens of the batch, as in the
    paper's code. "grpo" averages over the tokens of each completion, then over completions. "dr_grpo" divides the sum
    over all tokens by the number of completions times `max_tokens`. TRL has more."""
    advantage: Annotated[str, _named_in(ADVANTAGES)] = "grpo"
    """How rewards become advantages. "grpo" compares a reward with the mean of its group. "maxrl" divides the
    difference from the mean by the mean, so that rare right plans weigh most, and reads neither `scale_rewards` nor
    `std_eps`."""
    scale_rewards: ScaleRewards = "group"
    """What an advantage is divided by: the standard deviation of its "group", as in the paper, that of the whole
    "batch", or "none", as in Dr. GRPO."""
    std_eps: float = Field(default=PAPER_STD_EPS, gt=0)
    """A number that is added to the standard deviation. With 0.1, advantages stay small in groups whose rewards differ
    only a little, for instance only by costs."""
    beta: float = Field(default=0.0, ge=0)
    """Weight of the KL divergence from the start in the loss. The paper has none."""
    clip: float = Field(default=0.2, gt=0, lt=1)
    """How far a token's importance ratio may be from 1 before the loss rewards no further change. TRL's `epsilon`."""
    num_iterations: int = Field(default=1, ge=1)
    """Steps of the optimiser on each batch of rollouts. From the second step on, `clip` takes effect."""
    skip_suffix_min_prob: float = Field(default=1.0, gt=0, le=1)
    """The update leaves out the last tokens of a completion if the policy drew each of them with at least this
    probability. 0.999 halves the work and changes the gradient by a thousandth. 1 leaves out only tokens of
    probability 1."""
    max_norm: float = Field(default=1.0, gt=0)
    """The largest norm of the gradient, which is scaled down to it. TRL's `max_grad_norm`."""
    micro_batch: int = Field(default=8, ge=1)
    """Rollouts in one forward and backward pass on one device. TRL's `per_device_train_batch_size`. The engine
    shared_prefix takes one question at a time."""
    gate: GateSettings = GateSettings()
    """What the start must show before reinforcement begins."""
    minutes: float | None = Field(default=None, gt=0)
    """The most minutes of the training. The learning rate does not depend on them."""
    patience: int = Field(default=20, ge=1)
    """The run stops after this many iterations in a row in which every group has equal rewards, since then nothing is
    learned."""
    save_every: int = Field(default=20, ge=1)
    """Iterations from checkpoint to checkpoint. A resumed run repeats fewer iterations than that."""
    eval_every: int = Field(default=0, ge=0)
    """Iterations between greedy evaluations of the policy on validation questions. With 0 there are no evaluations,
    since they cost money."""
    eval_questions: int = Field(default=100, ge=1)
    """Questions of an evaluation."""


class SFTSettings(Settings):
    """The supervised stage: prompts and plans."""

    examples: str = "random"
    """Where plans come from: a JSONL of messages, a store of traces (NAME.sqlite), or "random": random valid plans."""
    count: int = Field(default=1000, ge=1)
    """The most examples."""
    group: int = Field(default=1, ge=1)
    """Random plans for each prompt. The engine shared_prefix reads the prompt once, so it learns more plans in the same
    time."""
    min_score: float = Field(default=1.0, ge=0, le=1)
    """The least grade of a trace whose plans are learned."""
    epochs: float = Field(default=1.0, gt=0)
    lr: float = Field(default=1e-5, gt=0)
    batch: int = Field(default=16, ge=1)
    """Examples of a step of the optimiser."""
    micro_batch: int = Field(default=4, ge=1)
    """Examples in one forward and backward pass on one device. The engine shared_prefix reads their common beginning
    once."""
    save_every: int = Field(default=100, ge=1)
    """Steps from checkpoint to checkpoint."""


class CurriculumStage(Settings):
    """The settings of a generated task set, from some iteration on."""

    start: int = Field(ge=0)
    """The first iteration of the stage."""
    settings: dict[str, Any]
    """The settings of the task set, as its constructor names them."""


class TrainSettings(ScoringSettings):
    """The whole configuration file."""

    engine: EngineName = "auto"
    """The engine. "shared_prefix" reads the prompt of a group once, and trains models in the shape of Llama and Qwen2
    with up to a billion parameters. "trl" trains any chat model. "auto" takes shared_prefix for policies of at most 50
    million parameters that read plain text, and trl for all others."""
    dtype: Precision = "auto"
    """Dtype of the matrix products. Weights and optimiser states are fp32. With the engine shared_prefix, "auto"
    takes bf16 if the device multiplies it natively, else fp32. With trl, it takes what `[trl]` says (bf16, fp16),
    else fp32."""
    stage: Literal["grpo", "sft"] = "grpo"
    """The stage that the command's option --stage names."""
    start: str
    """The model to train: a folder, a shipped checkpoint's name, or a model's name on the Hugging Face hub. Keys that
    the table [prompt] leaves out are taken from the start's podium.json."""
    revision: str | None = None
    """The branch, tag or commit of a model on the hub."""
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the chat template, such as enable_thinking = false for Qwen3."""
    curriculum: tuple[CurriculumStage, ...] = ()
    """Stages of a generated task set. Default: the task set's own shares. Other task sets have no stages."""
    grpo: GRPOSettings = GRPOSettings()
    sft: SFTSettings = SFTSettings()
    trl: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of TRL's GRPOConfig or SFTConfig, such as bf16, gradient_checkpointing, use_vllm, report_to.
    Each stage takes the arguments that its trainer knows."""
    lora: dict[str, Any] | None = None
    """Arguments of peft's LoraConfig; the engine shared_prefix takes r and lora_alpha. Default: all weights are
    trained."""
    quantization: dict[str, Any] | None = None
    """Arguments of transformers' BitsAndBytesConfig, for QLoRA."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.grpo.group % self.rounds or self.rollouts < 2:
            raise ValueError(
                f"grpo.group = {self.grpo.group} cannot be shared out over {self.rounds} rounds with at least 2 "
                "completions each; give a multiple of the rounds."
            )
        if self.quantization is not None and self.lora is None:
            raise ValueError("quantized weights cannot be trained; add [lora], or leave [quantization] out.")
        starts = [stage.start for stage in self.curriculum]
        if starts and (starts[0] != 0 or starts != sorted(set(starts))):
            raise ValueError("the curriculum's first stage starts at 0, and each other after the one before")
        return self

    @property
    def rollouts(self) -> int:
        """The rollouts of a question. In each round, their completions are compared with each other."""
        return self.grpo.group // self.rounds

    @property
    def batch(self) -> int:
        """Completions of an iteration, over all rounds."""
        return self.grpo.questions * self.grpo.group

    def plans_with(self, evaluated: int) -> int:
        """The most plans of the whole run if each evaluation has so many questions."""
        every = self.grpo.eval_every
        evaluations = self.grpo.iterations // every if every else 0
        return self.grpo.iterations * self.batch + evaluations * evaluated * self.rounds


ENGINE_ONLY: Mapping[str, tuple[str, ...]] = {
    "shared_prefix": ("grpo.advantage", "grpo.std_eps", "grpo.skip_suffix_min_prob"),
    "trl": ("trl", "quantization"),
}
"""For each engine, the settings that the other engine lacks."""

CHANGEABLE_ON_RESUME = (
    "grpo.minutes",
    "grpo.micro_batch",
    "grpo.save_every",
    "grpo.patience",
    "grpo.eval_every",
    "grpo.eval_questions",
    "sft.micro_batch",
    "sft.save_every",
    "trl.report_to",
)
"""Settings that a resumed run may change, since they do not change what is learned."""


def unequal_levels(settings: TrainSettings) -> Iterator[ConfigError]:
    """A refusal if the prompt has other levels of cost sensitivity than `cost_weights` has weights."""
    levels, weights = settings.prompt.levels, len(settings.cost_weights)
    if levels != weights:
        yield ConfigError(
            f"The prompt knows {levels} levels of cost sensitivity and cost_weights has {weights}; give one weight for "
            "each level.",
            ("cost_weights",),
        )


def settings_of_other_engine(settings: TrainSettings) -> Iterator[ConfigError]:
    """A refusal for each setting of this stage that only the other engine has, and that this run changes."""
    default = TrainSettings(start="-")
    for other, keys in ENGINE_ONLY.items():
        if other == settings.engine:
            continue
        for key in keys:
            of_stage = settings.stage == "grpo" or not key.startswith("grpo.")
            if of_stage and setting_value(settings, key) != setting_value(default, key):
                yield ConfigError(
                    f"{key} is a setting of the engine {other}, and this run's is {settings.engine}: leave it out, or "
                    f'set engine = "{other}".',
                    tuple(key.split(".")),
                )


def setting_value(settings: Any, key: str) -> Any:
    """The value of a dotted key."""
    for part in key.split("."):
        settings = getattr(settings, part)
    return settings
