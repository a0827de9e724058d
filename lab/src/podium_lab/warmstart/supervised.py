"""Supervised training of the tiny policy: settings, stages, and the run folder with the result.

A run trains the tokenizer and then the policy, stage by stage, by next-token prediction on the completions of SFT
examples. Then it runs the acceptance check and writes an ordinary checkpoint folder. `data` draws the examples.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from podium.conductor.checkpoint import Checkpoint, PodiumFile, TrainingScope
from podium.conductor.prompt import PromptSettings
from podium.config import Settings
from podium.errors import RunMismatchError
from podium.files.atomic import atomic_folder, replace_file
from podium.rollout.run_folder import RunFolder
from podium.train.publish import STAGE_NOTE
from podium.train.runtime import Precision, named_generator, resolve_device, resolve_dtype
from podium.train.shape import ModelShape
from podium.train.shared_prefix.checkpoints import StoredDtype, read_model, write_model
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.update import learning_rate
from podium.train.trained_policy import saving
from podium_lab.exercises.cases import PROMPT, SCOPE, known_team
from podium_lab.exercises.teams import ExampleTeam, Shares
from podium_lab.warmstart.acceptance import AcceptanceReport, measure
from podium_lab.warmstart.data import ExampleBatch, batches
from podium_lab.warmstart.examples import draw_example
from podium_lab.warmstart.initial import initialise
from podium_lab.warmstart.muon import muon, step
from podium_lab.warmstart.tokenizer import BEGIN_ID, END_ID, PAD_ID, save_tokenizer, train_tokenizer
from podium_lab.world import made_up_words


class SupervisedStage(Settings):
    """One stage of the training."""

    steps: int = Field(ge=1)
    shares: Shares = Shares()
    synthetic_teams: float | None = Field(default=None, ge=0, le=1)
    """Replaces the settings' own value in this stage."""
    restart: float | None = Field(default=None, gt=0, le=1)
    """The learning-rate schedule restarts here, at this share of its peak. Without it, the schedule continues."""


class WarmStartSettings(Settings):
    """How the tiny policy is trained. The policy that ships was trained with the defaults."""

    seed: int = 0
    tasks: Literal["world"] = "world"
    """Where the examples' questions come from; a policy's card names it."""
    start: str | None = None
    """A checkpoint to continue from, with its tokenizer and sizes. Without it, training starts from fresh weights."""
    pool: str = "orchestra"
    """The pool that the policy learns well: a shipped pool's name or a team file."""
    synthetic_teams: float = Field(default=0.6, ge=0, le=1)
    """Share of the examples that show a synthetic team instead of the pool, so that the policy has to read the
    profiles. Each has a team of its own."""
    stages: tuple[SupervisedStage, ...] = Field(
        default=(
            SupervisedStage(steps=1500),
            SupervisedStage(steps=2100, shares=Shares(plan=0.55, lookup=0.1, relevant=0.5)),
            SupervisedStage(
                steps=4000,
                restart=0.6,
                synthetic_teams=0.5,
                shares=Shares(
                    plan=0.6,
                    team=0.1,
                    reading=0.2,
                    lookup=0.1,
                    relevant=0.5,
                    fitting=0.4,
                    steps=(0.15, 0.2, 0.2, 0.2, 0.25),
                ),
            ),
        ),
        min_length=1,
    )
    """Trained one after the other, each with new optimisers."""
    lr: float = Field(default=2e-3, gt=0)
    """Peak learning rate of embedding, norms and biases (AdamW). It falls along a cosine to 0 at the end or at the next
    restart."""
    matrix_lr: float = Field(default=4e-3, gt=0)
    """Peak learning rate of the layers' matrices (Muon)."""
    batch: int = Field(default=32, ge=1)
    """Examples in each step."""
    warmup: float = Field(default=0.03, ge=0, le=1)
    """Share of the schedule in which the learning rate rises."""
    vocabulary: int = Field(default=2048, ge=400)
    """The most entries of the tokenizer."""
    vocabulary_examples: int = Field(default=20_000, ge=1)
    """Number of examples on which the tokenizer is trained."""
    hidden: int = Field(default=192, ge=1)
    """Each head gets an even share of it."""
    layers: int = Field(default=4, ge=1)
    heads: int = Field(default=4, ge=1)
    kv_heads: int = Field(default=2, ge=1)
    inner: int = Field(default=512, ge=1)
    initial: Literal["copying", "plain"] = "copying"
    """Initial weights: "copying" gives some heads weights that copy (`initial`). "plain" leaves all heads random, which
    is better where the policy has to learn associations."""
    rope_theta: float = Field(default=100_000.0, gt=0)
    """Rotary positions turn slowly, because a head has to recognise a token a hundred tokens later."""
    dtype: Precision = "auto"

    @model_validator(mode="after")
    def _can_be_made(self) -> Self:
        if self.hidden % (2 * self.heads):
            raise ValueError(f"hidden is {self.hidden}; give a multiple of 2 x heads = {2 * self.heads}")
        if self.heads % self.kv_heads:
            raise ValueError(f"heads is {self.heads}; give a multiple of kv_heads = {self.kv_heads}")
        return self

    @property
    def synthetic_shares(self) -> tuple[float, ...]:
        """The share of synthetic teams in each stage."""
        return tuple(
            self.synthetic_teams if stage.synthetic_teams is None else stage.synthetic_teams
            for stage in self.stages
        )

    @property
    def steps(self) -> int:
        """Steps of all stages together."""
        return sum(stage.steps for stage in self.stages)


@dataclass(frozen=True, slots=True)
class WarmStartStep:
    """The result of one step."""

    step: int
    """Counted from 1, over all stages."""
    loss: float
    """Mean over the learned tokens, in nats."""
    tokens: int
    """Number of learned tokens."""


def make_tokenizer(settings: WarmStartSettings, team: ExampleTeam) -> Tokenizer:
    """Train the tokenizer of these settings; `team` is the pool that the policy learns well."""
    examples = (
        draw_example(f"{settings.seed}", index, known=team, synthetic_teams=settings.synthetic_teams)
        for index in range(settings.vocabulary_examples)
    )
    texts = (example.prompt + "".join(text for text, _ in example.pieces) for example in examples)
    return train_tokenizer(texts, settings.vocabulary, made_up_words())


def make_model(settings: WarmStartSettings, vocabulary: int) -> PolicyModel:
    """A fresh model of these settings, in fp32; the caller sets the dtype of its products."""
    shape = ModelShape(
        vocab=vocabulary,
        hidden=settings.hidden,
        layers=settings.layers,
        heads=settings.heads,
        kv_heads=settings.kv_heads,
        head_size=settings.hidden // settings.heads,
        inner=settings.inner,
        rope_theta=settings.rope_theta,
        qkv_bias=True,
    )
    model = PolicyModel(shape)
    randomness = named_generator(f"warm start/{settings.seed}")
    if settings.initial == "copying":
        initialise(model, randomness)
    else:
        model.initialise(randomness)
    return model


def example_loss(model: PolicyModel, batch: ExampleBatch) -> Tensor:
    """Mean cross-entropy in nats over the learned tokens of a batch."""
    learned_BT = batch.learned_BT[:, 1:]
    logits_NV = model.logits(model.sequences(batch.tokens_BT[:, :-1])[learned_BT])
    return F.cross_entropy(logits_NV.float(), batch.tokens_BT[:, 1:][learned_BT])


def learning_rates(settings: WarmStartSettings) -> list[float]:
    """The learning rate of each step, over all stages, as a share of its peak."""
    schedules: list[tuple[float, int]] = []
    for stage in settings.stages:
        if stage.restart is None and schedules:
            peak, steps = schedules.pop()
            schedules.append((peak, steps + stage.steps))
        else:
            schedules.append((stage.restart or 1.0, stage.steps))
    return [
        learning_rate(step, peak=peak, iterations=steps, warmup=settings.warmup)
        for peak, steps in schedules
        for step in range(steps)
    ]


def train_stage(
    model: PolicyModel, tokenizer: Tokenizer, settings: WarmStartSettings, team: ExampleTeam, number: int
) -> Iterator[WarmStartStep]:
    """Train `model` in place through the stage `number`, counted from 0. Each iteration of the result is one step."""
    stage = settings.stages[number]
    done = sum(before.steps for before in settings.stages[:number])
    rates = learning_rates(settings)
    optimizers = muon(model)
    model.train()
    examples = batches(
        tokenizer,
        partial(
            draw_example, known=team, synthetic_teams=settings.synthetic_shares[number], shares=stage.shares
        ),
        name=f"{settings.seed}/{number}" if number else f"{settings.seed}",
        size=settings.batch,
        count=stage.steps,
    )
    for batch in examples:
        loss = example_loss(model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        step(optimizers, model, rates=[rates[done] * settings.matrix_lr, rates[done] * settings.lr])
        done += 1
        yield WarmStartStep(done, float(loss.detach()), int(batch.learned_BT.sum()))


_ROW_EVERY = 20
"""A row of metrics is the mean over this many steps."""
_STAGES = "stages"
"""The folder with the policy after each finished stage."""


def run_warmstart(
    settings: WarmStartSettings,
    folder: Path,
    *,
    show: Callable[[dict[str, Any]], None] = lambda row: None,
    check_cases: int = 1000,
) -> dict[str, AcceptanceReport]:
    """Train a policy in a run folder, on a GPU where there is one. Writes `policy/`, `metrics.jsonl` and `gate.json`
    (the acceptance check).

    A run that was killed continues after the last stage that it finished.

    Args:
        show: called with each row of metrics.
        check_cases: cases of each test of the acceptance check.

    Returns:
        The reports of the acceptance check: one over the pool and one over synthetic teams, if the examples had them.

    Raises:
        CheckpointError: `start` is no checkpoint.
        StoreError: the disk is full or not writable.
        ConfigError: the pool cannot be read, or has a worker that is not of the orchestra.
        RunMismatchError: the folder belongs to another configuration, or already holds a policy.
    """
    team, policy = known_team(settings.pool), folder / "policy"
    if policy.exists():
        raise RunMismatchError(f"{policy} is there already; choose a new folder, or use the policy in it.")
    start = None if settings.start is None else Checkpoint.read(settings.start)
    run = RunFolder.open(folder, settings)
    finished = max((int(stage.name) for stage in folder.glob(f"{_STAGES}/[0-9]*")), default=0)
    last_checkpoint = Checkpoint.read(folder / _STAGES / f"{finished}") if finished else start
    if last_checkpoint is None:
        tokenizer = make_tokenizer(settings, team)
        model = make_model(settings, tokenizer.get_vocab_size())
    else:  # A stage's tokenizer is read, not made again: the lessons may have changed since.
        tokenizer, model = last_checkpoint.tokenizer(), read_model(last_checkpoint)
    device = resolve_device()
    model.to(device)
    model.dtype = resolve_dtype(settings.dtype, device.type)
    rows = run.rows()
    rows.truncate(sum(math.ceil(stage.steps / _ROW_EVERY) for stage in settings.stages[:finished]))
    began = time.perf_counter() - max((row["seconds"] for row in rows.read()), default=0.0)
    for number in range(finished, len(settings.stages)):
        trained_steps = train_stage(model, tokenizer, settings, team, number)
        with device:
            while steps := list(islice(trained_steps, _ROW_EVERY)):
                row = {
                    "step": steps[-1].step,
                    "loss": sum(step.loss for step in steps) / len(steps),
                    "seconds": time.perf_counter() - began,
                }
                rows.append(row)
                show(row)
        stage = folder / _STAGES / f"{number + 1}"
        save_policy(model, tokenizer, PROMPT, stage, scope=SCOPE, dtype="float32")
    model.to("cpu")
    model.dtype = resolve_dtype(settings.dtype)
    teams: dict[str, ExampleTeam | None] = {}
    if any(share < 1 for share in settings.synthetic_shares):
        teams[settings.pool] = team
    if any(share > 0 for share in settings.synthetic_shares):
        teams["made-up teams"] = None
    saves = any(stage.shares.saving for stage in settings.stages)
    reports = measure(model, tokenizer, teams, cases=check_cases, seed=settings.seed, saves=saves)
    measured = {what: asdict(report) for what, report in reports.items()}
    replace_file(folder / STAGE_NOTE, f"{stage_note(settings)}\n".encode())
    replace_file(folder / "gate.json", json.dumps(measured, indent=2).encode() + b"\n")
    save_policy(model, tokenizer, PROMPT, policy, scope=SCOPE)
    shutil.rmtree(folder / _STAGES)
    return reports


def stage_note(settings: WarmStartSettings) -> str:
    """How the policy was trained, as its model card says it."""
    return (
        f"Warm start: supervised on examples of {settings.tasks}, {settings.steps} steps of {settings.batch} examples, "
        f"learning rate {settings.lr:g}"
    )


def save_policy(
    model: PolicyModel,
    tokenizer: Tokenizer,
    prompt: PromptSettings,
    folder: Path,
    *,
    scope: TrainingScope = TrainingScope(),
    dtype: StoredDtype = "bfloat16",
) -> None:
    """Write a policy and its tokenizer as a checkpoint folder, in the place of one that is there. With bfloat16 the
    shipped file is half as large.

    Raises:
        StoreError: the disk is full or not writable.
    """
    config = model.shape.config(bos=BEGIN_ID, eos=END_ID, pad=PAD_ID, dtype=dtype)
    file = PodiumFile(prompt=prompt, conducts=scope)
    podium_json = json.dumps(file.model_dump(include={"prompt", "conducts"}, exclude_none=True), indent=2)
    with saving(folder), atomic_folder(folder) as part:
        write_model(model, part, config=config, companions=(), dtype=dtype)
        save_tokenizer(tokenizer, part)
        (part / "podium.json").write_text(podium_json + "\n", encoding="utf-8")
