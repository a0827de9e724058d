"""The spans of one trace, in the words of OpenTelemetry's conventions for generative AI.

    invoke_workflow PLANNER            the question; its trace id is ours
    ├── plan PLANNER                   each round's planning
    ├── chat MODEL                     each step, retries and fallbacks included
    │   └── attempt WORKER             each try, where there was more than one, or it failed
    └── ...

The conventions (of 2026, status: development) have no words for workers and plans; those stand under `podium.`.
Times are the trace's own. Texts of messages and of errors only where they are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, set_span_in_context

from podium.trace import Attempt, RoundTrace, Span, Trace
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
"""The conventions' names, by the ends of hosts; others are told by their host alone."""
_ENDED = {"failed": "failed", "refused": "budget_exceeded", "cancelled": "cancelled"}
"""`error.type` by status, where no attempt says more."""

Attributes = dict[str, Any]


class TraceIdGenerator(IdGenerator):
    """Ids of spans at random; the id of a trace is the one that is being told."""

    def __init__(self) -> None:
        self._random = RandomIdGenerator()
        self.trace: int | None = None
        """Of the next spans without a parent; None: one at random."""

    def generate_span_id(self) -> int:
        """64 bits."""
        return self._random.generate_span_id()

    def generate_trace_id(self) -> int:
        """128 bits."""
        return self.trace or self._random.generate_trace_id()


@dataclass(frozen=True, slots=True)
class _Model:
    """What is known of the model behind a worker."""

    name: str
    provider: str
    address: str | None = None


class SpanExporter:
    """Tells traces to a tracer. For one thread.

    Args:
        ids: those of the tracer's provider.
        pool: the workers, for what is known of their models.
        texts: whether messages and errors are told word by word.
    """

    def __init__(self, tracer: Tracer, ids: TraceIdGenerator, pool: Pool, *, texts: bool = False) -> None:
        self._tracer = tracer
        self._ids = ids
        self._texts = texts
        self._models = {worker.profile.name: _model(worker.profile.name, worker.identity) for worker in pool}

    def export(self, trace: Trace) -> None:
        """All spans of a question."""
        self._ids.trace = int(trace.id, 16) if len(trace.id) == 32 else None
        self._question(trace, Context())

    def _question(self, trace: Trace, above: Context) -> None:
        started = _nanoseconds(trace.started_at)
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": trace.planner,
            **_usage(trace.usage),
            "podium.trace.id": trace.id,
            "podium.status": trace.status,
            "podium.rounds": len(trace.rounds),
            "podium.calls": trace.calls,
            "podium.cost_usd": trace.cost_usd,
        }
        if trace.owner is not None:
            attributes["podium.key"] = trace.owner
        if self._texts:
            asked = (*trace.question.history, Message(role="user", content=trace.question.text))
            attributes["gen_ai.input.messages"] = _messages(asked)
            if trace.answer is not None:
                attributes["gen_ai.output.messages"] = _answer(trace.answer, None)
        error = _ENDED.get(trace.status)
        with _OpenSpan(self, f"invoke_workflow {trace.planner}", started, trace.seconds, above) as open_span:
            open_span.set(attributes, error, trace.error)
            at = started
            for number, round_ in enumerate(trace.rounds):
                self._plan(trace.planner, number, round_, at, open_span.context)
                for span in round_.spans:
                    if span.status != "skipped":
                        self._step(number, span, started, open_span.context)
                ends = [_after(started, span.ended_s) for span in round_.spans]
                at = max(ends, default=_after(at, round_.plan_seconds))

    def _plan(self, planner: str, number: int, round_: RoundTrace, begun: int, above: Context) -> None:
        attributes: Attributes = {
            "gen_ai.operation.name": "plan",
            **_usage(round_.plan_usage),
            "podium.planner": planner,
            "podium.round": number,
            "podium.accepted": round_.accepted,
            "podium.steps": 0 if round_.workflow is None else len(round_.workflow.steps),
            "podium.cost_usd": round_.plan_cost_usd,
        }
        if self._texts:
            attributes["gen_ai.output.messages"] = _answer(round_.plan_text, None)
        with _OpenSpan(self, f"plan {planner}", begun, round_.plan_seconds, above) as open_span:
            open_span.set(attributes, round_.plan_error_kind, round_.plan_error)

    def _step(self, number: int, span: Span, started: int, above: Context) -> None:
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
            "podium.cost_usd": span.cost_usd,
            "gen_ai.response.model": span.model,
            "gen_ai.response.finish_reasons": None if span.finish is None else [span.finish],
            "gen_ai.response.time_to_first_chunk": span.first_token_s,
            "server.address": model.address,
        }
        if self._texts:
            attributes["gen_ai.input.messages"] = _messages(span.messages)
            if span.response is not None:
                attributes["gen_ai.output.messages"] = _answer(span.response, span.finish)
        error = _ENDED.get(span.status)
        if span.status == "failed" and span.attempts:
            error = span.attempts[-1].error_kind or error
        begun = _after(started, span.started_s)
        with _OpenSpan(
            self, f"chat {model.name}", begun, span.ended_s - span.started_s, above, kind=SpanKind.CLIENT
        ) as open_span:
            open_span.set(attributes, error, span.error)
            if len(span.attempts) > 1 or any(attempt.error_kind for attempt in span.attempts):
                for attempt in span.attempts:
                    self._attempt(attempt, started, open_span.context)
            if span.nested is not None:
                self._question(span.nested, open_span.context)

    def _attempt(self, attempt: Attempt, started: int, above: Context) -> None:
        begun = _after(started, attempt.started_s)
        seconds = attempt.ended_s - attempt.started_s
        with _OpenSpan(self, f"attempt {attempt.worker}", begun, seconds, above) as open_span:
            attributes = {"podium.worker": attempt.worker, "podium.hedge": attempt.hedge}
            open_span.set(attributes, attempt.error_kind, attempt.error)


class _OpenSpan:
    """One span, from its beginning to its end, whenever they were."""

    def __init__(
        self,
        spans: SpanExporter,
        name: str,
        begun: int,
        seconds: float,
        above: Context,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        self._span = spans._tracer.start_span(name, above, kind, start_time=begun)
        self._ended = _after(begun, max(0.0, seconds))
        self._texts = spans._texts

    @property
    def context(self) -> Context:
        """For the spans within."""
        return set_span_in_context(self._span, Context())

    def __enter__(self) -> _OpenSpan:
        return self

    def __exit__(self, *raised: object) -> None:
        self._span.end(self._ended)

    def set(self, attributes: Mapping[str, Any], error: str | None, sentence: str | None) -> None:
        """What is known, without what is None; and what went wrong, if something did."""
        self._span.set_attributes({key: value for key, value in attributes.items() if value is not None})
        if error is not None:
            self._span.set_attribute("error.type", error)
            # A sentence about an error may quote what a model wrote.
            self._span.set_status(Status(StatusCode.ERROR, sentence if self._texts else None))


def _usage(usage: Usage) -> Attributes:
    told: Attributes = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    if usage.cached_tokens:
        told["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
    if usage.reasoning_tokens:
        told["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning_tokens
    return told


def _messages(messages: Sequence[Message]) -> str:
    return json.dumps(
        [
            {"role": message.role, "parts": [{"type": "text", "content": message.content}]}
            for message in messages
        ],
        ensure_ascii=False,
    )


def _answer(text: str, finish: str | None) -> str:
    parts = [{"type": "text", "content": text}]
    return json.dumps(
        [{"role": "assistant", "parts": parts, "finish_reason": finish or "stop"}], ensure_ascii=False
    )


def _model(name: str, identity: Mapping[str, Any] | None) -> _Model:
    """What a worker's identity tells; a worker without one is simulated or local, and its own model."""
    if identity is None or not isinstance(identity.get("model"), str):
        return _Model(name, "podium")
    host = urlsplit(str(identity.get("url") or "")).hostname
    provider = next((p for end, p in _PROVIDERS.items() if host and host.endswith(end)), host or "podium")
    return _Model(identity["model"], provider, host)


def _nanoseconds(moment: str) -> int:
    at = datetime.fromisoformat(moment)
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e3) * 1_000_000


def _after(begun: int, seconds: float) -> int:
    return begun + round(seconds * 1e9)
