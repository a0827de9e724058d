"""The OpenTelemetry spans of one trace, by the conventions for generative AI.

    invoke_workflow PLANNER            the question; its trace id is ours
    ├── plan PLANNER                   the planning of each round
    ├── chat MODEL                     each step, retries and fallbacks included
    │   └── attempt WORKER             each attempt, where there were several or one failed
    └── ...

The conventions (2026, status: development) have no attributes for workers and plans, so Podium's own begin
with `podium.`. Times are those of the trace. Texts of messages and errors are included only on request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, set_span_in_context

from podium.trace import Attempt, RoundTrace, Span, Trace
from podium.trace.serialization import to_seconds
from podium.types import Message, Usage
from podium.workers.pool import Pool

_PROVIDERS = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    "openai.azure.com": "azure.ai.openai",
    "services.ai.azure.com": "azure.ai.inference",
    "amazonaws.com": "aws.bedrock",
    "api.x.ai": "x_ai",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral_ai",
    "api.perplexity.ai": "perplexity",
    "api.cohere.com": "cohere",
}
"""The conventions' names of providers, by the end of the host name. Other providers are named by their host."""
_ERROR_TYPES = {"failed": "failed", "refused": "budget_exceeded", "cancelled": "cancelled"}
"""`error.type` by status, if no attempt has a more exact type."""

Attributes = dict[str, Any]


class TraceIdGenerator(RandomIdGenerator):
    """Random span ids, and the trace id of the Podium trace that is being exported."""

    trace: int | None = None
    """The trace id of the next root span. If it is None, a random id."""

    def generate_trace_id(self) -> int:
        """An id of 128 bits."""
        return self.trace or super().generate_trace_id()


@dataclass(frozen=True, slots=True)
class _Model:
    """The model behind a worker, as far as it is known."""

    name: str
    provider: str
    address: str | None = None


class TraceExporter:
    """Exports traces as spans.

    Args:
        ids: the id generator of the tracer's provider.
        pool: the workers, whose models the spans name.
        texts: whether spans include the texts of messages and errors.
    """

    def __init__(self, tracer: Tracer, ids: TraceIdGenerator, pool: Pool, *, texts: bool = False) -> None:
        self._tracer = tracer
        self._ids = ids
        self._texts = texts
        self._models = {worker.profile.name: _model(worker.profile.name, worker.identity) for worker in pool}

    def export(self, trace: Trace) -> None:
        """Export all spans of a question."""
        self._ids.trace = int(trace.id, 16) if len(trace.id) == 32 else None
        self._export_question(trace, Context())

    def _export_question(self, trace: Trace, parent: Context) -> None:
        started = round(to_seconds(trace.started_at) * 1e3) * 1_000_000
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": trace.planner,
            **_usage(trace.usage),
            "podium.trace.id": trace.id,
            "podium.status": trace.status,
            "podium.rounds": len(trace.rounds),
            "podium.calls": trace.calls,
            "podium.cost_usd": trace.cost_usd,
            "podium.key": trace.owner,
        }
        if self._texts:
            messages = (*trace.question.history, Message(role="user", content=trace.question.text))
            attributes["gen_ai.input.messages"] = _messages(messages)
            if trace.answer is not None:
                attributes["gen_ai.output.messages"] = _answer(trace.answer, None)
        inside = self._export_span(
            f"invoke_workflow {trace.planner}",
            (started, trace.seconds),
            parent,
            attributes,
            error=(_ERROR_TYPES.get(trace.status), trace.error),
        )
        plan_start = started
        for number, round_ in enumerate(trace.rounds):
            self._export_plan(trace.planner, number, round_, (started, plan_start), inside)
            for span in round_.all_spans:
                if span.status != "skipped":
                    self._export_step(number, span, started, inside)
            ends = [_after(started, span.ended_s) for span in round_.spans]
            plan_start = max(ends, default=_after(plan_start, round_.plan.seconds))

    def _export_plan(
        self, planner: str, number: int, round_: RoundTrace, times: tuple[int, int], parent: Context
    ) -> None:
        """`times` are when the trace and when the plan began."""
        started, start = times
        attributes: Attributes = {
            "gen_ai.operation.name": "plan",
            **_usage(round_.plan.spent.usage),
            "podium.planner": planner,
            "podium.round": number,
            "podium.accepted": round_.accepted,
            "podium.steps": 0 if round_.workflow is None else len(round_.workflow.steps),
            "podium.cost_usd": round_.plan.spent.cost_usd,
        }
        if self._texts:
            attributes["gen_ai.output.messages"] = _answer(round_.plan.text, None)
        error = (round_.error_kind, str(round_.error or "") or None)
        inside = self._export_span(
            f"plan {planner}", (start, round_.plan.seconds), parent, attributes, error=error
        )
        self._export_attempts(round_.plan.attempts, started, inside)

    def _export_step(self, number: int, span: Span, started: int, parent: Context) -> None:
        worker = span.answered_by or span.worker
        model = self._models.get(worker, _Model(worker, "podium"))
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": model.provider,
            "gen_ai.request.model": model.name,
            **_usage(span.usage),
            "podium.round": number,
            "podium.step": span.position,
            "podium.worker": span.worker,
            "podium.answered_by": span.answered_by,
            "podium.reads": list(span.reads),
            "podium.attempts": len(span.attempts),
            "podium.cached": span.cached,
            "podium.cost_usd": span.spent.cost_usd,
            "server.address": model.address,
        }
        if (reply := span.reply) is not None:
            attributes |= {
                "gen_ai.response.model": reply.model,
                "gen_ai.response.finish_reasons": None if reply.finish is None else [reply.finish],
                "gen_ai.response.time_to_first_chunk": reply.first_token_s,
            }
        if self._texts:
            attributes["gen_ai.input.messages"] = _messages(span.messages)
            if reply is not None:
                attributes["gen_ai.output.messages"] = _answer(reply.text, reply.finish)
        error = _ERROR_TYPES.get(span.status)
        if span.status == "failed" and span.attempts:
            error = span.attempts[-1].error_kind or error
        times = (_after(started, span.started_s), span.ended_s - span.started_s)
        inside = self._export_span(
            f"chat {model.name}", times, parent, attributes, error=(error, span.error), kind=SpanKind.CLIENT
        )
        self._export_attempts(span.attempts, started, inside)
        if span.nested is not None:
            self._export_question(span.nested, inside)

    def _export_attempts(self, attempts: Sequence[Attempt], started: int, parent: Context) -> None:
        """Export a span for each try, unless the first was answered."""
        if len(attempts) < 2 and not any(attempt.error_kind for attempt in attempts):
            return
        for attempt in attempts:
            times = (_after(started, attempt.started_s), attempt.ended_s - attempt.started_s)
            attributes = {"podium.worker": attempt.worker, "podium.hedge": attempt.hedge}
            error = (attempt.error_kind, attempt.error)
            self._export_span(f"attempt {attempt.worker}", times, parent, attributes, error=error)

    def _export_span(
        self,
        name: str,
        times: tuple[int, float],
        parent: Context,
        attributes: Attributes,
        *,
        error: tuple[str | None, str | None],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Context:
        """Export one span, and return the context for its children.

        Args:
            times: when the span began, in nanoseconds, and its seconds.
            attributes: those that are not None are exported.
            error: the type of the error, and its sentence, which may quote what a model wrote.
        """
        start, seconds = times
        given = {key: value for key, value in attributes.items() if value is not None}
        span = self._tracer.start_span(name, parent, kind, given, start_time=start)
        if error[0] is not None:
            span.set_attribute("error.type", error[0])
            span.set_status(Status(StatusCode.ERROR, error[1] if self._texts else None))
        span.end(_after(start, max(0.0, seconds)))
        return set_span_in_context(span, Context())


def _usage(usage: Usage) -> Attributes:
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens or None,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens or None,
    }


def _messages(messages: Sequence[Message], **more: str) -> str:
    return json.dumps(
        [
            {"role": message.role, "parts": [{"type": "text", "content": message.content}], **more}
            for message in messages
        ],
        ensure_ascii=False,
    )


def _answer(text: str, finish: str | None) -> str:
    return _messages([Message(role="assistant", content=text)], finish_reason=finish or "stop")


def _model(name: str, identity: Mapping[str, Any] | None) -> _Model:
    """The model in a worker's identity. A worker without a model there is scripted or local, and counts as its own
    model."""
    if identity is None or not isinstance(identity.get("model"), str):
        return _Model(name, "podium")
    host = urlsplit(str(identity.get("url") or "")).hostname
    provider = next(
        (provider for suffix, provider in _PROVIDERS.items() if host and host.endswith(suffix)),
        host or "podium",
    )
    return _Model(identity["model"], provider, host)


def _after(start: int, seconds: float) -> int:
    return start + round(seconds * 1e9)
