"""One answer for the routes: text, finish reason, usage, and the object `podium` that says how the answer was made.

An answer is made from a trace, or from a plan that was not run. A trace without an answer becomes an `APIError`. The
routes write the wire format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pydantic_core

from podium.errors import APIError
from podium.server.answer_state import answer_message, write_state
from podium.server.podium_details import PodiumDetails, details_of, planned_steps
from podium.team.plan_check import TOOL_ANSWERS
from podium.trace import Span, Trace
from podium.types import Message, Spent, ToolCall
from podium.workflow import Workflow, render

_PASSED_ON = ("length", "content_filter")
"""Finish reasons of a provider that a reply keeps. Every other reason becomes "stop"."""
_OUT_OF_BUDGET = ("time_is_up", "budget_exceeded")
"""Kinds of plan errors that mean that a budget stopped the planner."""


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """One answer, in the terms that all routes share."""

    trace: Trace
    message: Message
    """The answer as an assistant's message (`answer_message`)."""
    finish: str
    """OpenAI's finish reason: "stop", "length", "content_filter", "tool_calls"."""
    spent: Spent
    details: PodiumDetails
    reasoning: str = ""
    """The worker's thoughts, if one worker was called directly."""
    logprobs: dict[str, Any] | None = None
    state: str | None = None
    """The provider state, for the client to send back. None if there is none."""

    @property
    def podium(self) -> dict[str, Any]:
        """The object `podium` of the reply, ready for JSON."""
        return self.details.model_dump(mode="json")

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
        return self.trace.id


def answer_from_trace(trace: Trace, ignored: Sequence[str] = ()) -> ServedAnswer:
    """The answer of a trace that has one. `ignored` are fields of the request that had no effect."""
    spans, message = trace.spans, answer_message(trace)
    direct = spans[-1].reply if trace.layout == "plain" and spans else None
    reasoning = "" if direct is None else direct.reasoning
    return ServedAnswer(
        trace=trace,
        message=message,
        finish="tool_calls" if message.tool_calls else _finish_reason(spans),
        spent=Spent(trace.usage, trace.cost_usd),
        details=details_of(trace, ignored),
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
    ready = planned.rounds[-1]
    changed: dict[str, Any] = {
        "status": "dry_run",
        "plan": planned_steps(workflow, planned.pool),
        "reason": ready.plan.reason if workflow == ready.workflow else None,
        "workers": tuple(profile.name for profile in planned.pool),
        "estimate": estimate,
    }
    if expires is not None:
        changed |= {"plan_id": planned.id, "expires_at": expires.isoformat(timespec="seconds")}
    details = details_of(planned).model_copy(update=changed)
    message = Message(role="assistant", content=render(workflow))
    return ServedAnswer(planned, message, "stop", Spent(planned.usage, planned.cost_usd), details)


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
