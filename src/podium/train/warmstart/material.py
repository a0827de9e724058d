"""What lessons are made of: the embedded questions and teams, or the questions of a recording and its pool.

Each draws the lessons of a stage, says how its policy is asked, and examines the policy at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from pydantic import Field
from tokenizers import Tokenizer

from podium.conductor.prompt import PromptSettings, rating_words
from podium.config import Settings
from podium.errors import ConfigError
from podium.orchestrator.team import open_pool
from podium.recordings import Recording
from podium.rollout.answers import measurable, read_answers
from podium.tasks import ALL, open_tasks, warnings_of
from podium.tasks.overlap import question_key
from podium.train.model import PolicyModel
from podium.train.warmstart import recorded_lessons
from podium.train.warmstart.committees import MOST_STEPS
from podium.train.warmstart.gate import FormReport, GateReport, measure, measure_form
from podium.train.warmstart.lessons import PROMPT, Lesson, Shares, draw_lesson
from podium.train.warmstart.recorded_lessons import Course, Read
from podium.train.warmstart.teams import Team, TeamSource, team_of
from podium.train.warmstart.worth import Worth
from podium.workers.pool import Pool
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
    rounds: int = Field(default=1, ge=1, le=2)
    """2: taught plans may ask few at first, and more where they disagree."""
    weight: float = Field(default=1.0, gt=0)
    """Share of lessons, beside the others'."""


@dataclass(frozen=True, slots=True)
class RecordedSettings:
    """What lessons about recordings are told."""

    sources: tuple[Source, ...]
    cost_weights: tuple[float, ...]
    question_chars: int
    taught: bool
    """Whether some lessons follow verdicts."""
    early_stop: bool = False
    """Whether taught plans are priced as votes that stop early cost."""


def open_material(recorded: RecordedSettings, tell: Callable[[str], None] = lambda note: None) -> Material:
    """That of the embedded tasks, or of recordings, NAME.parquet.

    Args:
        tell: told of what is left out of a recording's questions, a sentence each.

    Raises:
        ConfigError: both at once, or what is told of one is for the other.
    """
    embedded = [source.tasks == "embedded" for source in recorded.sources]
    if not any(embedded):
        return RecordedMaterial(recorded, tell)
    if len(embedded) > 1 or recorded.cost_weights:
        raise ConfigError(
            "Lessons about embedded tasks have no further sources and no cost weights: leave `also` and "
            "`cost_weights` out."
        )
    return EmbeddedMaterial(recorded.sources[0].pool)


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

    A question of which another of the recordings holds the same wording out is left out.

    Raises:
        ConfigError: a recording or a pool cannot be read, or has nothing to examine a policy on.
    """

    def __init__(self, settings: RecordedSettings, tell: Callable[[str], None]) -> None:
        opened = [(source, Recording.open(Path(source.tasks))) for source in settings.sources]
        withheld = {
            question_key(question.text)
            for _, recording in opened
            for question in recording.questions
            if question.split != "train"
        }
        self._courses = tuple(
            _course(source, recording, settings, withheld, tell) for source, recording in opened
        )
        # A kind is one token, so what is learned about it has a place of its own; so is what a rating says.
        kinds = {
            f"#{kind}"
            for course in self._courses
            if course.pool.ratings
            for kind in course.pool.ratings.kinds
        }
        rated = any(course.pool.ratings for course in self._courses)
        self.words = (*sorted(kinds), *(rating_words() if rated else ()))
        self._unseen = tuple(question.text for question in opened[0][1].of_split("validation"))
        if not self._unseen:
            raise ConfigError(
                f"{opened[0][1].path} has no validation questions, on which the policy is examined at the end."
            )
        self.prompt = PromptSettings(
            style="brief",
            pool="described",
            examples=0,
            question_chars=settings.question_chars,
            answer_chars=_ANSWER_CHARS,
            levels=len(settings.cost_weights),
            rounds=True,
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
        pool = self._courses[0].pool
        asked = recorded_lessons.prompts(self._unseen[:cases], pool, self.prompt)
        most, workers = MOST_STEPS, len(pool)
        return {"form": measure_form(model, tokenizer, asked, workers=workers, max_steps=most, seed=seed)}


def _course(
    source: Source,
    recording: Recording,
    settings: RecordedSettings,
    withheld: Collection[str],
    tell: Callable[[str], None],
) -> Course:
    pool = open_pool(source.pool)
    samples = [worker.samples for worker in pool if isinstance(worker, ReplayWorker)]
    if source.rounds > 1 and max(samples, default=1) > 1:
        raise ConfigError(
            f"{source.tasks}: rounds = {source.rounds} is taught where each worker has one sample; set rounds = 1."
        )
    opened = open_tasks(source.tasks, "train", size=ALL, pool=pool)
    for note in warnings_of(opened):
        tell(note)
    tasks = [task for task in opened if question_key(task.question.text) not in withheld]
    kind_of = {task.question.text: _kind(pool, task.question.text) for task in tasks}
    questions = tuple(Read(text, kind, _answers(recording, text)) for text, kind in kind_of.items())
    worth = None
    if settings.taught:
        answers = asyncio.run(read_answers(tasks, measurable(pool, tasks)))
        worth = Worth(answers, kind_of, settings.cost_weights, source.rounds, early_stop=settings.early_stop)
    return Course(questions, pool, worth, source.weight)


def _kind(pool: Pool, question: str) -> str:
    """As the prompt names it; empty where it names none."""
    kind = pool.ratings.kind_of(question) if pool.ratings else ""
    return f"#{kind}" if kind else ""


def _answers(recording: Recording, question: str) -> tuple[str, ...]:
    """Of each worker's first response, as far as there is one."""
    given = (samples[0].answer for samples in recording.responses(question).values())
    return tuple(answer for answer in given if answer is not None)
