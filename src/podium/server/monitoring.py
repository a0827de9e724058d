"""/healthz, /readyz and /metrics, for the operators of the server.

Health checks need no key and say nothing private. Metrics are counted from finished traces, and read from the
call_state when Prometheus scrapes them. Their labels are names of workers, planners and routes, never texts or keys.
Where keys are needed, /metrics needs an admin's key.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from podium.errors import APIError
from podium.server.api_errors import forbidden
from podium.server.in_flight import InFlightRequests
from podium.server.requests import ChatRequest, RequestCaller
from podium.server.service import Service
from podium.server.streaming import Write
from podium.trace import Span, Trace
from podium.trace.costs import PLANNING, costs_of, spent_by_worker

_PLANNER_DOWN = "The Conductor does not answer; the server's log says why."
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_STATES = {"closed": 0, "half-open": 1, "open": 2}
_MAX_PLANNERS = 200
"""The most planner names with their own label, since callers can make up names, such as self-consistency:WORKER:7."""
OTHER = "other"
"""The label of everything without a label of its own."""


def add_routes(app: FastAPI, service: Service, in_flight: InFlightRequests, metrics: Metrics) -> None:
    """GET /healthz, /readyz and /metrics."""
    checks: set[asyncio.Task[object]] = set()
    peers = service.peers

    async def write_metrics(_: object, write: Write) -> None:
        await write(_to_json(metrics.registry.collect()))

    if peers is not None:
        peers.handlers["metrics"] = write_metrics

    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz")
    async def healthz() -> dict[str, Any]:
        """The process is alive."""
        return {"status": "ok"}

    @app.head("/readyz", include_in_schema=False)
    @app.get("/readyz")
    async def readyz() -> dict[str, Any]:
        """The server can answer questions and keep their traces; otherwise 503 and the reason.

        The status is "degraded" where the Conductor does not answer and one worker answers all questions.
        """
        if service.planners.check_is_due:
            checks.add(check := asyncio.create_task(service.planners.check()))
            check.add_done_callback(checks.discard)
        reason = unready_reason(service, in_flight)
        planner_down = None if service.planners.last_error is None else _PLANNER_DOWN
        if reason is None and service.planners.fallback is None:
            reason = planner_down
        if reason is not None:
            raise APIError(503, "server_error", reason, code="not_ready", headers={"Retry-After": "5"})
        if planner_down is not None:
            return {"status": "degraded", "reason": f"{planner_down} One worker takes all questions."}
        return {"status": "ready"}

    @app.get(
        "/metrics",
        response_class=Response,
        responses={
            200: {
                "description": "Prometheus's text.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            },
        },
    )
    async def metrics_text(request: Request, caller: RequestCaller) -> Response:
        """The server's metrics, for Prometheus."""
        if not caller.admin:
            raise forbidden(
                "The server's figures are for admin keys: make one with `podium keys add NAME --admin`."
            )
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        registry = metrics.registry
        if peers is not None:
            texts = {peers.number: _to_json(registry.collect()), **await peers.ask("metrics")}
            registry = CollectorRegistry()
            registry.register(_ProcessMetrics({number: texts[number] for number in sorted(texts)}))
        return Response(encode(registry), headers={"content-type": media_type})


def unready_reason(service: Service, in_flight: InFlightRequests) -> str | None:
    """Why a load balancer should send questions elsewhere for now, in one sentence. None if it need not."""
    if in_flight.draining:
        return "The server is shutting down."
    if service.store.write_problem is not None:
        # The store's own message names files and hosts, and this caller has shown no key.
        return "Traces cannot be written; the server's log says why."
    failing = {
        channel.worker.profile.name
        for channel in service.call_state.channels
        if channel.breaker.state != "closed"
    }
    # A tool may work on, but no tool can answer a question.
    if failing.issuperset(service.pool.answering or service.pool.names):
        return "All workers are in cooldown after failures."
    return None


class Metrics:
    """The Prometheus metrics of one application, in their own registry."""

    def __init__(self, service: Service, in_flight: InFlightRequests) -> None:
        self.registry = CollectorRegistry()
        self._planners: set[str] = set()
        self._questions = self._counter(
            "questions", "Questions answered or failed, by planner and status.", "planner", "status"
        )
        self._seconds = cache(
            Histogram(
                "podium_question_seconds",
                "Seconds from a question's start to its end.",
                ("planner",),
                buckets=_SECONDS,
                registry=self.registry,
            ).labels
        )
        self._tokens = self._counter("tokens", "Tokens of worker calls, by direction.", "worker", "direction")
        self._usd = self._counter(
            "cost_usd", "Dollars paid for worker calls, failed tries included.", "worker"
        )
        self._saved = self._counter(
            "saved_usd",
            "Dollars that answers from the response cache had cost when they were made.",
            "worker",
        )
        self._cached = self._counter("cache_hits", "Worker calls answered from the response cache.", "worker")
        self._refused = self._counter("budget_refusals", "Steps that a budget refused to run.", "worker")
        self._steps = self._counter("steps", "Steps of plans, by worker and status.", "worker", "status")
        self._plan_tokens = self._counter(
            "planning_tokens", "Tokens of the planner, by direction.", "direction"
        )
        self._plan_usd = Counter(
            "podium_planning_cost_usd", "Dollars paid for planning.", registry=self.registry
        )
        self._requests = self._counter(
            "http_requests", "HTTP requests, by method, route and status.", "method", "route", "status"
        )
        self.registry.register(_CurrentState(service, in_flight))
        ProcessCollector(registry=self.registry)

    def _counter(self, name: str, help_: str, *labels: str) -> Callable[..., Counter]:
        """The counters of one name, by their labels. They are cached, since finding a counter takes longer than
        counting."""
        return cache(Counter(f"podium_{name}", help_, labels, registry=self.registry).labels)

    def observe(self, request: ChatRequest, trace: Trace) -> None:
        """Count a question that has ended (an `Observer`). A plan counts when it is written, so not again in the
        question that runs it by its id."""
        if request.options.plan_id is None:
            self._count_plans(trace)
        if trace.status != "planned":
            self._count(trace)

    def count_request(self, method: str, route: str, status: int) -> None:
        """Count an answered HTTP request."""
        self._requests(method, route, str(status)).inc()

    def _count_plans(self, trace: Trace) -> None:
        for round_ in trace.rounds:
            spent = round_.plan.spent
            if not (spent.usage.tokens or spent.cost_usd):
                continue
            self._plan_tokens("input").inc(spent.usage.input_tokens)
            self._plan_tokens("output").inc(spent.usage.output_tokens)
            self._plan_usd.inc(spent.cost_usd)

    def _count(self, trace: Trace) -> None:
        planner = self._name(trace.planner)
        self._questions(planner, trace.status).inc()
        self._seconds(planner).observe(trace.seconds)
        for span in trace.spans:
            self._count_step(span)
        for cost in costs_of(trace):
            if cost.worker != PLANNING:
                self._usd(cost.worker).inc(cost.usd - cost.unpaid_usd)

    def _count_step(self, span: Span) -> None:
        worker = span.answered_by or span.worker
        self._steps(span.worker, span.status).inc()
        if span.status == "refused":
            self._refused(worker).inc()
        if span.cached:
            self._cached(worker).inc()
            self._saved(worker).inc(span.spent.saved_usd)
        for name, spent in spent_by_worker((span,)).items():
            if name != worker or not span.cached:
                self._tokens(name, "input").inc(spent.usage.input_tokens)
                self._tokens(name, "output").inc(spent.usage.output_tokens)

    def _name(self, planner: str) -> str:
        if planner not in self._planners:
            if len(self._planners) >= _MAX_PLANNERS:
                return OTHER
            self._planners.add(planner)
        return planner


class _CurrentState(Collector):
    """The current state, read from the call state and the store at each scrape."""

    def __init__(self, service: Service, in_flight: InFlightRequests) -> None:
        self._service = service
        self._in_flight = in_flight

    def collect(self) -> Iterator[Metric]:
        """The current values."""
        channels = {channel.worker.profile.name: channel for channel in self._service.call_state.channels}
        for name, help_ in (
            ("attempts", "Attempts at worker calls, retries and hedges included."),
            ("failures", "Attempts that failed."),
            ("retries", "Attempts that repeated a failed one."),
            ("hedges", "Second attempts started while a slow one was running."),
        ):
            counter = CounterMetricFamily(f"podium_worker_{name}", help_, labels=("worker",))
            for worker, channel in channels.items():
                counter.add_metric((worker,), getattr(channel, name))
            yield counter
        for name, help_ in (
            ("in_flight", "Worker calls that are running."),
            ("waiting", "Worker calls that wait for the worker's rate or concurrency limits."),
        ):
            gauge = GaugeMetricFamily(f"podium_worker_{name}", help_, labels=("worker",))
            for worker, channel in channels.items():
                gauge.add_metric((worker,), getattr(channel.rate_limiter, name))
            yield gauge
        state = GaugeMetricFamily(
            "podium_worker_breaker_state",
            "Circuit breaker: 0 closed, 1 half open, 2 open (the worker is in cooldown).",
            labels=("worker",),
        )
        for worker, channel in channels.items():
            state.add_metric((worker,), _STATES[channel.breaker.state])
        yield state
        store = self._service.store
        for name, help_, value in (
            ("questions_in_flight", "Questions that are running.", len(self._service.event_logs.running)),
            ("http_requests_in_flight", "HTTP requests that are running.", len(self._in_flight)),
            (
                "draining",
                "1 while the server shuts down and takes no new questions.",
                self._in_flight.draining,
            ),
            ("traces_waiting", "Traces that wait to be written.", store.waiting),
            ("store_down", "1 while traces cannot be written.", bool(store.write_problem)),
        ):
            yield GaugeMetricFamily(f"podium_{name}", help_, value=value)


def _to_json(metrics: Iterable[Metric]) -> bytes:
    rows = []
    for metric in metrics:
        samples = [(sample.name, sample.labels, sample.value) for sample in metric.samples]
        rows.append((metric.name, metric.documentation, metric.type, metric.unit, samples))
    return json.dumps(rows).encode()


class _ProcessMetrics(Collector):
    """The metrics of several processes, from the results of `_to_json` by the number of the process, which becomes the
    label `process`. They are not summed, because a replaced process begins at 0, and Prometheus notices that only in
    the process's own series."""

    def __init__(self, texts: Mapping[int, bytes]) -> None:
        self._texts = texts

    def collect(self) -> Iterator[Metric]:
        merged: dict[str, Metric] = {}
        for number, text in self._texts.items():
            for name, documentation, kind, unit, samples in json.loads(text):
                metric = merged.setdefault(name, Metric(name, documentation, kind, unit))
                for sample, labels, value in samples:
                    metric.add_sample(sample, {**labels, "process": str(number)}, value)
        yield from merged.values()
