"""What a trace without an answer is to its caller: a budget's stop, failed workers, or a plan that was none.

A trace with an answer is never an error, also where a budget or a failure cut it short: its status says so.
"""

from __future__ import annotations

from podium.errors import APIError
from podium.trace import Span, Trace

_BUDGETS = "time_is_up"
"""The kind of a plan's error where the time of the budget was over."""


def complaint(trace: Trace) -> APIError | None:
    """Why there is no answer; None: there is one."""
    if trace.answer is not None:
        return None
    headers = {
        "x-podium-trace-id": trace.id,
        "x-podium-cost-usd": f"{trace.cost_usd:.6f}",
        # What may pass was tried again here; OpenAI's client would pay for it all twice more.
        "x-should-retry": "false",
    }
    more = {"trace_id": trace.id}
    message = trace.error or "There is no answer."
    failed = [span for span in trace.spans if span.status == "failed" and not _wanted_others(span)]
    stopped = any(span.status == "refused" for span in trace.spans) or any(
        round_.plan_error_kind == _BUDGETS for round_ in trace.rounds
    )
    if failed:
        names = list(dict.fromkeys(span.worker for span in failed))
        more["workers"] = ", ".join(names)
        return APIError(
            502,
            "workers_failed",
            f"No worker could answer ({', '.join(names)}). {message}",
            code="workers_failed",
            headers=headers,
            more=more,
        )
    if stopped:
        return APIError(402, "budget_exceeded", message, code="budget_exceeded", headers=headers, more=more)
    return APIError(502, "planner_failed", message, code="planner_failed", headers=headers, more=more)


def _wanted_others(span: Span) -> bool:
    """Whether a tool failed only because the steps that it was to see had."""
    return bool(span.attempts) and span.attempts[-1].error_kind == "missing"
