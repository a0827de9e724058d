"""What lessons are made of: the embedded questions and teams, or the questions of a recording and its pool.

Each draws the lessons of a stage, says how its policy is asked, and examines the policy at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from tokenizers import Tokenizer

from podium.conductor.prompt import PromptSettings
from podium.recordings import Recording
from podium.train.model import PolicyModel
from podium.train.warmstart import recorded_lessons
from podium.train.warmstart.gate import FormReport, GateReport, measure, measure_form
from podium.train.warmstart.kinds import name_kinds
from podium.train.warmstart.lessons import PROMPT, Lesson, Shares, draw_lesson
from podium.train.warmstart.recorded_lessons import Read
from podium.train.warmstart.teams import Team, TeamSource, team_of
from podium.workers.pool import open_pool

_ANSWER_CHARS = 60
"""Enough for "2 of 3 responses agree." and the beginning of the answer."""
_LATER = 0.3
"""Of plans about recordings, those that come after an earlier round."""

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


def open_material(
    tasks: str, pool: str, *, also: Sequence[str], kinds: int, thrift: int, question_chars: int
) -> Material:
    """That of the embedded tasks, or of recordings, NAME.parquet."""
    if tasks == "embedded":
        return EmbeddedMaterial(pool)
    return RecordedMaterial([Path(name) for name in (tasks, *also)], pool, kinds, thrift, question_chars)


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
    """The training questions of recordings, and the pool that answers those of the first.

    Raises:
        ConfigError: a recording or the pool cannot be read.
    """

    def __init__(
        self, recordings: Sequence[Path], pool: str, kinds: int, thrift: int, question_chars: int
    ) -> None:
        opened = [Recording.open(path) for path in recordings]
        texts = [question.text for recording in opened for question in recording.of_split("train")]
        kind_of = name_kinds(texts, kinds) if kinds else {}
        self._questions = tuple(
            Read(question.text, kind_of.get(question.text, ""), _answers(recording, question.text))
            for recording in opened
            for question in recording.of_split("train")
        )
        self._unseen = tuple(question.text for question in opened[0].of_split("validation"))
        self._profiles = open_pool(pool).profiles
        self.prompt = PromptSettings(
            style="brief",
            pool="described",
            examples=0,
            question_chars=question_chars,
            answer_chars=_ANSWER_CHARS,
            levels=thrift,
        )

    def draw(self, shares: Shares, made_up: float) -> DrawLesson:
        """Readings of questions, and random plans; `made_up` is for teams that profiles describe, and not used."""
        return partial(
            recorded_lessons.draw_lesson,
            questions=self._questions,
            profiles=self._profiles,
            prompt=self.prompt,
            shares=shares,
            later=_LATER,
        )

    def examine(
        self, model: PolicyModel, tokenizer: Tokenizer, *, made_up: float, cases: int, seed: int
    ) -> Reports:
        """Whether plans for questions that it has not seen can be read."""
        most = recorded_lessons.MOST_STEPS
        asked = recorded_lessons.prompts(self._unseen[:cases], self._profiles, self.prompt, most)
        workers = len(self._profiles)
        return {"form": measure_form(model, tokenizer, asked, workers=workers, max_steps=most, seed=seed)}


def _answers(recording: Recording, question: str) -> tuple[str, ...]:
    """Of each worker's first response, as far as there is one."""
    given = (samples[0].answer for samples in recording.responses(question).values())
    return tuple(answer for answer in given if answer is not None)
