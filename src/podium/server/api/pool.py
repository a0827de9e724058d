"""GET /api/pool: the workers that this caller may use, with price, current state and recent latency and errors.

The current state is this process's; the history is that of the newest traces.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI

from podium.calls.call_state import WorkerChannel
from podium.conductor.plan_format import FORMAT_WORDS, ProbeCache, endpoint_of
from podium.server.requests import RequestCaller
from podium.server.service import Service
from podium.trace import Trace
from podium.types import Profile
from podium.workers.base import Worker
from podium.workers.build import UnavailableWorker

_SAMPLES = 5
"""Samples of the self-consistency planners that are listed."""


@dataclass(slots=True)
class CallHistory:
    """One worker's calls in some traces. Cancelled and cached calls do not count."""

    seconds: list[float] = field(default_factory=list)
    """Latencies of answered calls: those that replies claim, or else measured latencies."""
    failures: int = 0

    def figures(self) -> dict[str, Any]:
        """The number of calls, the median and 90th percentile of latency, and the share of failures. Without calls,
        they are None."""
        calls = len(self.seconds) + self.failures
        ordered = sorted(self.seconds)
        return {
            "calls": calls,
            "median_s": statistics.median(ordered) if ordered else None,
            "p90_s": ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))] if ordered else None,
            "error_share": self.failures / calls if calls else None,
        }


def call_histories(traces: Iterable[Trace]) -> dict[str, CallHistory]:
    """The call history of every worker in `traces`."""
    histories: dict[str, CallHistory] = {}
    for trace in traces:
        for span in trace.spans:
            for attempt in span.attempts:
                history = histories.setdefault(attempt.worker, CallHistory())
                if attempt.error_kind is None:
                    clock = attempt.ended_s - attempt.started_s
                    history.seconds.append(clock if span.claimed_s is None else span.claimed_s)
                elif attempt.error_kind != "cancelled":
                    history.failures += 1
    return histories


def add_routes(app: FastAPI, service: Service) -> None:
    """The route GET /api/pool."""

    @app.get("/api/pool")
    async def pool(caller: RequestCaller) -> dict[str, Any]:
        """The workers that the caller's key may use, and the planners."""
        histories = call_histories(await service.recent_traces.read())
        formats = await asyncio.to_thread(_plan_formats, service)
        channels = {channel.worker.profile.name: channel for channel in service.call_state.channels}
        allowed = caller.allowed(service.pool.names)
        return {
            "workers": [
                _row(
                    number,
                    worker,
                    channels.get(worker.profile.name),
                    histories.get(worker.profile.name, CallHistory()),
                )
                | {"plan_format": formats.get(worker.profile.name)}
                for number, worker in enumerate(service.pool)
                if worker.profile.name in allowed
            ],
            "planners": _planners(service, allowed),
            "configured": service.planners.configured,
        }


def _plan_formats(service: Service) -> dict[str, str]:
    """The plan formats of the pool's endpoints that probes of the last day have found."""
    file, formats = ProbeCache(), dict[str, str]()
    for worker in service.pool:
        if endpoint_of(worker) is not None and (obeyed := file.get(worker)) is not None:
            formats[worker.profile.name] = FORMAT_WORDS[obeyed]
    return formats


def _row(number: int, worker: Worker, channel: WorkerChannel | None, history: CallHistory) -> dict[str, Any]:
    profile: Profile = worker.profile
    cooldown = None if channel is None else channel.breaker.cooldown
    limiter = None if channel is None else channel.rate_limiter
    row: dict[str, Any] = {
        "name": profile.name,
        "number": number,
        "description": profile.description,
        "skills": list(profile.skills),
        "price": profile.price.model_dump() if profile.price.is_known else None,
        "latency_s": profile.latency_s,
        "context_tokens": profile.context_tokens,
        "sees": profile.sees,
        "calls_tools": profile.calls_tools,
        "state": "closed" if channel is None else channel.breaker.state,
        "error": None if cooldown is None else cooldown.error,
        **{key: getattr(limiter, key, 0) for key in ("in_flight", "waiting")},
        **{key: getattr(channel, key, 0) for key in ("attempts", "failures", "retries", "hedges")},
        **history.figures(),
    }
    if isinstance(worker, UnavailableWorker):
        row |= {"state": "unready", "error": worker.reason}
    return row


def _planners(service: Service, allowed: tuple[str, ...]) -> list[str]:
    votes = "vote" in allowed
    workers = [name for name in allowed if name != "vote"]
    return [
        *service.planners.names,
        *(f"single:{name}" for name in workers),
        *(f"self-consistency:{name}:{_SAMPLES}" for name in workers if votes),
    ]
