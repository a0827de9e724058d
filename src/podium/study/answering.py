"""Records what the workers answer, within the budget, and reads the recording as arrays.

`podium.ratings.recorder` calls and saves. A study that was killed or ran out of money goes on with the same command and
asks nothing twice. Questions that some worker has not answered are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from podium.errors import UsageError
from podium.executor import Dispatcher
from podium.ratings.answers import Answers, read_answers
from podium.ratings.recorder import RecordingProgress, record
from podium.recordings import RecordedWorker, Recording, RecordingWriter, unfinished_path
from podium.study.judging import NoVerdictGrader, by_agreement
from podium.study.questions import StudyQuestions
from podium.study.spending import REPEATED, most_samples
from podium.tasks import Task
from podium.tasks.recorded import RecordedTasks
from podium.types import Budget, Question
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker
from podium.workers.traits import is_tool

RECORDING = "answers.parquet"
"""The recording's name in a study's folder. It can be used like any recording."""
_ENOUGH = 0.5
"""A worker that answered less than this share of what the busiest worker answered is left out of the
study."""


@dataclass(frozen=True)
class StudyAnswers:
    """The recorded answers of a study."""

    answers: Answers
    """The answers to questions that every worker answered; with one sample each, unless all have more."""
    repeated: Answers
    """The same, with second answers where there are any."""
    replay: Pool
    """The workers, answering from the recording."""
    tasks: tuple[Task, ...]
    """These questions, graded by the recorded verdicts."""
    notes: tuple[str, ...]


async def record_answers(
    folder: Path,
    pool: Pool,
    questions: StudyQuestions,
    *,
    samples: int,
    reached: int,
    budget_usd: float | None,
    dispatcher: Dispatcher,
    concurrency: int,
    on_progress: Callable[[RecordingProgress], None],
) -> tuple[RecordingProgress, ...]:
    """Ask every worker every question, and a fifth of the questions twice if `samples` is 1; then write the recording.

    Args:
        reached: how many questions the budget is likely to reach; a fifth of these is repeated.
        budget_usd: the most dollars of this start; None: no limit but that of the dispatcher's accounts.

    Raises:
        RunMismatchError: an earlier start of this study asked other questions under the same ids.
        UsageError: no worker answered anything.
    """
    path = folder / RECORDING
    runs: list[RecordingProgress] = []
    spent = 0.0
    repeated = questions.tasks[: round(REPEATED * reached)] if samples == 1 < most_samples(pool) else ()
    with RecordingWriter(unfinished_path(path)) as writer:
        # The repeats come first, for the same questions: a budget that ends early then still has both.
        for tasks, count in ((repeated, 2), (questions.tasks, samples)):
            if not tasks or (runs and runs[-1].refusal is not None):
                continue
            left = None if budget_usd is None else max(0.0, budget_usd - spent)
            progress = await record(
                pool,
                tasks,
                writer,
                samples=count,
                concurrency=concurrency,
                budget=Budget(usd=left),
                seed="study",
                dispatcher=dispatcher,
                on_progress=on_progress,
            )
            spent += progress.usd
            runs.append(progress)
        if not writer.workers:
            raise UsageError(f"No worker answered. {_reasons(runs)}")
        writer.write(
            path,
            name=questions.name,
            source="recorded by podium study",
            known={
                p.name: RecordedWorker(name=p.name, description=p.description, price=p.price)
                for p in pool.profiles
            },
        )
    return tuple(runs)


async def read_recorded(folder: Path, pool: Pool, questions: StudyQuestions) -> StudyAnswers:
    """Read what was recorded.

    Raises:
        UsageError: fewer than two questions have an answer with a verdict from every worker.
    """
    recording = Recording.open(folder / RECORDING)
    kept, notes = _workers(pool, recording)
    replay = Pool(kept)
    by_others = questions.judged_by == "agreement"
    tasks = tuple(_ungraded(recording, kept)) if by_others else _judged(recording, replay)
    left_out = recording.header.questions - len(tasks)
    if left_out:
        notes.append(
            f"{left_out:,} of {recording.header.questions:,} recorded questions are left out, since a worker did not "
            "answer them or an answer has no verdict."
        )
    if len(tasks) < 2:
        judging = ", and the judge has to end its replies with RIGHT or WRONG" * (
            questions.judged_by == "judge"
        )
        raise UsageError(
            f"Too few questions have an answer with a verdict from every worker ({len(tasks)}); give more questions "
            f"or a larger --budget-usd{judging}."
        )
    repeated = await read_answers(tasks, kept)
    if by_others:
        repeated = by_agreement(repeated)
    return StudyAnswers(
        answers=_first_samples(repeated) if repeated.own_samples_QW is not None else repeated,
        repeated=repeated,
        replay=replay,
        tasks=tasks,
        notes=tuple(notes),
    )


def _workers(pool: Pool, recording: Recording) -> tuple[list[ReplayWorker], list[str]]:
    """The workers that answered enough, and a sentence about each other one."""
    counts = {worker.name: worker.responses for worker in recording.header.workers}
    enough = _ENOUGH * max(counts.values())
    kept, notes = [], []
    for worker in pool:
        name = worker.profile.name
        if is_tool(worker):
            continue
        if counts.get(name, 0) >= enough:
            kept.append(ReplayWorker(worker.profile, recording, name))
        else:
            notes.append(f"{name} is left out of the study: it answered {counts.get(name, 0):,} questions.")
    return kept, notes


def _judged(recording: Recording, replay: Pool) -> tuple[Task, ...]:
    found: list[Task] = []
    for split in recording.header.splits:
        try:
            found += RecordedTasks(recording, split, pool=replay)
        except UsageError:  # No question of this split was answered by all.
            continue
    return tuple(found)


def _ungraded(recording: Recording, workers: list[ReplayWorker]) -> list[Task]:
    return [
        Task(f"{recording.name}/{question.id}", Question(text=question.text), "", NoVerdictGrader())
        for split in recording.header.splits
        for question in recording.of_split(split)
        if all(worker.knows(question.text) for worker in workers)
    ]


def _first_samples(answers: Answers) -> Answers:
    """The answers with the first sample of each worker alone: votes must not count a copy as a second answer."""
    size = answers.alone_QWR.shape
    return replace(
        answers,
        answer_QWR=np.broadcast_to(answers.answer_QWR[:, :, :1], size),
        alone_QWR=np.broadcast_to(answers.alone_QWR[:, :, :1], size),
        voted_QWR=np.broadcast_to(answers.voted_QWR[:, :, :1], size),
        score_QW=answers.alone_QWR[:, :, 0],
        samples=1,
        own_samples=(),
        own_samples_QW=None,
    )


def _reasons(runs: list[RecordingProgress]) -> str:
    errors = {worker: error for run in runs for worker, error in run.errors.items()}
    sentences = [f"{worker}: {error.removeprefix(f'{worker}: ')}" for worker, error in sorted(errors.items())]
    refusals = [run.refusal for run in runs if run.refusal is not None]
    return " ".join([*sentences, *refusals[:1]]) or "There was nothing to ask."
