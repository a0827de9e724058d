"""Opens what a server needs, and closes it when the server has ended. `podium.server.serving` runs and ends the server.

The verb is in `serve`, which imports this module only where the web framework is installed.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from podium.concurrency.event_loops import run_event_loop
from podium.errors import UsageError
from podium.server.app import create_app
from podium.server.keys.keys import Keys, open_key_store
from podium.server.process_group import ServerProcess, run_group
from podium.server.process_peers import ProcessPeers, flush_peers_before_reads
from podium.server.service import Service
from podium.server.serving import listen, serve_app
from podium.server.telemetry import open_telemetry
from podium.store import TraceStore
from podium.team.settings import TeamSettings
from podium.team.team import Team
from podium.team.team_file import TeamReference, open_pool
from podium.team.team_worker import share_limits
from podium.workers.pool import Pool

_CLOSE_TIMEOUT_S = 10.0
"""Seconds for which the server tries at its end to write traces, before it spills them to a file."""
_print_line = partial(print, flush=True)


def serve_team(team: TeamReference) -> None:
    """Serve a team until SIGTERM or Ctrl+C."""
    settings = team.read()
    pool = open_pool(settings)
    processes = settings.serve.processes
    with ExitStack() as opened:
        sockets = [
            opened.enter_context(closing(socket))
            for socket in listen(settings.serve.host, settings.serve.port)
        ]
        if processes == 1:
            _run(settings, pool, sockets, None)
        else:
            share_limits(pool, 0, processes)  # Here for its refusals: each process opens the pool itself.
            folder = Path(opened.enter_context(TemporaryDirectory(prefix="podium-")))
            run_group(partial(_run_process, team), sockets, processes, folder, _print_line)


def _run_process(team: TeamReference, sockets: Sequence[socket.socket], process: ServerProcess) -> None:
    """Serve in one of several processes, which opens the team itself, until the group's parent ends it."""
    settings = team.read()
    pool = open_pool(settings)
    share_limits(pool, process.number, process.process_count)
    _run(settings, pool, sockets, process)


def _run(
    settings: TeamSettings, pool: Pool, sockets: Sequence[socket.socket], process: ServerProcess | None
) -> None:
    if not run_event_loop(_open_and_serve(settings, pool, sockets, process)):
        print("podium: Some questions did not end in time; they are recorded as cancelled.", file=sys.stderr)


async def _open_and_serve(
    settings: TeamSettings, pool: Pool, sockets: Sequence[socket.socket], process: ServerProcess | None
) -> bool:
    async with AsyncExitStack() as opened:
        opened.push_async_callback(pool.close)
        service = await opened.enter_async_context(_open_service(settings, pool, process))
        app = create_app(service)
        checks: list[asyncio.Task[object]] = []

        def ready() -> None:
            show = _print_line if process is None else process.ready
            show(_startup_message(settings.serve.host, sockets, service, process))
            if process is None or process.is_first:
                checks.append(asyncio.create_task(service.planners.check()))

        return await serve_app(app, sockets, ready, None if process is None else process.parent)


@asynccontextmanager
async def _open_service(
    settings: TeamSettings, pool: Pool, process: ServerProcess | None
) -> AsyncIterator[Service]:
    """What all requests share. At the end, traces and spans are written before their stores are closed."""
    store = settings.store_address
    if store is None:
        raise UsageError("A server keeps its traces and keys in a store: name one, instead of store=false.")
    async with AsyncExitStack() as opened:
        traces = TraceStore(store, alone=process is None, close_timeout_s=_CLOSE_TIMEOUT_S)
        opened.push_async_callback(asyncio.to_thread, traces.close)
        keys = Keys(open_key_store(store))
        opened.push_async_callback(keys.close)
        await keys.open(settings.serve.host)
        telemetry = open_telemetry(pool)
        if telemetry is not None:
            opened.push_async_callback(asyncio.to_thread, telemetry.close)
        spend_limit_file = None if process is None else process.folder / "spending.sqlite"
        team = await opened.enter_async_context(
            Team.from_settings(settings, pool, seed="served", spend_limit_file=spend_limit_file)
        )
        peers = None
        if process is not None:
            peers = await opened.enter_async_context(
                ProcessPeers(process.folder, process.number, process.process_count)
            )
            flush_peers_before_reads(traces, peers)
        yield Service(
            team,
            store=traces,
            keys=keys,
            observers=() if telemetry is None else (telemetry.observe,),
            peers=peers,
        )


def _startup_message(
    host: str, sockets: Sequence[socket.socket], service: Service, process: ServerProcess | None
) -> str:
    where = f"[{host}]" if ":" in host else host
    keys = "a key is needed" if service.keys.are_needed else "no key is needed on this machine"
    processes = "" if process is None else f"{process.process_count} processes; "
    address = f"http://{where}:{sockets[0].getsockname()[1]}"
    return (
        f"Podium serves at {address} ({processes}{keys}); Ctrl+C ends it.\n"
        f"Clients take {address}/v1; a browser has the viewer. Planner: {service.team.opened_planner.description}."
    )
