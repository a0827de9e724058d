"""The stream of `/api/traces/{id}/events`: made live from a question's events, or afterwards from its trace.

Events made from a trace are the same, but without the pieces of text: the steps have their whole responses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from podium.executor import StepEnded, StepStarted, StepText
from podium.team import Event, PlanReady, QuestionEnded, RoundEnded
from podium.trace import Trace
from podium.trace.serialization import to_json

ENDED = "ended"
"""Kind and id of the last event of every stream."""


def started_event(
    id: str,
    trace_id: str,
    *,
    question: str | None,
    planner: str | None,
    started_at: str,
    workers: Sequence[str],
) -> bytes:
    """The first event of a stream. A value of None is not known."""
    data = {
        "id": trace_id,
        "question": question,
        "planner": planner,
        "started_at": started_at,
        "workers": list(workers) or None,
    }
    return _stream_event(id, "started", data)


def text_event(id: str, event: StepText, text: str) -> bytes:
    """A piece of a response. Each `attempt` at a step starts the text again."""
    data = {"round": event.round, "position": event.position, "attempt": event.attempt, "text": text}
    return _stream_event(id, "text", data)


def to_stream_event(id: str, event: Event, workers: Sequence[str]) -> bytes:
    """The stream event of a runner's event. Plans refer to the pool's `workers` by number."""
    match event:
        case PlanReady():
            return _stream_event(id, "plan", _plan(event, workers))
        case StepStarted(round=number, position=position, worker=worker, subtask=subtask):
            data = {"round": number, "position": position, "worker": worker, "subtask": subtask}
            return _stream_event(id, "step_started", data)
        case StepText():
            return text_event(id, event, event.text)
        case StepEnded(round=number, span=span):
            return _stream_event(id, "step_ended", {"round": number, "span": span.model_dump(mode="json")})
        case RoundEnded(round=number, trace=round_):
            return _stream_event(id, "round_ended", {"round": number, "response": round_.response})
        case QuestionEnded(trace=trace):
            return _encode(ENDED, ENDED, f'{{"trace":{to_json(trace)}}}')


def events_of_trace(trace: Trace) -> Iterator[bytes]:
    """The events of a question that has ended, in their order."""
    names = [profile.name for profile in trace.pool]
    yield started_event(
        "0",
        trace.id,
        question=trace.question.text,
        planner=trace.planner,
        started_at=trace.started_at,
        workers=names,
    )
    id = 0
    for number, round_ in enumerate(trace.rounds):
        events: list[Event] = [PlanReady(number, round_)]
        steps: list[tuple[float, int, Event]] = []
        for span in round_.spans:
            if span.status == "skipped":
                continue
            if span.called:
                started = StepStarted(number, span.position, span.worker, span.subtask)
                steps.append((span.started_s, 0, started))
            steps.append((span.ended_s, 1, StepEnded(number, span)))
        events += [event for _, _, event in sorted(steps, key=lambda step: step[:2])]
        events.append(RoundEnded(number, round_))
        for event in events:
            id += 1
            yield to_stream_event(str(id), event, names)
    yield to_stream_event(ENDED, QuestionEnded(trace), names)


def _plan(event: PlanReady, workers: Sequence[str]) -> dict[str, Any]:
    planned = event.trace.model_dump(include={"plan": True, "fallback": True}, exclude={"plan": {"messages"}})
    return {"round": event.round, "workers": list(workers) or None, **planned}


def _stream_event(id: str, kind: str, data: dict[str, Any]) -> bytes:
    return _encode(id, kind, json.dumps(data, separators=(",", ":")))


def _encode(id: str, kind: str, data: str) -> bytes:
    """One server-sent event. A client that reconnects names the id of its last event (Last-Event-ID)."""
    return f"id: {id}\nevent: {kind}\ndata: {data}\n\n".encode()
