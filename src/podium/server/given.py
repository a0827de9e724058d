"""One answer as the routes write it: what was said, why it ends, what it took.

Made from a trace, or from a plan that was not run; how it is written on the wire is the routes'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podium.executor.estimate import PlanEstimate
from podium.orchestrator import Orchestrator
from podium.planner import Plan
from podium.server.api_errors import APIError
from podium.server.summary import plan_rows, summary
from podium.trace import Trace
from podium.types import ToolCall, Usage
from podium.workflow import Workflow, render

_FINISHES = ("length", "content_filter")
"""Reasons of a provider that are passed on; all others are "stop"."""


@dataclass(frozen=True, slots=True)
class Given:
    """One answer."""

    trace_id: str
    text: str
    finish: str
    """In OpenAI's words: "stop", "length", "content_filter", "tool_calls"."""
    usage: Usage
    cost_usd: float
    podium: dict[str, Any]
    """How it came about."""
    tool_calls: tuple[ToolCall, ...] = ()


def from_trace(trace: Trace) -> Given:
    """The answer of a trace that has one."""
    return Given(
        trace_id=trace.id,
        text=trace.answer or "",
        finish=_finish(trace),
        usage=trace.usage,
        cost_usd=trace.cost_usd,
        podium=summary(trace),
        tool_calls=trace.tool_calls,
    )


def from_plan(by: Orchestrator, plan: Plan, expected: PlanEstimate | None, trace_id: str) -> Given:
    """What would be done, in canonical text, and what it would cost.

    Raises:
        APIError: 502, the planner wrote no plan.
    """
    if not isinstance(plan.decision, Workflow) or expected is None:
        raise APIError(502, "planner_failed", f"There is no plan. {plan.decision}", code="planner_failed")
    podium = {
        "planner": by.planner.name,
        "status": "dry_run",
        "plan": plan_rows(plan.decision, by.pool.profiles),
        "steps": [],
        "cost_usd": plan.cost_usd,
        "estimate": {
            "cost_usd": expected.cost_usd,
            "most_usd": expected.most_usd,
            "seconds": expected.latency_s,
            "steps": [
                {
                    "step": step.position,
                    "worker": step.worker,
                    "tokens": step.usage.tokens,
                    "cost_usd": step.cost_usd,
                }
                for step in expected.steps
            ],
        },
    }
    return Given(trace_id, render(plan.decision), "stop", plan.usage, plan.cost_usd, podium)


def together(answers: Sequence[Given]) -> dict[str, Any]:
    """The object `podium` of a reply with several answers; of one, it is that one's."""
    if len(answers) == 1:
        return answers[0].podium
    told = [answer.podium for answer in answers]
    first = told[0] | {"answers": told, "cost_usd": sum(answer.cost_usd for answer in answers)}
    first["seconds"] = max(one.get("seconds", 0.0) for one in told)
    return first


def _finish(trace: Trace) -> str:
    if trace.tool_calls:
        return "tool_calls"
    said = next((span.finish for span in reversed(trace.spans) if span.status == "done"), None)
    return said if said in _FINISHES else "stop"
