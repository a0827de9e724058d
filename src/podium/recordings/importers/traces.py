"""Imports responses from a store of traces.

A response is imported if its subtask was the whole question and it saw no other response; any other is not an answer to
the question alone. Traces have no scores, so a response gets one only if the caller gives a gold answer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from pydantic import ValidationError

from podium.errors import UsageError
from podium.recordings.importers.documents import hashed_id
from podium.recordings.importers.import_report import ImportReport
from podium.recordings.model import RecordedQuestion, Response, split_by_hash, was_simulated
from podium.recordings.writer import RecordingWriter
from podium.trace import Span, Trace
from podium.trace.sqlite_store import open_reader

Judge = Callable[[str, str], float]
"""(response, gold) -> score in [0, 1]."""


def read_traces(path: Path) -> Iterator[Trace]:
    """Read the traces of a store, oldest first, with one in memory at a time. The file is not changed.

    Raises:
        UsageError: it is not a store of traces, or cannot be read.
    """
    with closing(open_reader(path)) as reader:
        try:
            for (document,) in reader.execute("SELECT document FROM traces ORDER BY started, id"):
                yield Trace.model_validate_json(document)
        except sqlite3.Error as error:
            raise UsageError(f"The trace store {path} cannot be read ({error}); give another.") from None
        except ValidationError:
            raise UsageError(f"{path} holds a trace that cannot be read; give another store.") from None


def import_from_traces(
    traces: Iterable[Trace],
    writer: RecordingWriter,
    *,
    is_whole_question: Callable[[Span, str], bool],
    golds: Mapping[str, str],
    judge: Judge,
) -> ImportReport:
    """Read traces; a worker's answers to one question become its samples, in the order of the traces.

    Args:
        is_whole_question: whether the subtask of a step is the whole question; called with the step and the question.
        golds: the right answers, by question.
        judge: scores a response whose gold answer is known.
    """
    import_report = ImportReport(source="traces of this installation")
    for trace in traces:
        if trace.question.history:
            import_report.left_out[
                "traces of questions with a chat history: a recording identifies a question by its text"
            ] += 1
            continue
        if trace.question.images:
            import_report.left_out[
                "traces of questions with images: a recording identifies a question by its text"
            ] += 1
            continue
        text = trace.question.text
        question_id, gold = hashed_id(text), golds.get(text)
        writer.add_question(RecordedQuestion(question_id, text, gold, None, split_by_hash(question_id)))
        for span, saw_others in _steps(trace):
            if span.response is None or span.answered_by is None:
                continue
            if span.recorded is not None:
                import_report.left_out["responses that were recorded ones already"] += 1
            elif span.cached:
                import_report.left_out["responses from a response cache: copies, not samples"] += 1
            elif saw_others or not is_whole_question(span, text):
                import_report.left_out["responses to a part of the question, or to others' work"] += 1
            else:
                sample = 0
                while writer.has(question_id, span.answered_by, sample):
                    sample += 1
                writer.add(
                    question_id,
                    Response(
                        span.answered_by,
                        sample,
                        span.response,
                        None,
                        None if gold is None else judge(span.response, gold),
                        span.usage.input_tokens,
                        span.usage.output_tokens,
                        span.usage.estimated,
                        span.seconds,
                    ),
                )
                if was_simulated(span):
                    writer.note_simulated(span.answered_by)
    return import_report


def _steps(trace: Trace) -> Iterator[tuple[Span, bool]]:
    """Each step, and whether it saw another response."""
    for number, round_ in enumerate(trace.rounds):
        for span in round_.spans:
            workflow = round_.workflow
            previous = workflow is not None and workflow.steps[span.position].access.sees_previous
            yield span, bool(span.reads) or (number > 0 and previous)
