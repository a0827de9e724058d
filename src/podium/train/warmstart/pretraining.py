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
from podium.train.warmstart.lessons import draw_lesson
from podium.train.warmstart.vocabulary import train_tokenizer


class WarmStartSettings(Settings):
    """How the tiny policy is made. The defaults made the one that ships."""

    seed: int = 0
    steps: int = Field(default=1500, ge=1)
    batch: int = Field(default=64, ge=1)
    """Lessons a step."""
    lr: float = Field(default=2e-3, gt=0)
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


@dataclass(frozen=True, slots=True)
class WarmStartStep:
    """What one step showed."""

    step: int
    loss: float
    """Nats a learned token."""
    tokens: int


def make_tokenizer(settings: WarmStartSettings) -> Tokenizer:
    """The tokenizer of these settings."""
    lessons = (draw_lesson(settings.seed, index) for index in range(settings.vocabulary_lessons))
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
    )
    model = PolicyModel(shape)
    model.initialise(generator(f"warm start/{settings.seed}"))
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
    optimizer = adamw(model, weight_decay=settings.weight_decay)
    course: Iterator[LessonBatch] = batches(
        tokenizer, seed=settings.seed, size=settings.batch, count=settings.steps
    )
    model.train()
    for number, batch in enumerate(course):
        loss = lesson_loss(model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        rate = learning_rate(number, peak=settings.lr, iterations=settings.steps, warmup=settings.warmup)
        step(optimizer, model, rate=rate)
        watch(WarmStartStep(number, float(loss.detach()), int(batch.learned_BT.sum())))
