"""Imports a store of traces: what workers answered there to a bare question.

A response counts when its subtask was the whole question and it saw no other response: an answer to a part of the
question, or about another's work, is no answer to the question. Traces hold no verdicts, so responses have a score
only where the caller gives the gold answers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from pydantic import ValidationError

from podium.errors import UsageError
from podium.recordings.importers.documents import identity
from podium.recordings.importers.import_report import ImportReport
from podium.recordings.model import RecordedQuestion, Response, split_by_hash, was_simulated
from podium.recordings.writer import RecordingWriter
from podium.trace import Span, Trace
from podium.trace.sqlite_store import open_reader

Judge = Callable[[str, str], float]
"""(response, gold) -> score in [0, 1]."""


def read_traces(path: Path) -> Iterator[Trace]:
    """The traces of a store, oldest first, one in memory at a time. The file is left as it is.

    Raises:
        UsageError: it is not a store of traces, or cannot be read.
    """
    with closing(open_reader(path)) as reader:
        try:
            for (document,) in reader.execute("SELECT document FROM traces ORDER BY started, rowid"):
                yield Trace.model_validate_json(document)
        except sqlite3.Error as error:
            raise UsageError(f"The trace store {path} cannot be read ({error}); give another.") from None
        except ValidationError:
            raise UsageError(f"{path} holds a trace that cannot be read; give another store.") from None


def import_from_traces(
    traces: Iterable[Trace],
    writer: RecordingWriter,
    *,
    asked_whole: Callable[[Span, str], bool],
    golds: Mapping[str, str],
    judge: Judge,
) -> ImportReport:
    """Read traces; a worker's answers to one question become its samples, in the order of the traces.

    Args:
        asked_whole: whether a step's subtask is the whole question, whose text is the second argument.
        golds: by question, the right answer.
        judge: gives a response its score, where the gold answer is known.
    """
    import_report = ImportReport(source="traces of this installation")
    for trace in traces:
        if trace.question.history:
            import_report.left_out["traces of questions with a past: a recording keeps bare ones"] += 1
            continue
        if trace.question.images:
            import_report.left_out["traces of questions with images: a recording keeps bare ones"] += 1
            continue
        text = trace.question.text
        question_id, gold = identity(text), golds.get(text)
        writer.add_question(RecordedQuestion(question_id, text, gold, None, split_by_hash(question_id)))
        for span, shown in _with_sight(trace):
            if span.response is None or span.answered_by is None:
                continue
            if span.recorded is not None:
                import_report.left_out["responses that were recorded ones already"] += 1
            elif span.cached:
                import_report.left_out["responses from a response cache: copies, not samples"] += 1
            elif shown or not asked_whole(span, text):
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


def _with_sight(trace: Trace) -> Iterator[tuple[Span, bool]]:
    """Each step, and whether it saw another response."""
    for number, round_ in enumerate(trace.rounds):
        for span in round_.spans:
            workflow = round_.workflow
            previous = workflow is not None and workflow.steps[span.position].access.sees_previous
            yield span, bool(span.reads) or (number > 0 and previous)
