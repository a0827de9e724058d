from collections.abc import Callable

import pytest

from podium.trace import Attempt, RoundTrace, Span, Trace
from podium.types import Message, Profile, Question, Usage
from podium.workflow import Access, Step, Workflow

MakeTrace = Callable[..., Trace]


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
            response="5",
            answered_by=name,
            usage=Usage(input_tokens=10, output_tokens=2),
            cost_usd=0.25,
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
        "rounds": (RoundTrace(plan_text="model_id = [0, 1]", workflow=workflow, spans=spans, response="5"),),
        "answer": "5",
        "status": "ok",
        "started_at": "2026-03-01T10:00:00+00:00",
        "seconds": 1.5,
    }
    return Trace.model_validate(values | changes)


@pytest.fixture(scope="session")
def make_trace() -> MakeTrace:
    return build_trace
