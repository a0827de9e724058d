"""GET /api/pool: workers, their current state, and their history in the newest traces."""

from __future__ import annotations

from pathlib import Path

import httpx

from podium.server.api.pool import call_histories
from viewer_traces import keep, plain, troubled


def test_workers_come_with_prices_states_and_planners(serve) -> None:
    pool = httpx.get(f"{serve()}/api/pool").json()
    names = [worker["name"] for worker in pool["workers"]]
    assert names == ["ada", "bram", "cleo", "egon", "gus", "vote"]
    assert pool["workers"][0]["price"] == {"input": 1.0, "output": 6.0, "cached_input": None}
    assert {worker["state"] for worker in pool["workers"]} == {"closed"}
    assert pool["configured"] == "conductor"
    assert {"conductor", "random", "single:ada", "self-consistency:ada:5"} <= set(pool["planners"])
    assert "single:vote" not in pool["planners"]


def test_pool_route_reports_past_calls_failures_and_latency(serve, tmp_path: Path) -> None:
    one, other = plain(seconds=0.05), troubled()
    kept = keep(tmp_path / "traces.sqlite", one, other)
    workers = {row["name"]: row for row in httpx.get(f"{serve(store=kept)}/api/pool").json()["workers"]}
    assert (workers["ada"]["calls"], workers["ada"]["error_share"]) == (2, 0.5)
    assert workers["ada"]["median_s"] >= 0.05
    assert (workers["bram"]["calls"], workers["bram"]["error_share"]) == (1, 0.0)
    assert (workers["gus"]["calls"], workers["gus"]["median_s"], workers["gus"]["error_share"]) == (
        0,
        None,
        None,
    )


def test_cancelled_attempt_is_not_counted_as_a_call() -> None:
    trace = plain()
    span = trace.rounds[0].spans[0]
    off = span.attempts[0].model_copy(update={"error_kind": "cancelled", "error": "Called off."})
    spans = (span.model_copy(update={"attempts": (off,)}),)
    cancelled = trace.model_copy(update={"rounds": (trace.rounds[0].model_copy(update={"spans": spans}),)})
    assert call_histories([cancelled])["ada"].figures()["calls"] == 0
