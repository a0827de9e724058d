"""Imports responses from a store of traces.

A response is imported if its subtask was the whole question and it saw no other response. Any other is not an answer to
the question alone; it is left out, or imported as a conditioned response. Traces have no scores, so a response gets one
only if the caller gives a gold answer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

from podium.errors import UsageError
from podium.recordings.importers.import_report import ImportReport
from podium.recordings.model import RecordedQuestion, Response, ShownContext, hashed_id, split_by_hash
from podium.recordings.writer import RecordingWriter
from podium.trace import Span, Trace
from podium.trace.serialization import DamagedTraceError, read_document
from podium.trace.store import open_reader

_OLDEST_FIRST = """
SELECT document FROM traces AS trace JOIN podium_documents ON podium_documents.id = trace.id
ORDER BY trace.started, trace.id"""
Judge = Callable[[str, str], float]
"""(response, gold) -> score in [0, 1]."""


def read_traces(path: Path) -> Iterator[Trace]:
    """Read the traces of a store, oldest first, with one in memory at a time. The file is not changed.

    Raises:
        UsageError: it is not a store of traces, or cannot be read.
    """
    with closing(open_reader(path)) as reader:
        try:
            for (document,) in reader.execute(_OLDEST_FIRST):
                with suppress(
                    DamagedTraceError
                ):  # One that somebody changed in the database hides no others.
                    yield read_document(document)
        except sqlite3.Error as error:
            raise UsageError(f"The trace store {path} cannot be read ({error}); give another.") from None


def import_from_traces(
    traces: Iterable[Trace],
    writer: RecordingWriter,
    *,
    is_whole_question: Callable[[Span, str], bool],
    golds: Mapping[str, str],
    judge: Judge,
    conditioned: bool = False,
) -> ImportReport:
    """Read traces; a worker's answers to one question become its samples, in the order of the traces.

    Args:
        is_whole_question: whether the subtask of a step is the whole question; called with the step and the question.
        golds: the right answers, by question.
        judge: scores a response whose gold answer is known.
        conditioned: whether responses to a part of the question, or to others' work, are imported too.
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
        for span, seen in _steps(trace):
            if span.response is None or span.answered_by is None:
                continue
            bare = not seen.earlier and seen.previous is None and is_whole_question(span, text)
            reason = _why_left_out(span, bare=bare, conditioned=conditioned)
            if reason is not None:
                import_report.left_out[reason] += 1
            else:
                condition = None if bare else seen
                sample = 0
                while writer.find(question_id, span.answered_by, sample, condition) is not None:
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
                    seen=condition,
                )
    return import_report


def _why_left_out(span: Span, *, bare: bool, conditioned: bool) -> str | None:
    """Why a step's response is left out; None: it is imported."""
    if span.recorded is not None:
        return "responses that were recorded ones already"
    if span.cached:
        return "responses from a response cache: copies, not samples"
    if not bare and not conditioned:
        return "responses to a part of the question, or to others' work"
    if not bare and not span.usage.tokens:
        return "results of tools, which a replay runs again"
    return None


def _steps(trace: Trace) -> Iterator[tuple[Span, ShownContext]]:
    """Each step, and what its worker saw besides the question."""
    previous = None
    for round_ in trace.rounds:
        spans = {span.position: span for span in round_.spans}
        for span in round_.spans:
            workflow = round_.workflow
            shown = workflow is not None and workflow.steps[span.position].access.sees_previous
            earlier = (
                (spans[place].subtask, response)
                for place in span.reads
                if (response := spans[place].response) is not None
            )
            yield span, ShownContext(span.subtask, tuple(earlier), previous if shown else None)
        if round_.workflow is not None:
            previous = round_.response
