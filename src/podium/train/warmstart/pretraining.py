"""Pre-training the tiny policy on its lessons: next-token prediction where the lesson says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import Field
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from podium.config import Settings
from podium.train.model import PolicyModel
from podium.train.optimizer import learning_rate, muon, step
from podium.train.precision import Precision, resolve
from podium.train.randomness import generator
from podium.train.shape import ModelShape
from podium.train.warmstart.course import LessonBatch, batches
from podium.train.warmstart.initial import initialise
from podium.train.warmstart.lessons import Shares, draw_lesson
from podium.train.warmstart.teams import TeamSource, team_of
from podium.train.warmstart.vocabulary import train_tokenizer
from podium.workers.pool import open_pool


class WarmStartStage(Settings):
    """One stretch of the course."""

    steps: int = Field(ge=1)
    shares: Shares = Shares()


class WarmStartSettings(Settings):
    """How the tiny policy is made. The defaults made the one that ships."""

    seed: int = 0
    pool: str = "embedded"
    """A pool to know well: a shipped pool's name or a pool file."""
    made_up: float = Field(default=0.6, ge=0, le=1)
    """Share of lessons that are about a team of their own instead, so that profiles must be read."""
    stages: tuple[WarmStartStage, ...] = (
        WarmStartStage(steps=1500),
        WarmStartStage(steps=2100, shares=Shares(plan=0.55, roll=0.1, relevant=0.5)),
    )
    """One after the other, each with optimisers of its own; the learning rate's course goes over all."""
    lr: float = Field(default=2e-3, gt=0)
    """Peak learning rate of embedding, norms and biases (AdamW), with a cosine down to 0 at the end."""
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
    rope_theta: float = 100_000.0
    """Slow rotary positions: what a token is must be found again a hundred tokens on."""
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


def teams_of(settings: WarmStartSettings) -> TeamSource:
    """Where the lessons' teams come from."""
    return TeamSource(team_of(open_pool(settings.pool).profiles), settings.made_up)


def make_tokenizer(settings: WarmStartSettings, teams: TeamSource) -> Tokenizer:
    """The tokenizer of these settings."""
    lessons = (draw_lesson(f"{settings.seed}", index, teams) for index in range(settings.vocabulary_lessons))
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
        rope_theta=settings.rope_theta,
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
    teams: TeamSource,
    *,
    watch: Callable[[WarmStartStep], None],
) -> None:
    """Train `model` in place; `watch` is called after each step."""
    model.train()
    done = 0
    for place, stage in enumerate(settings.stages):
        optimizers = muon(model)
        course = batches(
            tokenizer,
            name=f"{settings.seed}/{place}" if place else f"{settings.seed}",
            size=settings.batch,
            count=stage.steps,
            teams=teams,
            shares=stage.shares,
        )
        for batch in course:
            loss = lesson_loss(model, batch)
            loss.backward()  # type: ignore[no-untyped-call]
            share = learning_rate(done, peak=1.0, iterations=settings.steps, warmup=settings.warmup)
            step(optimizers, model, rates=[share * settings.matrix_lr, share * settings.lr])
            done += 1
            watch(WarmStartStep(done, float(loss.detach()), int(batch.learned_BT.sum())))
