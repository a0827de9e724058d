"""Trains the workers of the orchestra, one after the other, and measures what each one then knows.

A worker is trained by next-token prediction on the answers of its lessons. Its folder is an ordinary checkpoint with a
`card.json`: how often it answers rightly, by relation and by the form of the subtask. A run that was killed continues
with the last part of the worker that it finished.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator
from tokenizers import Tokenizer

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.prompt import PromptSettings
from podium.config import Settings, suggestion
from podium.files.atomic import replace_file
from podium.rollout.run_folder import RunFolder
from podium.train.runtime import resolve_device, resolve_dtype
from podium.train.shared_prefix.checkpoints import read_model
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.update import learning_rate
from podium_lab.exercises.abilities import ABILITIES, Ability
from podium_lab.small_workers.lessons import LessonStage, draw_lesson
from podium_lab.small_workers.measuring import measure_worker
from podium_lab.warmstart.data import batches
from podium_lab.warmstart.muon import muon, step
from podium_lab.warmstart.supervised import WarmStartSettings, example_loss, make_model, save_policy
from podium_lab.warmstart.tokenizer import train_tokenizer

POOL = "pool.toml"
"""The team file in the run folder."""
_WORKER = """[[worker]]
name = "{name}"
kind = "local"
path = "{name}"
reads = "view"
price_compute = true
profile = "{profile}"
"""
_VOTE = """[[worker]]
name = "vote"
kind = "vote"
profile = "Counts votes."
"""
_PROMPT = PromptSettings(style="brief")
_ROW_EVERY = 200
"""A row of metrics is the mean over this many steps."""


class OrchestraSettings(Settings):
    """How the workers are trained."""

    seed: int = 0
    workers: tuple[str, ...] = tuple(ability.name for ability in ABILITIES)
    """Those to train, by name."""
    steps: int = Field(default=4000, ge=1)
    """Steps of each worker in the first stage of its lessons, to be multiplied by its `steps_multiplier`."""
    plan_steps: int = Field(default=1200, ge=0)
    """Steps in the second stage, whose learning rate starts again at `plan_rate` of its peak."""
    plan_rate: float = Field(default=0.5, gt=0, le=1)
    parts: int = Field(default=4, ge=1)
    """After each part of the first stage, and after the second, the worker is kept, so that a killed run loses no more
    than a part."""
    batch: int = Field(default=32, ge=1)
    lr: float = Field(default=2e-3, gt=0)
    matrix_lr: float = Field(default=4e-3, gt=0)
    warmup: float = Field(default=0.03, ge=0, le=1)
    vocabulary: int = Field(default=2048, ge=400)
    vocabulary_lessons: int = Field(default=1500, ge=1)
    """Lessons of each worker on which the tokenizer is trained."""
    layers: int = Field(default=4, ge=1)
    width_multiplier: int = Field(default=1, ge=1)
    """How many times as wide as in `abilities` the models are, with as many times the heads. With 5, and 8 layers, most
    have 37 million parameters."""

    @field_validator("workers")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        known = [ability.name for ability in ABILITIES]
        for name in names:
            if name not in known:
                raise ValueError(f"{name!r} is no worker of the orchestra; {suggestion(name, known)}")
        return names


def train_orchestra(
    settings: OrchestraSettings,
    folder: Path,
    show: Callable[[str, dict[str, Any]], None] = lambda name, row: None,
) -> None:
    """Train the workers that are not yet in the run folder. Several processes may do so at once, each with its own
    workers: all have the same tokenizer.

    Args:
        folder: gets a folder for each worker, and a team file of all.
        show: called with a worker's name and each row of its metrics.

    Raises:
        RunMismatchError: the folder belongs to another configuration.
    """
    RunFolder.open(folder, settings, changeable={"workers"})
    untrained = [
        ability
        for ability in ABILITIES
        if ability.name in settings.workers and not _is_trained(folder, ability)
    ]
    if untrained:
        tokenizer = _kept_tokenizer(folder) or orchestra_tokenizer(settings)
        for ability in untrained:
            train_worker(ability, tokenizer, settings, folder / ability.name, show)
    _write_pool(folder)


def _is_trained(folder: Path, ability: Ability) -> bool:
    return (folder / ability.name / "card.json").is_file()


def _write_pool(folder: Path) -> None:
    """Write the team file of all workers that the run folder has, and a vote.

    Again if another process has finished a worker meanwhile: it may have written its team file before this one.
    """
    written: list[Ability] | None = None
    while written != (trained := [ability for ability in ABILITIES if _is_trained(folder, ability)]):
        tables = [_WORKER.format(name=ability.name, profile=ability.profile) for ability in trained]
        replace_file(folder / POOL, "\n".join([*tables, _VOTE]).encode())
        written = trained


def _kept_tokenizer(folder: Path) -> Tokenizer | None:
    """The tokenizer of the workers that the run folder has, trained or half trained; of none that is half written."""
    files = (*folder.glob("*/tokenizer.json"), *folder.glob("*/[0-9]*/tokenizer.json"))
    folder_with_tokenizer = next(
        (path.parent for path in files if not path.parent.name.endswith(".part")), None
    )
    return None if folder_with_tokenizer is None else Checkpoint.read(folder_with_tokenizer).tokenizer()


def orchestra_tokenizer(settings: OrchestraSettings) -> Tokenizer:
    """The tokenizer that all workers share."""
    lessons = (
        draw_lesson(ability, "tokenizer", index)
        for ability in ABILITIES
        for index in range(settings.vocabulary_lessons)
    )
    texts = (lesson.prompt + lesson.pieces[0][0] for lesson in lessons)
    return train_tokenizer(texts, settings.vocabulary)


def train_worker(
    ability: Ability,
    tokenizer: Tokenizer,
    settings: OrchestraSettings,
    folder: Path,
    show: Callable[[str, dict[str, Any]], None],
) -> None:
    """Train one worker, on a GPU where there is one, and write its folder."""
    parts = folder.with_name(f".{ability.name}")
    finished = max((int(part.name) for part in parts.glob("[0-9]*")), default=0)
    if finished:
        model = read_model(Checkpoint.read(parts / f"{finished}"))
    else:
        model = make_model(_sizes(ability, settings), tokenizer.get_vocab_size())
    device = resolve_device()
    model.to(device)
    model.dtype = resolve_dtype("auto", device.type)
    remaining_parts = _parts(ability, settings)[finished:]
    curve = parts / "curve.json"
    rows: list[dict[str, Any]] = json.loads(curve.read_text()) if finished else []
    if remaining_parts:  # The run may have been killed between a part's rows and its model.
        rows = [row for row in rows if row["step"] <= remaining_parts[0].begin]
    for part in remaining_parts:
        with device:
            for row in _train_part(model, ability, tokenizer, settings, part):
                rows.append(row)
                show(ability.name, row)
        parts.mkdir(exist_ok=True)
        replace_file(curve, json.dumps(rows).encode())
        save_policy(model, tokenizer, _PROMPT, parts / f"{part.number + 1}", dtype="float32")
    save_policy(model, tokenizer, _PROMPT, folder)
    card = measure_worker(folder, ability)
    replace_file(folder / "card.json", _card_text(card | {"curve": rows}).encode())
    shutil.rmtree(parts)


def _sizes(ability: Ability, settings: OrchestraSettings) -> WarmStartSettings:
    hidden = ability.hidden * settings.width_multiplier
    return WarmStartSettings(
        seed=settings.seed,
        hidden=hidden,
        inner=hidden * 8 // 3 // 32 * 32,
        layers=settings.layers,
        heads=4 * settings.width_multiplier,
        kv_heads=2 * settings.width_multiplier,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """Some steps of one stage of a worker's training."""

    stage: LessonStage
    number: int
    """The number of the part, from 0, which seeds its lessons."""
    begin: int
    """The first step, counted over both stages."""
    rates: tuple[float, ...]
    """The learning rate of each step, as a share of its peak."""


def _parts(ability: Ability, settings: OrchestraSettings) -> list[_Part]:
    steps = settings.steps * ability.steps_multiplier
    plan_steps = settings.plan_steps * ability.steps_multiplier

    def rates(first: int, last: int, of: int, peak: float) -> tuple[float, ...]:
        return tuple(
            learning_rate(number, peak=peak, iterations=of, warmup=settings.warmup)
            for number in range(first, last)
        )

    cuts = [steps * number // settings.parts for number in range(settings.parts + 1)]
    parts = [
        _Part("facts", number, first, rates(first, last, steps, 1.0))
        for number, (first, last) in enumerate(pairwise(cuts))
    ]
    if plan_steps:
        parts.append(
            _Part("plans", settings.parts, steps, rates(0, plan_steps, plan_steps, settings.plan_rate))
        )
    return parts


def _train_part(
    model: PolicyModel,
    ability: Ability,
    tokenizer: Tokenizer,
    settings: OrchestraSettings,
    part: _Part,
) -> Iterator[dict[str, Any]]:
    optimizers = muon(model)
    model.train()
    examples = batches(
        tokenizer,
        lambda name, index: draw_lesson(ability, name, index, part.stage),
        name=f"{settings.seed}/{part.number}",
        size=settings.batch,
        count=len(part.rates),
    )
    losses: list[float] = []
    began = time.process_time()
    for number, (batch, rate) in enumerate(zip(examples, part.rates, strict=True), 1):
        loss = example_loss(model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        step(optimizers, model, rates=[rate * settings.matrix_lr, rate * settings.lr])
        losses.append(float(loss.detach()))
        if len(losses) == _ROW_EVERY or number == len(part.rates):
            seconds = time.process_time() - began
            yield {
                "step": part.begin + number,
                "loss": round(sum(losses) / len(losses), 4),
                "part_cpu_s": round(seconds, 1),
            }
            losses.clear()


def _card_text(card: Mapping[str, Any]) -> str:
    """The card as JSON, with a line for each form of the subtask."""
    head = ", ".join(f"{json.dumps(key)}: {json.dumps(card[key])}" for key in ("worker", "device"))
    lines = [f"  {json.dumps(form)}: {json.dumps(right)}" for form, right in card["right"].items()]
    rows = [f"  {json.dumps(row)}" for row in card["curve"]]
    right, curve = ",\n".join(lines), ",\n".join(rows)
    return f'{{{head},\n "right": {{\n{right}}},\n "curve": [\n{curve}]}}\n'
