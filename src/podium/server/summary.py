"""What a reply tells of how its answer came about: the object `podium`, and the usage of all who took part.

JSON-ready, made from a trace or an event; the whole record is the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.executor import StepEnded, StepStarted
from podium.orchestrator import Event, PlanReady, RoundEnded
from podium.trace import Span, Trace
from podium.types import Profile, Usage
from podium.workflow import Acceptance, Workflow

_SHOWN = 160
"""Characters of a subtask in a line of progress."""


def summary(trace: Trace) -> dict[str, Any]:
    """The object `podium` of one answer."""
    latest = next((round_ for round_ in reversed(trace.rounds) if round_.workflow is not None), None)
    told: dict[str, Any] = {
        "trace_id": trace.id,
        "planner": trace.planner,
        "status": trace.status,
        "rounds": len(trace.rounds),
        "plan": [] if latest is None or latest.workflow is None else plan_rows(latest.workflow, trace.pool),
        "steps": [
            _step_row(number, span) for number, round_ in enumerate(trace.rounds) for span in round_.spans
        ],
        "cost_usd": trace.cost_usd,
        "seconds": trace.seconds,
        "usage": _apart(trace),
    }
    if trace.error is not None:
        told["error"] = trace.error
    return told


def plan_rows(workflow: Workflow, pool: Sequence[Profile]) -> list[dict[str, Any]]:
    """The steps of a plan."""
    return [
        {
            "step": number,
            "worker": pool[step.worker].name,
            "subtask": step.subtask,
            "reads": list(workflow.reads(number)),
        }
        for number, step in enumerate(workflow.steps)
    ]


def progress(event: Event, pool: Sequence[Profile]) -> tuple[str, dict[str, Any]] | None:
    """What a stream says of an event: a line for people, and the same for programs; None: nothing."""
    match event:
        case PlanReady():
            return _planned(event, pool)
        case StepStarted():
            subtask = " ".join(event.subtask.split())
            cut = subtask if len(subtask) <= _SHOWN else f"{subtask[:_SHOWN]}..."
            told = {"worker": event.worker, "subtask": event.subtask}
            return f"Step {event.position}: {event.worker} is asked: {cut}", _named(
                "step_started", event.round, event.position, told
            )
        case StepEnded(span=span):
            return _ended(span), _named("step_ended", event.round, span.position, _step_facts(span))
        case RoundEnded(trace=round_) if round_.accepted:
            return None
        case RoundEnded():
            return f"Round {event.round} has ended.", {"event": "round_ended", "round": event.round}
    return None


def _planned(ready: PlanReady, pool: Sequence[Profile]) -> tuple[str, dict[str, Any]] | None:
    round = ready.round
    began = f"Round {round} begins. " if round else ""
    if ready.error is not None:
        began = f"There is no plan to run. {ready.error.message} "
    match ready.plan.decision:
        case Workflow(steps=steps) as workflow:
            workers = ", ".join(pool[step.worker].name for step in steps)
            count = "1 step" if len(steps) == 1 else f"{len(steps)} steps"
            told = {"event": "plan", "round": round, "plan": plan_rows(workflow, pool)}
            return f"{began}Plan of {count}: {workers}.", told
        case Acceptance():
            return "The answer is accepted.", {"event": "accepted", "round": round}
    return None


def _ended(span: Span) -> str:
    if span.status != "done":
        return f"Step {span.position}: {span.error or span.status}"
    took = "from the cache" if span.cached else f"in {span.seconds:.1f} s, ${span.cost_usd:.6f}"
    return f"Step {span.position}: {span.answered_by} answered {took}."


def _named(kind: str, round: int, step: int, told: dict[str, Any]) -> dict[str, Any]:
    return {"event": kind, "round": round, "step": step, **told}


def _step_row(round: int, span: Span) -> dict[str, Any]:
    return {"round": round, "step": span.position, **_step_facts(span)}


def _step_facts(span: Span) -> dict[str, Any]:
    return {
        "worker": span.worker,
        "answered_by": span.answered_by,
        "cost_usd": span.cost_usd,
        "seconds": span.seconds,
        "cached": span.cached,
        "status": span.status,
    }


def _apart(trace: Trace) -> dict[str, Any]:
    """The planner's own tokens, and each worker's."""
    workers: dict[str, tuple[Usage, float]] = {}
    for span in trace.spans:
        if span.called:
            name = span.answered_by or span.worker
            before, usd = workers.get(name, (Usage(), 0.0))
            workers[name] = (before + span.usage, usd + span.cost_usd)
    planned = sum((round_.plan_usage for round_ in trace.rounds), Usage())
    conductor = _counts(planned, sum(round_.plan_cost_usd for round_ in trace.rounds))
    if any(round_.plan_unpriced for round_ in trace.rounds):
        conductor["unpriced"] = True
    return {
        "conductor": conductor,
        "workers": {name: _counts(*taken) for name, taken in workers.items()},
    }


def _counts(usage: Usage, usd: float) -> dict[str, Any]:
    return {**usage.model_dump(), "cost_usd": usd}
