"""Pre-training the tiny policy on its lessons: next-token prediction where the lesson says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import Field
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from podium.config import Settings
from podium.train.model import PolicyModel
from podium.train.optimizer import adamw, learning_rate, step
from podium.train.precision import Precision, resolve
from podium.train.randomness import generator
from podium.train.shape import ModelShape
from podium.train.warmstart.course import LessonBatch, batches
from podium.train.warmstart.initial import initialise
from podium.train.warmstart.lessons import Shares, draw_lesson
from podium.train.warmstart.teams import Team, team_of
from podium.train.warmstart.vocabulary import train_tokenizer
from podium.workers.pool import open_pool


class WarmStartStage(Settings):
    """One stretch of the course."""

    steps: int = Field(ge=1)
    lr: float = Field(gt=0)
    """Peak learning rate, with a cosine down to 0 at the stage's end."""
    shares: Shares = Shares()


class WarmStartSettings(Settings):
    """How the tiny policy is made. The defaults made the one that ships."""

    seed: int = 0
    pool: str = "embedded"
    """The pool that every lesson is about, learned by heart: a shipped pool's name or a pool file. "made-up": a
    new team in each lesson, so that profiles must be read."""
    stages: tuple[WarmStartStage, ...] = (
        WarmStartStage(steps=700, lr=1.5e-3),
        WarmStartStage(steps=600, lr=1e-3, shares=Shares(plan=0.7, team=0.1, reading=0.17, roll=0.03)),
    )
    """One after the other, each with an optimiser of its own."""
    batch: int = Field(default=64, ge=1)
    """Lessons a step."""
    warmup: float = Field(default=0.03, ge=0, le=1)
    weight_decay: float = Field(default=0.01, ge=0)
    vocabulary: int = Field(default=2048, ge=400)
    vocabulary_lessons: int = Field(default=20_000, ge=1)
    """Lessons that the tokenizer is trained on."""
    hidden: int = 192
    layers: int = 4
    heads: int = 6
    kv_heads: int = 2
    inner: int = 512
    dtype: Precision = "auto"

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


def the_team(settings: WarmStartSettings) -> Team | None:
    """The team that every lesson is about, if there is one."""
    return None if settings.pool == "made-up" else team_of(open_pool(settings.pool).profiles)


def make_tokenizer(settings: WarmStartSettings) -> Tokenizer:
    """The tokenizer of these settings."""
    team = the_team(settings)
    lessons = (draw_lesson(f"{settings.seed}", index, team) for index in range(settings.vocabulary_lessons))
    texts = (lesson.prompt + "".join(text for text, _ in lesson.pieces) for lesson in lessons)
    return train_tokenizer(texts, settings.vocabulary)


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
        qkv_bias=True,
    )
    model = PolicyModel(shape)
    initialise(model, generator(f"warm start/{settings.seed}"))
    model.dtype = resolve(settings.dtype)
    return model


def lesson_loss(model: PolicyModel, batch: LessonBatch) -> Tensor:
    """Mean cross-entropy in nats over the learned tokens of a batch."""
    learned_BT = batch.learned_BT[:, 1:]
    logits_NV = model.logits(model.sequences(batch.tokens_BT[:, :-1])[learned_BT])
    return F.cross_entropy(logits_NV.float(), batch.tokens_BT[:, 1:][learned_BT])


def pretrain(
    model: PolicyModel,
    tokenizer: Tokenizer,
    settings: WarmStartSettings,
    *,
    watch: Callable[[WarmStartStep], None],
) -> None:
    """Train `model` in place; `watch` is called after each step."""
    model.train()
    done = 0
    for place, stage in enumerate(settings.stages):
        optimizer = adamw(model, weight_decay=settings.weight_decay)
        course: Iterator[LessonBatch] = batches(
            tokenizer,
            name=f"{settings.seed}/{place}" if place else f"{settings.seed}",
            size=settings.batch,
            count=stage.steps,
            team=the_team(settings),
            shares=stage.shares,
        )
        for number, batch in enumerate(course):
            loss = lesson_loss(model, batch)
            loss.backward()  # type: ignore[no-untyped-call]
            rate = learning_rate(number, peak=stage.lr, iterations=stage.steps, warmup=settings.warmup)
            step(optimizer, model, rate=rate)
            done += 1
            watch(WarmStartStep(done, float(loss.detach()), int(batch.learned_BT.sum())))
