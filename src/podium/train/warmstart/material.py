"""What lessons are made of: the embedded questions and teams, or the questions of a recording and its pool.

Each draws the lessons of a stage, says how its policy is asked, and examines the policy at the end.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from tokenizers import Tokenizer

from podium.conductor.prompt import PromptSettings
from podium.config import Settings
from podium.recordings import Recording
from podium.rollout.answers import read_answers
from podium.tasks import open_tasks
from podium.train.model import PolicyModel
from podium.train.warmstart import recorded_lessons
from podium.train.warmstart.gate import FormReport, GateReport, measure, measure_form
from podium.train.warmstart.kinds import name_kinds
from podium.train.warmstart.lessons import PROMPT, Lesson, Shares, draw_lesson
from podium.train.warmstart.recorded_lessons import Course, Read
from podium.train.warmstart.teams import Team, TeamSource, team_of
from podium.train.warmstart.worth import Worth
from podium.workers.pool import open_pool
from podium.workers.replay import ReplayWorker

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

    @property
    def words(self) -> Sequence[str]:
        """What is to be one token each."""
        ...

    def draw(self, shares: Shares, made_up: float) -> DrawLesson:
        """The lessons of a stage; `made_up` is the share that is about a team of its own."""
        ...

    def examine(
        self, model: PolicyModel, tokenizer: Tokenizer, *, made_up: float, cases: int, seed: int
    ) -> Reports:
        """The gate."""
        ...


class Source(Settings):
    """A recording and the pool that it is asked over."""

    tasks: str
    pool: str


@dataclass(frozen=True, slots=True)
class RecordedSettings:
    """What lessons about recordings are told."""

    sources: tuple[Source, ...]
    kinds: int
    thrift: tuple[float, ...]
    question_chars: int
    taught: bool
    """Whether some lessons follow verdicts."""


def open_material(recorded: RecordedSettings) -> Material:
    """That of the embedded tasks, or of recordings, NAME.parquet."""
    first = recorded.sources[0]
    return EmbeddedMaterial(first.pool) if first.tasks == "embedded" else RecordedMaterial(recorded)


class EmbeddedMaterial:
    """Embedded questions, a pool to know well and made-up teams."""

    prompt = PROMPT
    words = ()

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
    """The training questions of recordings, each with its pool.

    Raises:
        ConfigError: a recording or a pool cannot be read.
    """

    def __init__(self, settings: RecordedSettings) -> None:
        opened = [(source, Recording.open(Path(source.tasks))) for source in settings.sources]
        texts = [question.text for _, recording in opened for question in recording.of_split("train")]
        named = name_kinds(texts, settings.kinds) if settings.kinds else {}
        kind_of = {text: f"#{_plain(named[text])}" if text in named else "" for text in texts}
        self._courses = tuple(_course(source, recording, kind_of, settings) for source, recording in opened)
        # A kind is one token, so what is learned about it has a place of its own.
        self.words = tuple(sorted(set(kind_of.values()) - {""}))
        self._unseen = tuple(question.text for question in opened[0][1].of_split("validation"))
        self.prompt = PromptSettings(
            style="brief",
            pool="described",
            examples=0,
            question_chars=settings.question_chars,
            answer_chars=_ANSWER_CHARS,
            levels=len(settings.thrift),
        )

    def draw(self, shares: Shares, made_up: float) -> DrawLesson:
        """Readings of questions, and plans; `made_up` is for teams that profiles describe, and not used."""
        return partial(
            recorded_lessons.draw_lesson,
            courses=self._courses,
            prompt=self.prompt,
            shares=shares,
            later=_LATER,
        )

    def examine(
        self, model: PolicyModel, tokenizer: Tokenizer, *, made_up: float, cases: int, seed: int
    ) -> Reports:
        """Whether plans for questions that it has not seen can be read."""
        most = recorded_lessons.MOST_STEPS
        profiles = self._courses[0].profiles
        asked = recorded_lessons.prompts(self._unseen[:cases], profiles, self.prompt, most)
        workers = len(profiles)
        return {"form": measure_form(model, tokenizer, asked, workers=workers, max_steps=most, seed=seed)}


def _plain(name: str) -> str:
    """Without spaces and marks on letters: a tokenizer of bytes writes an entry of its own as it is."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return letters.replace(" ", "-") or "-".join(f"{ord(letter):x}" for letter in name)


def _course(
    source: Source, recording: Recording, kind_of: Mapping[str, str], settings: RecordedSettings
) -> Course:
    pool = open_pool(source.pool)
    questions = tuple(
        Read(question.text, kind_of[question.text], _answers(recording, question.text))
        for question in recording.of_split("train")
    )
    if not settings.taught:
        return Course(questions, pool.profiles)
    tasks = list(open_tasks(source.tasks, "train", size=len(questions), pool=pool))
    workers = [worker for worker in pool if isinstance(worker, ReplayWorker)]
    answers = asyncio.run(read_answers(tasks, workers))
    return Course(questions, pool.profiles, Worth(answers, kind_of, settings.thrift))


def _answers(recording: Recording, question: str) -> tuple[str, ...]:
    """Of each worker's first response, as far as there is one."""
    given = (samples[0].answer for samples in recording.responses(question).values())
    return tuple(answer for answer in given if answer is not None)
