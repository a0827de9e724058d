"""Imports responses from a store of traces.

A response is imported if its subtask was the whole question and it saw no other response: any other is not an answer to
the question alone. Traces have no scores, so a response gets one only if the caller gives a gold answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from podium.recordings.importers import ImportReport
from podium.recordings.recording_model import RecordedQuestion, RecordedResponse, hashed_id, split_by_hash
from podium.recordings.writer import RecordingWriter
from podium.trace import Reply, Span, Trace

Judge = Callable[[str, str], float]
"""(response, gold) -> score in [0, 1]."""


def import_from_traces(
    traces: Iterable[Trace | None],
    writer: RecordingWriter,
    *,
    is_whole_question: Callable[[Span, str], bool],
    golds: Mapping[str, str],
    judge: Judge,
) -> ImportReport:
    """Read traces; a worker's answers to one question become its samples, in the order of the traces.

    Args:
        traces: None stands for a damaged trace, which is counted.
        is_whole_question: whether the subtask of a step is the whole question; called with the step and the question.
        golds: the right answers, by question.
        judge: scores a response whose gold answer is known.
    """
    import_report = ImportReport(source="traces of this installation")
    samples: Counter[tuple[str, str]] = Counter()
    for trace in traces:
        if trace is None:
            import_report.left_out["damaged traces"] += 1
            continue
        if trace.question.history or trace.question.images:
            more = "a chat history" if trace.question.history else "images"
            reason = f"traces of questions with {more}: a recording identifies a question by its text"
            import_report.left_out[reason] += 1
            continue
        text = trace.question.text
        question_id, gold = hashed_id(text), golds.get(text)
        writer.add_question(RecordedQuestion(question_id, text, gold, None, split_by_hash(question_id)))
        for span, saw_others in _steps(trace):
            if span.reply is None or span.answered_by is None:
                continue
            limited = (span.max_tokens, trace.question.options.max_tokens) != (None, None)
            bare = not saw_others and is_whole_question(span, text)
            left_out = _why_left_out(span.reply, limited=limited, bare=bare)
            if left_out is not None:
                import_report.left_out[left_out] += 1
                continue
            response = RecordedResponse(
                span.answered_by,
                samples[question_id, span.answered_by],
                span.reply.text,
                None,
                None if gold is None else judge(span.reply.text, gold),
                span.usage.input_tokens,
                span.usage.output_tokens,
                span.usage.estimated,
                span.seconds,
            )
            samples[question_id, span.answered_by] += 1
            writer.add(question_id, response)
    return import_report


def _why_left_out(reply: Reply, *, limited: bool, bare: bool) -> str | None:
    """Why a step's response is left out, or None if it is imported.

    Args:
        limited: whether the caller or the plan limited its tokens.
        bare: whether the worker got the question and nothing else.
    """
    if reply.recorded is not None:
        return "responses that were recorded ones already"
    if reply.cached:
        return "responses from a response cache: copies, not samples"
    if reply.tool_calls:
        return "calls of the caller's tools: no answers yet"
    if limited and reply.finish == "length":
        return "responses that the caller's or the plan's max_tokens cut off"
    return None if bare else "responses to a part of the question, or to others' work"


def _steps(trace: Trace) -> Iterator[tuple[Span, bool]]:
    """Each step, and whether its worker saw a response."""
    answered = False
    for round_ in trace.rounds:
        for span in round_.spans:
            workflow = round_.workflow
            shown = workflow is not None and workflow.steps[span.position].access.sees_previous
            yield span, bool(span.reads) or (shown and answered)
        answered = answered or (round_.workflow is not None and round_.response is not None)
