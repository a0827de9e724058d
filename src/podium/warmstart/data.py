"""The sources of SFT examples, and the batches made of them.

A source is either a laboratory with its teams (embedded, or world), or recordings with their pools. It draws the
examples of a stage, defines the policy's prompt, and runs the acceptance check at the end. A source never runs out of
batches, and the same name always gives the same ones. Examples are drawn for several batches at once and sorted by
length, so that a batch has little padding.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Generic, Protocol

import torch
from pydantic import Field
from tokenizers import Tokenizer
from torch import Tensor

from podium.conductor.checkpoint import Conducts
from podium.conductor.prompt import PromptSettings, numbered_pool, rating_words
from podium.config import Settings
from podium.errors import ConfigError
from podium.orchestrator.team import open_pool
from podium.ratings.answers import measurable, read_answers
from podium.recordings import Recording
from podium.tasks import ALL, open_tasks, warnings_of
from podium.tasks.overlap import question_key
from podium.train.model import PolicyModel
from podium.warmstart import recorded_examples
from podium.warmstart.acceptance import AcceptanceReport, FormatReport, measure, measure_format
from podium.warmstart.committee_value import CommitteeValues
from podium.warmstart.embedded_examples import EMBEDDED, team_of
from podium.warmstart.examples import ExampleTeam, Laboratory, P, SFTExample, Shares, TeamSource, draw_example
from podium.warmstart.recorded_examples import MOST_STEPS, ExampleQuestion, RecordedSource
from podium.warmstart.tokenizer import BEGIN_ID, END_ID, PAD_ID
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker

_SORTED_TOGETHER = 8
"""The examples of this many batches are sorted by length together."""


@dataclass(frozen=True, slots=True)
class ExampleBatch:
    """Whole texts as tokens, padded on the right."""

    tokens_BT: Tensor
    learned_BT: Tensor
    """True for the tokens whose prediction counts in the loss (the completion mask)."""


def batches(
    tokenizer: Tokenizer,
    draw: Callable[[str, int], SFTExample],
    *,
    name: str,
    size: int,
    count: int,
) -> Iterator[ExampleBatch]:
    """`count` batches of `size` examples each. `draw` makes an example from `name` and its number."""
    index = 0
    while count > 0:
        drawn = [encode(draw(name, index + i), tokenizer) for i in range(size * _SORTED_TOGETHER)]
        index += len(drawn)
        drawn.sort(key=lambda example: len(example[0]))
        order = list(range(_SORTED_TOGETHER))
        Random(f"course/{name}/{index}").shuffle(order)
        for place in order[:count]:
            yield _padded(drawn[place * size : (place + 1) * size])
        count -= len(order)


def encode(example: SFTExample, tokenizer: Tokenizer) -> tuple[list[int], list[bool]]:
    """The tokens of an example between BEGIN and END, and for each whether it counts in the loss; END does."""
    tokens = [BEGIN_ID, *tokenizer.encode(example.prompt, add_special_tokens=False).ids]
    learned = [False] * len(tokens)
    for text, learn in example.pieces:
        piece = tokenizer.encode(text, add_special_tokens=False).ids
        tokens += piece
        learned += [learn] * len(piece)
    return [*tokens, END_ID], [*learned, True]


def _padded(examples: list[tuple[list[int], list[bool]]]) -> ExampleBatch:
    longest = max(len(tokens) for tokens, _ in examples)
    tokens_BT = [tokens + [PAD_ID] * (longest - len(tokens)) for tokens, _ in examples]
    learned_BT = [learned + [False] * (longest - len(learned)) for _, learned in examples]
    # One tensor each, since a GPU, if it is torch's default device, gets each tensor by itself.
    return ExampleBatch(torch.tensor(tokens_BT), torch.tensor(learned_BT))


_ANSWER_CHARS = 60
"""Enough for "2 of 3 responses agree." and the beginning of the answer."""
_LATER = 0.3
"""Share of the plans about recordings that come after an earlier round."""

DrawExample = Callable[[str, int], SFTExample]
"""Makes an example from a name and a number; the same arguments always give the same example."""

Reports = Mapping[str, AcceptanceReport | FormatReport]
"""Reports of the acceptance check, by the pool or teams that were used."""


@dataclass(frozen=True, slots=True)
class CheckExtent:
    """What the acceptance check covers."""

    pool: bool
    """Whether examples had the fixed pool."""
    synthetic_teams: bool
    """Whether examples had synthetic teams."""
    saves: bool
    """Whether plans of the examples had fewer steps at a higher level of cost sensitivity."""
    cases: int
    """Of each test."""
    seed: int


class DataSource(Protocol):
    """A source of examples."""

    @property
    def prompt(self) -> PromptSettings: ...

    @property
    def conducts(self) -> Conducts | None:
        """What the policy can conduct; None: its prompt style and its tokenizer decide."""
        ...

    @property
    def words(self) -> Sequence[str]:
        """Texts that the tokenizer keeps as one token each."""
        ...

    @property
    def spelled(self) -> Collection[str]:
        """See `Laboratory`."""
        ...

    def draw(self, shares: Shares, synthetic_teams: float) -> DrawExample:
        """The function that draws a stage's examples. `synthetic_teams` is the share that has a synthetic team."""
        ...

    def run_check(self, model: PolicyModel, tokenizer: Tokenizer, extent: CheckExtent) -> Reports:
        """Run the acceptance check."""
        ...


class SourceSettings(Settings):
    """A recording and the pool that answers its questions."""

    tasks: str
    pool: str
    rounds: int = Field(default=1, ge=1, le=2)
    """2: plans that are chosen by verdicts may call few workers first, and more in a second round if these disagree."""
    weight: float = Field(default=1.0, gt=0)
    """How often the source is drawn, relative to the other sources."""
    estimates: bool = False
    """Whether prompts show, and plans are chosen by, an estimate of each worker's accuracy on the question itself. The
    model that estimates has not seen the question. False: both use the tallies of the question's cluster."""


@dataclass(frozen=True, slots=True)
class RecordedSettings:
    """The settings that only examples from recordings use; see `WarmStartSettings`."""

    sources: tuple[SourceSettings, ...]
    cost_weights: tuple[float, ...]
    question_chars: int
    from_verdicts: bool
    """Whether any stage chooses plans by verdicts."""
    early_stop: bool = False
    """Whether a committee's cost is that of a vote that stops early."""


def open_data(
    recorded: RecordedSettings, on_warning: Callable[[str], None] = lambda note: None
) -> DataSource:
    """Open the source that the settings name: the embedded tasks, or recordings.

    Args:
        on_warning: called with a sentence about each sort of question that is left out.

    Raises:
        ConfigError: embedded tasks are combined with recordings or with settings of recordings.
    """
    embedded = [source.tasks == "embedded" for source in recorded.sources]
    if not any(embedded):
        return RecordedData(recorded, on_warning)
    if len(embedded) > 1 or recorded.cost_weights:
        raise ConfigError(
            "Examples about embedded tasks have no further sources and no cost weights: leave `extra_sources` and "
            "`cost_weights` out."
        )
    pool = recorded.sources[0].pool
    return LaboratoryData(EMBEDDED, pool, team_of(open_pool(pool).profiles))


class LaboratoryData(Generic[P]):
    """Examples about the questions of a laboratory, over one fixed pool and synthetic teams.

    Args:
        pool: the name of the fixed pool.
        known: the fixed pool as a team.
    """

    words = ()

    def __init__(self, laboratory: Laboratory[P], pool: str, known: ExampleTeam) -> None:
        self.prompt, self.conducts = laboratory.prompt, laboratory.conducts
        self.spelled = laboratory.spelled
        self._laboratory, self._pool, self.known = laboratory, pool, known

    def draw(self, shares: Shares, synthetic_teams: float) -> DrawExample:
        """Draws plans, lookups, teams and readings."""
        teams = TeamSource(self._laboratory.draw_team, self.known, synthetic_teams)
        return partial(draw_example, self._laboratory, teams=teams, shares=shares)

    def run_check(self, model: PolicyModel, tokenizer: Tokenizer, extent: CheckExtent) -> Reports:
        """Run the acceptance check over the fixed pool and over synthetic teams, if the examples had them."""
        teams: dict[str, ExampleTeam | None] = {}
        if extent.pool:
            teams[self._pool] = self.known
        if extent.synthetic_teams:
            teams["made-up teams"] = None
        return measure(
            model,
            tokenizer,
            self._laboratory,
            teams,
            cases=extent.cases,
            seed=extent.seed,
            saves=extent.saves,
        )


class RecordedData:
    """Examples about the training questions of recordings, each with its pool.

    A training question is left out if it stands in a validation or test split of any of the recordings.

    Raises:
        ConfigError: a recording or a pool cannot be read, or there are no questions for the acceptance check.
    """

    conducts = None
    spelled = ()

    def __init__(self, settings: RecordedSettings, on_warning: Callable[[str], None]) -> None:
        opened = [(source, Recording.open(Path(source.tasks))) for source in settings.sources]
        withheld = {
            question_key(question.text)
            for _, recording in opened
            for question in recording.questions
            if question.split != "train"
        }
        self.prompt = _prompt(settings)
        self._sources = tuple(
            _recorded_source(source, recording, settings, withheld, on_warning)
            for source, recording in opened
        )
        # The name of a cluster is one token, so that what the policy learns about a cluster is tied to one embedding.
        # The words of a rating are one token each for the same reason.
        clusters = {
            f"#{cluster}"
            for source in self._sources
            if source.pool.ratings
            for cluster in source.pool.ratings.clusters
        }
        rated = any(source.pool.ratings for source in self._sources)
        self.words = (*sorted(clusters), *(rating_words() if rated else ()))
        self._unseen = tuple(question.text for question in opened[0][1].of_split("validation"))
        if not self._unseen:
            raise ConfigError(
                f"{opened[0][1].path} has no validation questions, which the acceptance check at the end needs."
            )

    def draw(self, shares: Shares, synthetic_teams: float) -> DrawExample:
        """Draws readings and plans. `synthetic_teams` is ignored: recordings have no synthetic teams."""
        return partial(
            recorded_examples.draw_recorded_example,
            sources=self._sources,
            prompt=self.prompt,
            shares=shares,
            later=_LATER,
        )

    def run_check(self, model: PolicyModel, tokenizer: Tokenizer, extent: CheckExtent) -> Reports:
        """Check whether the policy writes valid plans for validation questions."""
        pool = self._sources[0].pool
        prompts = recorded_examples.prompts(self._unseen[: extent.cases], pool, self.prompt)
        most, workers = MOST_STEPS, len(pool)
        return {
            "form": measure_format(
                model, tokenizer, prompts, workers=workers, max_steps=most, seed=extent.seed
            )
        }


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


def _recorded_source(
    source: SourceSettings,
    recording: Recording,
    settings: RecordedSettings,
    withheld: Collection[str],
    on_warning: Callable[[str], None],
) -> RecordedSource:
    pool = numbered_pool(open_pool(source.pool), _prompt(settings))
    if source.estimates and (source.rounds > 1 or pool.ratings is None):
        raise ConfigError(
            f"{source.tasks}: estimates = true needs rounds = 1 and a pool file with ratings, whose clusters it uses."
        )
    samples = [worker.samples for worker in pool if isinstance(worker, ReplayWorker)]
    if source.rounds > 1 and max(samples, default=1) > 1:
        raise ConfigError(
            f"{source.tasks}: rounds = {source.rounds} needs a recording with one sample of each worker; "
            "set rounds = 1."
        )
    opened = open_tasks(source.tasks, "train", size=ALL, pool=pool)
    for note in warnings_of(opened):
        on_warning(note)
    tasks = [task for task in opened if question_key(task.question.text) not in withheld]
    cluster_of = {task.question.text: _cluster_name(pool, task.question.text) for task in tasks}
    values, unseen_QW, shown = None, None, {}
    if settings.from_verdicts or source.estimates:
        answers = asyncio.run(read_answers(tasks, measurable(pool, tasks)))
        if source.estimates and pool.ratings is not None:
            from podium.ratings.rating import estimate  # noqa: PLC0415 - loads scikit-learn, which is an extra

            unseen_QW = estimate(answers, pool.ratings.clusters).unseen_QW
            shown = {
                text: dict(zip(answers.workers, unseen_W, strict=True))
                for text, unseen_W in zip(answers.texts, unseen_QW.tolist(), strict=True)
            }
        if settings.from_verdicts:
            values = CommitteeValues(
                answers,
                cluster_of,
                settings.cost_weights,
                source.rounds,
                early_stop=settings.early_stop,
                unseen_QW=unseen_QW,
            )
    questions = tuple(
        ExampleQuestion(text, cluster, _answers(recording, text), shown.get(text, {}))
        for text, cluster in cluster_of.items()
    )
    return RecordedSource(questions, pool, values, source.weight)


def _cluster_name(pool: Pool, question: str) -> str:
    """The question's cluster as the prompt names it; empty if the prompt names none."""
    cluster = pool.ratings.cluster_of(question) if pool.ratings else ""
    return f"#{cluster}" if cluster else ""


def _answers(recording: Recording, question: str) -> tuple[str, ...]:
    """The answer in each worker's first response, if it has one."""
    given = (samples[0].answer for samples in recording.responses(question).values())
    return tuple(answer for answer in given if answer is not None)
