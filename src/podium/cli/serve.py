"""`podium serve`: one endpoint in front of the team, with its viewer.

Opens what the server needs, and closes it when the server has ended. `podium.server.serving` runs and ends the server.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from cyclopts import Parameter

from podium.cli.opening import budget_from_options, open_dispatcher, planner_settings, trained_plan
from podium.cli.options import (
    DEFAULT_CALLS,
    SHIPPED_CONDUCTOR,
    UNLIMITED,
    BudgetOptions,
    DispatchOptions,
    EarlyStop,
    Flag,
    PlannerOptions,
    PoolName,
)
from podium.conductor.checkpoint import PlanSettings
from podium.errors import UsageError
from podium.orchestrator.limit_shares import share_limits
from podium.orchestrator.team import open_pool
from podium.server.app import create_app
from podium.server.keys.keys import Keys, open_register, require_keys
from podium.server.live import LiveQuestions
from podium.server.process_group import Member, run_group
from podium.server.service import Service
from podium.server.serving import listen, run_event_loop, serve_app
from podium.server.settings import ServeSettings
from podium.server.siblings import Siblings, read_together
from podium.server.telemetry import open_telemetry
from podium.trace.store import default_path, open_store
from podium.workers.pool import Pool

StorePlace = Annotated[
    str | None,
    Parameter(
        name="--store",
        help="The store of traces and keys: an SQLite file, or postgresql://USER@HOST/DATABASE. "
        "Default: $PODIUM_STORE, else ~/.local/share/podium/traces.sqlite.",
    ),
]
RunBudget = Annotated[
    float | None,
    Parameter(
        name="--run-budget-usd",
        group="Workers' calls",
        help="The most dollars that all questions together may cost until the server ends.",
    ),
]
Origins = Annotated[list[str] | None, Parameter(name="--cors", negative="")]
_PORTS = 65535


def serve(
    *,
    pool: PoolName = None,
    planner: PlannerOptions = SHIPPED_CONDUCTOR,
    max_steps: int | None = None,
    early_stop: EarlyStop = False,
    budget: BudgetOptions = UNLIMITED,
    calls: DispatchOptions = DEFAULT_CALLS,
    run_budget_usd: RunBudget = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    store: StorePlace = None,
    runs: Path = Path("runs"),
    cors: Origins = None,
    max_body_mib: float = 20.0,
    timeout: float = 600.0,
    drain: float = 30.0,
    lease: float = 15.0,
    workers: int = 1,
    plan_processes: int = 1,
    prompt_cache_minutes: float = 5.0,
    right_answer_usd: float | None = None,
    no_viewer: Flag = False,
    strict: Flag = False,
) -> int:
    """Answer questions over HTTP until SIGTERM or Ctrl+C.

    Args:
        max_steps: The most steps of a plan, unless a request says otherwise. Default: as many as the Conductor was
            trained with, else 5.
        host: The address to listen on. Any other than this machine's own (127.0.0.1, ::1, localhost) needs keys.
        port: The port; 0 takes a free one.
        runs: The folder whose run folders the viewer shows.
        cors: An origin whose pages may call the API from a browser, as https://chat.example.com. May be given several
            times.
        max_body_mib: The largest body of a request, in MiB.
        timeout: Seconds after which a question is cancelled and its request gets an error.
        drain: Seconds that questions in flight have to end after the signal.
        lease: Seconds after which the background responses of a server that was killed are taken over, by this server
            or by another one on the same store.
        workers: How many processes answer requests, as uvicorn's and gunicorn's --workers; not the models of the pool.
            They divide the limits of the pool's workers among themselves, and share all budgets and keys.
        plan_processes: How many processes write the plans of a small local policy; 1: no other than the server's own.
        prompt_cache_minutes: How long providers keep a conversation in their prompt caches. Until then its next turn
            stays with its worker if a move would cost more than it gains. Workers without a price of cached input are
            not kept. 0: none is.
        right_answer_usd: What a right answer is worth, to weigh such a move against the workers' ratings. Default: a
            higher accuracy is worth any price.
        no_viewer: Serve only the API, without the viewer.
        strict: Refuse every field that cannot be honoured. Otherwise hints, as reasoning_effort, are ignored, and the
            reply names them.
    """
    settings = ServeSettings(
        planner=planner_settings(planner),
        budget=budget_from_options(budget),
        plan_processes=_at_least_1("--plan-processes", plan_processes),
        max_steps=_at_least_1("--max-steps", 1 if max_steps is None else max_steps),
        early_stop=early_stop,
        prompt_cache_s=60 * _positive("--prompt-cache-minutes", prompt_cache_minutes, or_nothing=True),
        right_answer_usd=None
        if right_answer_usd is None
        else _positive("--right-answer-usd", right_answer_usd, or_nothing=True),
        runs=runs,
        origins=tuple(_origin(text) for text in cors or ()),
        body_bytes=int(_positive("--max-body-mib", max_body_mib) * 2**20) or 1,
        request_seconds=_positive("--timeout", timeout),
        drain_seconds=_positive("--drain", drain, or_nothing=True),
        lease_seconds=_positive("--lease", lease),
        strict=strict,
        viewer=not no_viewer,
    )
    if not 0 <= port <= _PORTS:
        raise UsageError(f"--port {port}: give a number from 0 to {_PORTS}.")
    _at_least_1("--workers", workers)
    pool_name = pool or "embedded"
    team = open_pool(pool_name)
    server = _Server(
        _with_plans(settings, trained_plan(planner, team), budget, max_steps),
        pool_name,
        store or os.environ.get("PODIUM_STORE") or str(default_path()),
        host,
        planner,
        calls,
        run_budget_usd,
    )
    with ExitStack() as opened:
        sockets = [opened.enter_context(closing(one)) for one in listen(host, port)]
        if workers == 1:
            server.run(team, sockets, None)
        else:
            share_limits(team, 0, workers)  # Here for its refusals: each process opens the pool itself.
            folder = Path(opened.enter_context(TemporaryDirectory(prefix="podium-")))
            run_group(server.run_member, sockets, workers, folder, _say)
    return 0


@dataclass(frozen=True, slots=True)
class _Server:
    """All that a process needs to serve; it opens the rest itself."""

    settings: ServeSettings
    pool: str
    place: str
    """The store."""
    host: str
    planner: PlannerOptions
    calls: DispatchOptions
    run_budget_usd: float | None

    def run_member(self, sockets: Sequence[socket.socket], member: Member) -> None:
        """Serve as one of several processes."""
        # Traces have all retries; the command's own process keeps the library quiet in the same way.
        logging.getLogger("stamina").addHandler(logging.NullHandler())
        team = open_pool(self.pool)
        share_limits(team, member.number, member.of)
        self.run(team, sockets, member)

    def run(self, team: Pool, sockets: Sequence[socket.socket], member: Member | None) -> None:
        """Serve until a signal, or the group's parent, ends this process."""
        if not run_event_loop(self._life(team, sockets, member)):
            print(
                "podium: Some questions did not end in time; they are recorded as cancelled.", file=sys.stderr
            )

    async def _life(self, team: Pool, sockets: Sequence[socket.socket], member: Member | None) -> bool:
        async with AsyncExitStack() as opened:
            opened.push_async_callback(team.close)
            service = await opened.enter_async_context(self._open_service(team, member))
            # If the Conductor cannot be opened, the server fails here, before any paid call.
            conductor = await service.planners.get(None)
            app = create_app(service)
            asking: list[asyncio.Task[object]] = []

            def ready() -> None:
                (_say if member is None else member.ready)(
                    _started(self.host, sockets, service, conductor.description, member)
                )
                if member is None or member.is_first:
                    asking.append(asyncio.create_task(service.planners.check()))

            return await serve_app(app, sockets, ready, None if member is None else member.parent)

    @asynccontextmanager
    async def _open_service(self, team: Pool, member: Member | None) -> AsyncIterator[Service]:
        """What all requests share. At the end, traces and spans are written before their stores are closed."""
        async with AsyncExitStack() as opened:
            traces = open_store(self.place, alone=member is None)
            opened.push_async_callback(traces.close)
            keys = Keys(open_register(self.place))
            opened.push_async_callback(keys.close)
            await require_keys(self.host, keys)
            await keys.refresh()
            telemetry = open_telemetry(team)
            if telemetry is not None:
                opened.push_async_callback(asyncio.to_thread, telemetry.close)
            dispatcher = await opened.enter_async_context(
                open_dispatcher(
                    self.calls,
                    team,
                    planner=self.planner,
                    run_budget_usd=self.run_budget_usd,
                    spending=None if member is None else member.folder / "spending.sqlite",
                )
            )
            siblings = None
            if member is not None:
                siblings = await opened.enter_async_context(Siblings(member.folder, member.number, member.of))
                read_together(traces, siblings)
            yield Service(
                team,
                dispatcher,
                store=traces,
                keys=keys,
                live=LiveQuestions(),
                settings=self.settings,
                observers=() if telemetry is None else (telemetry.observer,),
                siblings=siblings,
            )


def _with_plans(
    settings: ServeSettings, trained: PlanSettings, budget: BudgetOptions, max_steps: int | None
) -> ServeSettings:
    """The settings with the rounds and steps that the options give, else those that the Conductor was trained with."""
    limits, steps = budget_from_options(budget, trained), max_steps or trained.max_steps
    most = ServeSettings()
    return settings.model_copy(
        update={
            "budget": limits,
            "max_steps": steps,
            "most_rounds": max(most.most_rounds, limits.rounds),
            "most_steps": max(most.most_steps, steps),
        }
    )


def _started(
    host: str, sockets: Sequence[socket.socket], service: Service, conductor: str, member: Member | None
) -> str:
    where = f"[{host}]" if ":" in host else host
    keys = "a key is needed" if service.needs_keys else "no key is needed on this machine"
    processes = "" if member is None else f"{member.of} processes; "
    return (
        f"Podium serves at http://{where}:{sockets[0].getsockname()[1]} ({processes}{keys}); Ctrl+C ends it.\n"
        f"Planner: {conductor}."
    )


def _say(text: str) -> None:
    print(text, flush=True)


def _origin(text: str) -> str:
    given = text.strip().rstrip("/")
    if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/?#\s@]+", given):
        raise UsageError(
            f"--cors {text}: give an origin, as https://chat.example.com or http://localhost:3000."
        )
    return given.lower()


def _positive(option: str, value: float, *, or_nothing: bool = False) -> float:
    if not (0 <= value < float("inf")) or (value == 0 and not or_nothing):
        raise UsageError(f"{option} {value:g}: give a number {'from 0 on' if or_nothing else 'above 0'}.")
    return value


def _at_least_1(option: str, value: int) -> int:
    if value < 1:
        raise UsageError(f"{option} {value}: give at least 1.")
    return value
