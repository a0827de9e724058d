"""A trace of a question with two steps, for tests of traces and their store."""

from __future__ import annotations

from podium.trace import Attempt, Plan, Reply, RoundTrace, Span, Trace
from podium.types import Message, Profile, Question, Spent, Usage
from podium.workflow import Access, Step, Workflow


def build_trace(id_: str = "t1", *, text: str = "What is 2 + 3?", **changes: object) -> Trace:
    """A trace of one round of two steps."""
    spans = tuple(
        Span(
            position=position,
            worker=name,
            subtask="Add.",
            reads=tuple(range(position)),
            status="done",
            messages=(Message(role="user", content=text),),
            reply=Reply("5", Usage(input_tokens=10, output_tokens=2)),
            answered_by=name,
            spent=Spent(Usage(input_tokens=10, output_tokens=2), 0.25),
            attempts=(Attempt(worker=name, started_s=0.0, ended_s=0.5),),
        )
        for position, name in enumerate(("ada", "bob"))
    )
    workflow = Workflow((Step(0, "Add."), Step(1, "Check.", Access(all=True))))
    values: dict[str, object] = {
        "id": id_,
        "question": Question(text=text),
        "pool": (Profile(name="ada"), Profile(name="bob")),
        "planner": "conductor",
        "seed": "0",
        "rounds": (RoundTrace(plan=Plan("model_id = [0, 1]", workflow), spans=spans, response="5"),),
        "answer": "5",
        "status": "ok",
        "started_at": "2026-03-01T10:00:00+00:00",
        "seconds": 1.5,
    }
    return Trace.model_validate(values | changes)
