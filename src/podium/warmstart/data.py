"""Where SFT examples come from, and batches of them.

A source is the embedded questions and teams, or the questions of recordings and their pools. It draws the examples of
a stage, says how its policy is prompted, and checks the policy at the end. Batches are endless and the same for one
name; examples are drawn several batches at a time and sorted by length, so that little of a batch is padding.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Protocol

import torch
from pydantic import Field
from tokenizers import Tokenizer
from torch import Tensor

from podium.conductor.prompt import PromptSettings, numbered_pool, rating_words
from podium.config import Settings
from podium.errors import ConfigError
from podium.orchestrator.team import open_pool
from podium.ratings.answers import measurable, read_answers
from podium.recordings import Recording
from podium.tasks import ALL, open_tasks, warnings_of
from podium.tasks.overlap import question_key
from podium.train.model import PolicyModel
from podium.warmstart import recorded_examples as recorded_lessons
from podium.warmstart.acceptance import AcceptanceReport, FormatReport, measure, measure_format
from podium.warmstart.committee_value import CommitteeValues
from podium.warmstart.embedded_examples import (
    PROMPT,
    SFTExample,
    Shares,
    Team,
    TeamSource,
    draw_example,
    team_of,
)
from podium.warmstart.recorded_examples import MOST_STEPS, Read, RecordedSource
from podium.warmstart.tokenizer import BEGIN_ID, END_ID, PAD_ID
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker

_SORTED_TOGETHER = 8
"""Batches whose lessons are sorted by length together."""


@dataclass(frozen=True, slots=True)
class ExampleBatch:
    """Whole texts, padded on the right."""

    tokens_BT: Tensor
    learned_BT: Tensor
    """True where the token is to be predicted from what stands before it."""


def batches(
    tokenizer: Tokenizer,
    draw: Callable[[str, int], SFTExample] = draw_example,
    *,
    name: str,
    size: int,
    count: int,
) -> Iterator[ExampleBatch]:
    """`count` batches of `size` lessons of the course called `name`; `draw` makes each by name and number."""
    index = 0
    while count > 0:
        drawn = [encode(draw(name, index + i), tokenizer) for i in range(size * _SORTED_TOGETHER)]
        index += len(drawn)
        drawn.sort(key=lambda lesson: len(lesson[0]))
        order = list(range(_SORTED_TOGETHER))
        Random(f"course/{name}/{index}").shuffle(order)
        for place in order[:count]:
            yield _padded(drawn[place * size : (place + 1) * size])
        count -= len(order)


def encode(lesson: SFTExample, tokenizer: Tokenizer) -> tuple[list[int], list[bool]]:
    """Tokens of a lesson between BEGIN and END, and which of them are learned; END is."""
    tokens = [BEGIN_ID, *tokenizer.encode(lesson.prompt, add_special_tokens=False).ids]
    learned = [False] * len(tokens)
    for text, learn in lesson.pieces:
        piece = tokenizer.encode(text, add_special_tokens=False).ids
        tokens += piece
        learned += [learn] * len(piece)
    return [*tokens, END_ID], [*learned, True]


def _padded(lessons: list[tuple[list[int], list[bool]]]) -> ExampleBatch:
    longest = max(len(tokens) for tokens, _ in lessons)
    tokens_BT = torch.full((len(lessons), longest), PAD_ID)
    learned_BT = torch.zeros(len(lessons), longest, dtype=torch.bool)
    for row, (tokens, learned) in enumerate(lessons):
        tokens_BT[row, : len(tokens)] = torch.tensor(tokens)
        learned_BT[row, : len(learned)] = torch.tensor(learned)
    return ExampleBatch(tokens_BT, learned_BT)


_ANSWER_CHARS = 60
"""Enough for "2 of 3 responses agree." and the beginning of the answer."""
_LATER = 0.3
"""Of plans about recordings, those that come after an earlier round."""

DrawExample = Callable[[str, int], SFTExample]
"""The lesson of a course's name and a number; the same one for ever."""

Reports = Mapping[str, AcceptanceReport | FormatReport]
"""By what was examined."""


class DataSource(Protocol):
    """Where lessons come from."""

    @property
    def prompt(self) -> PromptSettings: ...

    @property
    def words(self) -> Sequence[str]:
        """What is to be one token each."""
        ...

    def draw(self, shares: Shares, made_up: float) -> DrawExample:
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


def open_data(recorded: RecordedSettings, tell: Callable[[str], None] = lambda note: None) -> DataSource:
    """That of the embedded tasks, or of recordings, NAME.parquet.

    Args:
        tell: told of what is left out of a recording's questions, a sentence each.

    Raises:
        ConfigError: both at once, or what is told of one is for the other.
    """
    embedded = [source.tasks == "embedded" for source in recorded.sources]
    if not any(embedded):
        return RecordedData(recorded, tell)
    if len(embedded) > 1 or recorded.cost_weights:
        raise ConfigError(
            "Lessons about embedded tasks have no further sources and no cost weights: leave `also` and "
            "`cost_weights` out."
        )
    return EmbeddedData(recorded.sources[0].pool)


class EmbeddedData:
    """Embedded questions, a pool to know well and made-up teams."""

    prompt = PROMPT
    words = ()

    def __init__(self, pool: str) -> None:
        self._pool = pool
        self._known = team_of(open_pool(pool).profiles)

    def draw(self, shares: Shares, made_up: float) -> DrawExample:
        """Plans, rolls, teams and readings."""
        return partial(draw_example, teams=TeamSource(self._known, made_up), shares=shares)

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


class RecordedData:
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
        self.prompt = _prompt(settings)
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

    def draw(self, shares: Shares, made_up: float) -> DrawExample:
        """Readings of questions, and plans; `made_up` is for teams that profiles describe, and not used."""
        return partial(
            recorded_lessons.draw_example,
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
        return {"form": measure_format(model, tokenizer, asked, workers=workers, max_steps=most, seed=seed)}


def _prompt(settings: RecordedSettings) -> PromptSettings:
    return PromptSettings(
        style="brief",
        pool="described",
        examples=0,
        question_chars=settings.question_chars,
        answer_chars=_ANSWER_CHARS,
        levels=len(settings.cost_weights),
        rounds=True,
    )


def _course(
    source: Source,
    recording: Recording,
    settings: RecordedSettings,
    withheld: Collection[str],
    tell: Callable[[str], None],
) -> RecordedSource:
    pool = numbered_pool(open_pool(source.pool), _prompt(settings))
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
        worth = CommitteeValues(
            answers, kind_of, settings.cost_weights, source.rounds, early_stop=settings.early_stop
        )
    return RecordedSource(questions, pool, worth, source.weight)


def _kind(pool: Pool, question: str) -> str:
    """As the prompt names it; empty where it names none."""
    kind = pool.ratings.kind_of(question) if pool.ratings else ""
    return f"#{kind}" if kind else ""


def _answers(recording: Recording, question: str) -> tuple[str, ...]:
    """Of each worker's first response, as far as there is one."""
    given = (samples[0].answer for samples in recording.responses(question).values())
    return tuple(answer for answer in given if answer is not None)
