"""Supervised training of the tiny policy: its settings, its stages, and the run folder that holds the result.

Tokenizer, examples, next-token prediction where an example says so, the acceptance check, and a checkpoint folder that
anyone can load.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, Field
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.prompt import PromptSettings
from podium.config import Settings
from podium.errors import RunMismatchError
from podium.rollout.run_folder import RunFolder, replace_file
from podium.train.checkpoints import StoredDtype, read_model, write_model
from podium.train.model import PolicyModel
from podium.train.optimizer import learning_rate, muon, step
from podium.train.runtime import Precision, generator, resolve_dtype
from podium.train.shape import ModelShape
from podium.warmstart.data import (
    DataSource,
    ExampleBatch,
    RecordedSettings,
    Reports,
    Source,
    batches,
    open_data,
)
from podium.warmstart.embedded_examples import Shares
from podium.warmstart.initial import initialise
from podium.warmstart.tokenizer import BEGIN_ID, END_ID, PAD_ID, save_tokenizer, train_tokenizer


class SupervisedStage(Settings):
    """One stretch of the course."""

    steps: int = Field(ge=1)
    shares: Shares = Shares()
    made_up: float | None = Field(default=None, ge=0, le=1)
    """In place of the settings' own, for this stage."""
    restart: float | None = Field(default=None, gt=0, le=1)
    """The learning rate begins anew here, at this share of its peak; None: its course goes on."""


class WarmStartSettings(Settings):
    """How the tiny policy is made. The defaults made the one that ships."""

    seed: int = 0
    tasks: str = "embedded"
    """What lessons are about: the embedded tasks, or a recording, NAME.parquet."""
    also: tuple[Source, ...] = ()
    """Further recordings."""
    start: str | None = None
    """A policy to go on from, with its tokenizer and sizes; None: a fresh one."""
    cost_weights: tuple[float, ...] = Field(
        default=(), validation_alias=AliasChoices("cost_weights", "thrift")
    )
    """Levels of cost sensitivity that prompts about recordings may name, each with the accuracy that an answer at the
    mean price must bring in taught plans; other plans have nothing to do with them."""
    early_stop: bool = False
    """Whether taught plans are for an executor whose votes stop once they are certain, and so cost less."""
    question_chars: int = Field(default=700, ge=20)
    """Longer questions of a recording are shown without their middle."""
    pool: str = "embedded"
    """A pool to know well: a shipped pool's name or a pool file."""
    made_up: float = Field(default=0.6, ge=0, le=1)
    """Share of lessons that are about a team of their own instead, so that profiles must be read."""
    stages: tuple[SupervisedStage, ...] = (
        SupervisedStage(steps=1500),
        SupervisedStage(steps=2100, shares=Shares(plan=0.55, roll=0.1, relevant=0.5)),
        SupervisedStage(
            steps=4000,
            restart=0.6,
            made_up=0.5,
            shares=Shares(
                plan=0.6,
                team=0.1,
                reading=0.2,
                roll=0.1,
                relevant=0.5,
                fitting=0.4,
                steps=(0.15, 0.2, 0.2, 0.2, 0.25),
            ),
        ),
    )
    """One after the other, each with optimisers of its own."""
    lr: float = Field(default=2e-3, gt=0)
    """Peak learning rate of embedding, norms and biases (AdamW), with a cosine down to 0 at the end or at the next
    restart."""
    matrix_lr: float = Field(default=4e-3, gt=0)
    """The same of the layers' matrices (Muon)."""
    batch: int = Field(default=32, ge=1)
    """Lessons a step."""
    warmup: float = Field(default=0.03, ge=0, le=1)
    vocabulary: int = Field(default=2048, ge=400)
    vocabulary_lessons: int = Field(default=20_000, ge=1)
    """Lessons that the tokenizer is trained on."""
    hidden: int = 192
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    inner: int = 512
    initial: Literal["copying", "plain"] = "copying"
    """Heads that copy from the beginning (`initial`), or none: what is found by association needs free heads."""
    rope_theta: float = 100_000.0
    """Slow rotary positions: what a token is must be found again a hundred tokens on."""
    dtype: Precision = "auto"

    @property
    def recorded(self) -> RecordedSettings:
        """The part that lessons about recordings are told."""
        return RecordedSettings(
            sources=(Source(tasks=self.tasks, pool=self.pool), *self.also),
            cost_weights=self.cost_weights,
            question_chars=self.question_chars,
            taught=any(stage.shares.taught for stage in self.stages),
            early_stop=self.early_stop,
        )

    @property
    def steps(self) -> int:
        """Of all stages."""
        return sum(stage.steps for stage in self.stages)


@dataclass(frozen=True, slots=True)
class WarmStartStep:
    """What one step showed."""

    step: int
    """From 1, over all stages."""
    loss: float
    """Nats a learned token."""
    tokens: int


def make_tokenizer(settings: WarmStartSettings, material: DataSource) -> Tokenizer:
    """The tokenizer of these settings."""
    draw = material.draw(Shares(), settings.made_up)
    lessons = (draw(f"{settings.seed}", index) for index in range(settings.vocabulary_lessons))
    texts = (lesson.prompt + "".join(text for text, _ in lesson.pieces) for lesson in lessons)
    return train_tokenizer(texts, settings.vocabulary, material.words)


def make_model(settings: WarmStartSettings, vocabulary: int) -> PolicyModel:
    """A fresh model of these settings."""
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
    randomness = generator(f"warm start/{settings.seed}")
    if settings.initial == "copying":
        initialise(model, randomness)
    else:
        model.initialise(randomness)
    model.dtype = resolve_dtype(settings.dtype)
    return model


def example_loss(model: PolicyModel, batch: ExampleBatch) -> Tensor:
    """Mean cross-entropy in nats over the learned tokens of a batch."""
    learned_BT = batch.learned_BT[:, 1:]
    logits_NV = model.logits(model.sequences(batch.tokens_BT[:, :-1])[learned_BT])
    return F.cross_entropy(logits_NV.float(), batch.tokens_BT[:, 1:][learned_BT])


def learning_rates(settings: WarmStartSettings) -> list[float]:
    """The learning rate of each step, over all stages, as a share of its peak."""
    courses: list[tuple[float, int]] = []
    for stage in settings.stages:
        if stage.restart is None and courses:
            peak, steps = courses.pop()
            courses.append((peak, steps + stage.steps))
        else:
            courses.append((stage.restart or 1.0, stage.steps))
    return [
        learning_rate(step, peak=peak, iterations=steps, warmup=settings.warmup)
        for peak, steps in courses
        for step in range(steps)
    ]


def train_stage(
    model: PolicyModel, tokenizer: Tokenizer, settings: WarmStartSettings, material: DataSource, place: int
) -> Iterator[WarmStartStep]:
    """Train `model` in place through the stage at `place`, counted from 0, one step for each that is asked for."""
    stage = settings.stages[place]
    done = sum(before.steps for before in settings.stages[:place])
    rates = learning_rates(settings)
    optimizers = muon(model)
    model.train()
    course = batches(
        tokenizer,
        material.draw(stage.shares, settings.made_up if stage.made_up is None else stage.made_up),
        name=f"{settings.seed}/{place}" if place else f"{settings.seed}",
        size=settings.batch,
        count=stage.steps,
    )
    for batch in course:
        loss = example_loss(model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        step(optimizers, model, rates=[rates[done] * settings.matrix_lr, rates[done] * settings.lr])
        done += 1
        yield WarmStartStep(done, float(loss.detach()), int(batch.learned_BT.sum()))


_ROW_EVERY = 20
"""Steps that a row of metrics is the mean of."""
_STAGES = "stages"
"""The folder of policies as finished stages left them."""


def run_warmstart(
    settings: WarmStartSettings,
    folder: Path,
    *,
    show: Callable[[dict[str, Any]], None] = lambda row: None,
    tell: Callable[[str], None] = lambda note: None,
    check_cases: int = 1000,
) -> Reports:
    """Make a policy in the run folder: `policy/`, `metrics.jsonl` and `gate.json`.

    A run that was killed goes on after the last stage that it finished.

    Args:
        show: told of each row of metrics.
        tell: told of what is left out of the questions, a sentence each.
        check_cases: cases of each kind in the gate; questions and made-up teams are new.

    Returns:
        The gate's reports: of embedded lessons over the pool that is known, and over made-up teams.

    Raises:
        CheckpointError: `start` is no checkpoint.
        ConfigError: what lessons are about cannot be read.
        RunMismatchError: the folder belongs to another configuration, or already holds a policy.
    """
    policy = folder / "policy"
    if policy.exists():
        raise RunMismatchError(f"{policy} is there already; choose a new folder, or use the policy in it.")
    material = open_data(settings.recorded, tell)
    start = None if settings.start is None else Checkpoint.read(settings.start)
    run = RunFolder.open(folder, settings)
    tokenizer = make_tokenizer(settings, material) if start is None else start.tokenizer()
    finished = max((int(stage.name) for stage in folder.glob(f"{_STAGES}/[0-9]*")), default=0)
    if finished:
        model = read_model(Checkpoint.read(folder / _STAGES / f"{finished}"))
    elif start is not None:
        model = read_model(start)
    else:
        model = make_model(settings, tokenizer.get_vocab_size())
    model.dtype = resolve_dtype(settings.dtype)
    rows = run.rows()
    rows.truncate(sum(math.ceil(stage.steps / _ROW_EVERY) for stage in settings.stages[:finished]))
    began = time.perf_counter() - max((row["seconds"] for row in rows.read()), default=0.0)
    for place in range(finished, len(settings.stages)):
        course = train_stage(model, tokenizer, settings, material, place)
        while steps := list(islice(course, _ROW_EVERY)):
            row = {
                "step": steps[-1].step,
                "loss": sum(step.loss for step in steps) / len(steps),
                "seconds": time.perf_counter() - began,
            }
            rows.append(row)
            show(row)
        _keep(model, tokenizer, material.prompt, folder / _STAGES / f"{place + 1}", dtype="float32")
    reports = material.examine(
        model, tokenizer, made_up=settings.made_up, cases=check_cases, seed=settings.seed
    )
    measured = {what: asdict(report) for what, report in reports.items()}
    replace_file(folder / "gate.json", json.dumps(measured, indent=2).encode() + b"\n")
    _keep(model, tokenizer, material.prompt, policy)
    shutil.rmtree(folder / _STAGES)
    return reports


def _keep(
    model: PolicyModel,
    tokenizer: Tokenizer,
    prompt: PromptSettings,
    folder: Path,
    *,
    dtype: StoredDtype = "bfloat16",
) -> None:
    """Write a policy so that a kill leaves all of it or none."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    write_policy(model, tokenizer, prompt, part, dtype=dtype)
    part.rename(folder)


def write_policy(
    model: PolicyModel,
    tokenizer: Tokenizer,
    prompt: PromptSettings,
    folder: Path,
    *,
    dtype: StoredDtype = "bfloat16",
) -> None:
    """Write a policy of this tokenizer as a checkpoint folder. Half precision halves what is shipped."""
    config = model.shape.config(bos=BEGIN_ID, eos=END_ID, pad=PAD_ID, dtype=dtype)
    write_model(model, folder, config=config, companions=(), dtype=dtype)
    save_tokenizer(tokenizer, folder)
    asked = json.dumps({"prompt": prompt.model_dump(exclude_none=True)}, indent=2)
    (folder / "podium.json").write_text(asked + "\n", encoding="utf-8")
