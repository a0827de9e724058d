"""Writes what workers answered alone as a recording. It identifies a question by its text alone, so questions with a
chat history or with images are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from podium.evals.suite.question_table import QuestionTable
from podium.recordings import (
    RecordedQuestion,
    RecordedResponse,
    RecordedWorker,
    RecordingHeader,
    RecordingWriter,
)
from podium.rollout import Rollout
from podium.tasks.task import Task

_LONGEST = 10_000
"""The most characters of a saved gold answer. Tests of programs are longer; their verdicts are saved without them."""


def bare_tasks(tasks: Iterable[Task]) -> tuple[list[Task], tuple[str, ...]]:
    """The tasks whose question is only a text, and a sentence about each sort of other tasks with their number."""
    bare: list[Task] = []
    left_out: Counter[str] = Counter()
    for task in tasks:
        if task.question.history:
            left_out["questions with a chat history: a recording identifies a question by its text"] += 1
        elif task.question.images:
            left_out["questions with images: a recording identifies a question by its text"] += 1
        else:
            bare.append(task)
    return bare, tuple(f"{reason} ({count})" for reason, count in left_out.items())


def write_recording(
    out: Path,
    table: QuestionTable,
    *,
    samples: int,
    split_of: Callable[[str], str],
    name: str,
    source: str,
    left_out: Sequence[str],
) -> RecordingHeader:
    """Write what a table's files have of its questions.

    Args:
        samples: answers of each worker to each question.
        split_of: the split of a question, by its id.
        left_out: sentences about what is not in the table.

    Raises:
        UsageError: there is no answer.
        StoreError: the disk is full or not writable. A recording that was there stays.
    """
    questions = {task.id: _question(task, split_of(task.id)) for task in table.questions}
    with RecordingWriter() as writer:
        for worker in table.pool.answering:
            for (task_id, sample), answer in table.kept_answers(table.single_worker_entry(worker)[0]).items():
                response = _response(worker, answer)
                if response is not None and sample < samples:
                    writer.add_question(questions[task_id])
                    writer.add(task_id, response)
        return writer.write(
            out,
            name=name,
            source=source,
            left_out=left_out,
            known={
                profile.name: RecordedWorker(
                    name=profile.name, description=profile.description, price=profile.price
                )
                for profile in table.pool.profiles
            },
        )


def _question(task: Task, split: str) -> RecordedQuestion:
    gold = task.gold if len(task.gold) <= _LONGEST else None
    return RecordedQuestion(task.id, task.question.text, gold, None, split)


def _response(worker: str, answer: Rollout) -> RecordedResponse | None:
    """The worker's response, or None if it gave none."""
    span = next(iter(answer.trace.spans), None)
    if span is None or span.response is None:
        return None
    judged = answer.grade.failure is None
    return RecordedResponse(
        worker=worker,
        sample=answer.repeat,
        text=span.response,
        answer=answer.grade.found if judged else None,
        score=answer.grade.score if judged else None,
        input_tokens=span.usage.input_tokens,
        output_tokens=span.usage.output_tokens,
        estimated=span.usage.estimated,
        seconds=span.seconds,
    )
