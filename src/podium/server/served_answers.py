"""One answer for the routes: text, finish reason, usage, and the object `podium` that says how the answer was made.

Everything here is made from a trace, an event, or a plan that was not run, and is ready for JSON. A trace without an
answer becomes an `APIError`. The routes write the wire format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import add
from typing import Any

import pydantic_core

from podium.errors import APIError
from podium.executor import StepEnded, StepStarted
from podium.server.returned_answers import answer_message, write_state
from podium.team import Event, PlanReady, RoundEnded
from podium.team.faults import TOOL_ANSWERS
from podium.trace import Reply, Span, Trace
from podium.trace.costs import PLANNING, spent_by_worker
from podium.types import Message, Profile, Spent, ToolCall, Usage
from podium.workflow import Acceptance, Workflow, render

_PASSED_ON = ("length", "content_filter")
"""Finish reasons of a provider that a reply keeps. Every other reason becomes "stop"."""
_OUT_OF_BUDGET = ("time_is_up", "budget_refused")
"""Kinds of plan errors that mean that a budget stopped the planner."""
_SUBTASK_CHARS = 160
"""Characters of a subtask that a progress line shows."""


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """One answer, in the terms that all routes share."""

    trace: Trace
    """The trace of the answer, or of the planning of a dry run."""
    message: Message
    """The answer as an assistant's message (`answer_message`)."""
    finish: str
    """OpenAI's finish reason: "stop", "length", "content_filter", "tool_calls"."""
    usage: Usage
    cost_usd: float
    podium: dict[str, Any]
    """The object `podium` of the reply: plan, steps, cost."""
    reasoning: str = ""
    """The worker's thoughts, if one worker was called directly."""
    logprobs: dict[str, Any] | None = None
    """Log probabilities of the answer's tokens. None if the worker gave none."""
    state: str | None = None
    """The provider state, for the client to send back. None if there is none."""

    @property
    def text(self) -> str:
        """The text of the answer. It may be empty if the answer calls tools."""
        return self.message.content

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the answer, with the ids by which the caller knows them."""
        return self.message.tool_calls

    @property
    def trace_id(self) -> str:
        """The id of the trace."""
        return self.trace.id


def answer_from_trace(trace: Trace, ignored: Sequence[str] = ()) -> ServedAnswer:
    """The answer of a trace that has one. `ignored` are fields of the request that had no effect."""
    spans, message, podium = trace.spans, answer_message(trace), to_details(trace)
    direct = spans[-1].reply if trace.layout == "plain" and spans else None
    reasoning = "" if direct is None else direct.reasoning
    if ignored:
        podium["ignored"] = list(ignored)
    return ServedAnswer(
        trace=trace,
        message=message,
        finish="tool_calls" if message.tool_calls else _finish_reason(spans),
        usage=trace.usage,
        cost_usd=podium["cost_usd"],
        podium=podium,
        reasoning=reasoning,
        logprobs=None if direct is None else direct.logprobs,
        state=write_state(message, reasoned=bool(reasoning)),
    )


def answer_from_plan(
    planned: Trace, workflow: Workflow, estimate: dict[str, Any] | None, *, expires: datetime | None
) -> ServedAnswer:
    """The answer of a dry run: the plan in canonical text, and its estimated cost.

    Args:
        planned: the trace of the planning.
        workflow: the plan, perhaps edited, with the worker numbers of the trace's pool.
        estimate: the estimated cost. None if the trace is read from the store, which does not keep it.
        expires: when the plan can no longer be run. None if it cannot be run by its id.
    """
    podium: dict[str, Any] = {
        "planner": planned.planner,
        "status": "dry_run",
        "plan": plan_rows(workflow, planned.pool),
        "workers": [profile.name for profile in planned.pool],
        "steps": [],
        "cost_usd": planned.cost_usd,
        "usage": _usage_by_part(planned),
    }
    if estimate is not None:
        podium["estimate"] = estimate
    if planned.rounds[-1].plan.reason is not None and workflow == planned.rounds[-1].workflow:
        podium["reason"] = planned.rounds[-1].plan.reason
    if expires is not None:
        podium |= {"plan_id": planned.id, "expires_at": expires.isoformat(timespec="seconds")}
    message = Message(role="assistant", content=render(workflow))
    return ServedAnswer(planned, message, "stop", planned.usage, planned.cost_usd, podium)


def encode_reply(reply: Mapping[str, Any]) -> bytes:
    """A whole reply as JSON in UTF-8. Half surrogate pairs, which UTF-8 cannot hold, are escaped."""
    try:
        return pydantic_core.to_json(reply)
    except pydantic_core.PydanticSerializationError:
        return json.dumps(reply, separators=(",", ":")).encode()


def _finish_reason(spans: Sequence[Span]) -> str:
    reason = next((span.reply.finish for span in reversed(spans) if span.reply is not None), None)
    return reason if reason in _PASSED_ON else "stop"


def no_answer_error(trace: Trace) -> APIError:
    """Why a trace has no answer: failed workers, a time limit, the budget, or the planner.

    A trace with an answer is never an error. If a budget or a failure cut it short, its status says so.
    """
    message, more = trace.error or "There is no answer.", {"trace_id": trace.id}
    failed = [span for span in trace.spans if span.status == "failed" and not _failed_for_lack_of_input(span)]
    kinds = {round_.error_kind for round_ in trace.rounds}
    status, kind, code = 502, "planner_failed", "planner_failed"
    if trace.error_kind == "timeout":
        status, kind, code = 504, "timeout_error", "request_timeout"
    elif failed:
        more["workers"] = ", ".join(dict.fromkeys(span.worker for span in failed))
        message = f"No worker could answer ({more['workers']}). {message}"
        kind = code = "workers_failed"
    elif TOOL_ANSWERS in kinds:
        status, kind, code = 400, "invalid_request_error", "unsupported_field"
    elif (
        _time_is_up(trace)
        or not kinds.isdisjoint(_OUT_OF_BUDGET)
        or any(span.status == "refused" for span in trace.spans)
    ):
        status, kind, code = 402, "budget_exceeded", "budget_exceeded"
    headers = {
        "x-podium-trace-id": trace.id,
        "x-podium-cost-usd": f"{trace.cost_usd:.6f}",
        # The executor has retried already, and OpenAI's client would pay for the whole question twice more.
        "x-should-retry": "false",
    }
    return APIError(status, kind, message, code=code, headers=headers, more=more)


def _time_is_up(trace: Trace) -> bool:
    """Whether the budget's seconds ended while a step was running. A caller who goes away also cancels steps."""
    seconds = trace.budget.seconds
    if seconds is None or trace.seconds < seconds or trace.status == "cancelled":
        return False
    return any(span.status == "cancelled" for span in trace.spans)


def _failed_for_lack_of_input(span: Span) -> bool:
    """Whether a tool failed only because the steps that it reads had failed."""
    return bool(span.attempts) and span.attempts[-1].error_kind == "missing"


def to_details(trace: Trace) -> dict[str, Any]:
    """The object `podium` of one answer."""
    latest = next((round_ for round_ in reversed(trace.rounds) if round_.workflow is not None), None)
    details: dict[str, Any] = {
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
        "usage": _usage_by_part(trace),
    }
    if latest is not None and latest.plan.reason is not None:
        details["reason"] = latest.plan.reason
    if trace.error is not None:
        details["error"] = trace.error
    abandoned = [
        _step_row(number, span) for number, round_ in enumerate(trace.rounds) for span in round_.abandoned
    ]
    if abandoned:
        details["abandoned"] = abandoned
    if dropped := set(_dropped_parameters(trace)):
        details["dropped"] = sorted(dropped)
    return details


def _dropped_parameters(trace: Trace) -> Iterator[str]:
    """The parameters that were left out for an endpoint, in nested teams too."""
    for round_ in trace.rounds:
        yield from round_.plan.dropped
    for span in trace.spans:
        if span.reply is not None:
            yield from span.reply.dropped
        if span.nested is not None:
            yield from _dropped_parameters(span.nested)


def plan_rows(workflow: Workflow, pool: Sequence[Profile]) -> list[dict[str, Any]]:
    """The steps of a plan, ready for JSON."""
    return [
        {
            "step": number,
            "worker": pool[step.worker].name,
            "subtask": step.subtask,
            "reads": list(workflow.reads(number)),
        }
        for number, step in enumerate(workflow.steps)
    ]


def to_progress(event: Event, pool: Sequence[Profile]) -> tuple[str, dict[str, Any]] | None:
    """An event as a line for people and as JSON. None if streams do not report it."""
    match event:
        case PlanReady():
            return _plan_progress(event, pool)
        case StepStarted():
            subtask = " ".join(event.subtask.split())
            cut = subtask if len(subtask) <= _SUBTASK_CHARS else f"{subtask[:_SUBTASK_CHARS]}..."
            facts = {"worker": event.worker, "subtask": event.subtask}
            started = {"event": "step_started", "round": event.round, "step": event.position, **facts}
            return f"Step {event.position}: {event.worker} is called: {cut}", started
        case StepEnded(span=span):
            return _step_end_line(span), {"event": "step_ended", **_step_row(event.round, span)}
        case RoundEnded(trace=round_) if round_.accepted:
            return None
        case RoundEnded():
            return f"Round {event.round} has ended.", {"event": "round_ended", "round": event.round}
    return None


def _plan_progress(ready: PlanReady, pool: Sequence[Profile]) -> tuple[str, dict[str, Any]] | None:
    round = ready.round
    began = f"Round {round} begins. " if round else ""
    if ready.trace.error is not None:
        began = f"There is no plan to run. {ready.trace.error.message} "
    match ready.trace.workflow or ready.trace.plan.decision:
        case Workflow(steps=steps) as workflow:
            workers = ", ".join(pool[step.worker].name for step in steps)
            count = "1 step" if len(steps) == 1 else f"{len(steps)} steps"
            details = {"event": "plan", "round": round, "plan": plan_rows(workflow, pool)}
            reason = ready.trace.plan.reason
            if reason is not None:
                details["reason"] = reason
            return " ".join(filter(None, (f"{began}Plan of {count}: {workers}.", reason))), details
        case Acceptance():
            return "The answer is accepted.", {"event": "accepted", "round": round}
    return None


def _step_end_line(span: Span) -> str:
    if span.status != "done":
        return f"Step {span.position}: {span.error or span.status}"
    took = "from the cache" if span.cached else f"in {span.seconds:.1f} s, ${span.spent.cost_usd:.6f}"
    return f"Step {span.position}: {span.answered_by} answered {took}."


def _step_row(round: int, span: Span) -> dict[str, Any]:
    reply = span.reply or Reply("", span.usage)
    return {
        "round": round,
        "step": span.position,
        "worker": span.worker,
        "answered_by": span.answered_by,
        "cost_usd": span.spent.cost_usd,
        "seconds": span.seconds,
        "cached": reply.cached,
        "status": span.status,
        "model": reply.model,
        "fingerprint": reply.fingerprint,
        "context_tokens": reply.context_tokens,
        "dropped": list(reply.dropped),
        "folded": reply.folded,
        "attempts": [
            {
                "worker": attempt.worker,
                "error_kind": attempt.error_kind,
                "error": attempt.error,
                "cost_usd": attempt.spent.cost_usd,
            }
            for attempt in span.attempts
        ],
    }


def _usage_by_part(trace: Trace) -> dict[str, Any]:
    """Tokens and dollars of the planner, and of each worker."""
    plans = [round_.plan.spent for round_ in trace.rounds]
    parts = {PLANNING: reduce(add, plans) if plans else Spent(), **spent_by_worker(trace.spans)}
    counts = {name: {**spent.usage.model_dump(), "cost_usd": spent.cost_usd} for name, spent in parts.items()}
    conductor = counts.pop(PLANNING)
    if parts[PLANNING].unpriced:
        conductor["unpriced"] = True
    return {"conductor": conductor, "workers": counts}
