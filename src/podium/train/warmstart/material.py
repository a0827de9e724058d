"""What lessons are made of: the embedded questions and teams, or the questions of a recording and its pool.

Each draws the lessons of a stage, says how its policy is asked, and examines the policy at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from tokenizers import Tokenizer

from podium.conductor.prompt import PromptSettings
from podium.recordings import Recording
from podium.train.model import PolicyModel
from podium.train.warmstart import recorded_lessons
from podium.train.warmstart.gate import FormReport, GateReport, measure, measure_form
from podium.train.warmstart.lessons import PROMPT, Lesson, Shares, draw_lesson
from podium.train.warmstart.teams import Team, TeamSource, team_of
from podium.workers.pool import open_pool

DrawLesson = Callable[[str, int], Lesson]
"""The lesson of a course's name and a number; the same one for ever."""

Reports = Mapping[str, GateReport | FormReport]
"""By what was examined."""


class Material(Protocol):
    """Where lessons come from."""

    @property
    def prompt(self) -> PromptSettings: ...

    def draw(self, shares: Shares, made_up: float) -> DrawLesson:
        """The lessons of a stage; `made_up` is the share that is about a team of its own."""
        ...

    def examine(
        self, model: PolicyModel, tokenizer: Tokenizer, *, made_up: float, cases: int, seed: int
    ) -> Reports:
        """The gate."""
        ...


def open_material(tasks: str, pool: str, question_chars: int) -> Material:
    """That of the embedded tasks, or of a recording, NAME.parquet."""
    if tasks == "embedded":
        return EmbeddedMaterial(pool)
    return RecordedMaterial(Path(tasks), pool, question_chars)


class EmbeddedMaterial:
    """Embedded questions, a pool to know well and made-up teams."""

    prompt = PROMPT

    def __init__(self, pool: str) -> None:
        self._pool = pool
        self._known = team_of(open_pool(pool).profiles)

    def draw(self, shares: Shares, made_up: float) -> DrawLesson:
        """Plans, rolls, teams and readings."""
        return partial(draw_lesson, teams=TeamSource(self._known, made_up), shares=shares)

    def examine(
        self, model: PolicyModel, tokenizer: Tokenizer, *, made_up: float, cases: int, seed: int
    ) -> Reports:
        """Over the pool that is known, and over made-up teams."""
        examined: dict[str, Team | None] = {}
        if made_up < 1:
            examined[self._pool] = self._known
        if made_up > 0:
            examined["made-up teams"] = None
        return measure(model, tokenizer, examined, cases=cases, seed=seed)


class RecordedMaterial:
    """The training questions of a recording, and the pool that answers them.

    Raises:
        ConfigError: the recording or the pool cannot be read.
    """

    def __init__(self, recording: Path, pool: str, question_chars: int) -> None:
        opened = Recording.open(recording)
        self._texts = tuple(question.text for question in opened.of_split("train"))
        self._unseen = tuple(question.text for question in opened.of_split("validation"))
        self._profiles = open_pool(pool).profiles
        self.prompt = PromptSettings(
            style="brief", pool="described", examples=0, question_chars=question_chars
        )

    def draw(self, shares: Shares, made_up: float) -> DrawLesson:
        """Readings of questions, and random plans; `made_up` is for teams that profiles describe, and not used."""
        return partial(
            recorded_lessons.draw_lesson,
            texts=self._texts,
            profiles=self._profiles,
            prompt=self.prompt,
            shares=shares,
        )

    def examine(
        self, model: PolicyModel, tokenizer: Tokenizer, *, made_up: float, cases: int, seed: int
    ) -> Reports:
        """Whether plans for questions that it has not seen can be read."""
        most = recorded_lessons.MOST_STEPS
        asked = recorded_lessons.prompts(self._unseen[:cases], self._profiles, self.prompt, most)
        workers = len(self._profiles)
        return {"form": measure_form(model, tokenizer, asked, workers=workers, max_steps=most, seed=seed)}
