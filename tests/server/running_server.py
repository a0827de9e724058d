"""A real server on a free port of loopback, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import Any, Self

import uvicorn

from chat_worker import ChatClient, chat_worker
from podium.calls import CallState
from podium.conductor.settings import ConductorSettings
from podium.server.app import create_app
from podium.server.keys import Keys, open_key_store
from podium.server.service import Service
from podium.spending import SpendLimit
from podium.store import TraceStore
from podium.team import team as team_module
from podium.team.settings import PlanSettings, ServeSettings, TeamBudget, TeamSettings
from podium.team.team_file import TeamReference, open_pool
from podium.types import Budget, Limits, Price, Profile
from podium.workers.openai import OpenAIWorker
from podium.workers.pool import Pool
from podium_testing import FaultServer
from scripted_team import open_team

_TICK_S = 0.005


def until(true: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait until `true` returns something true, and return that."""
    end = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
    return value


def capable_worker(endpoint: FaultServer, name: str = "quill", *, sees: bool = True) -> OpenAIWorker:
    """A worker behind `endpoint` that can call tools; its calls cost something."""
    profile = Profile(name=name, calls_tools=True, sees=sees, price=Price(input=1.0, output=2.0))
    return chat_worker(profile, ChatClient(endpoint.url), "m", limits=Limits(retries=0))


class _Server(uvicorn.Server):
    """Ends as uvicorn's does, and at once: that one looks ten times a second whether it is to end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def end(self) -> None:
        """From any thread."""
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ending.set)

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        for second in count():
            if await self.on_tick(second * 10):
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), 1)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        del sockets
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - they tell nobody
            await asyncio.sleep(_TICK_S)
        for server in self.servers:
            await server.wait_closed()
        await self.lifespan.shutdown()


@dataclass
class _Running:
    service: Service
    server: _Server
    thread: threading.Thread


class Serve:
    """Starts servers; all are ended with the block."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_all()

    def __call__(
        self,
        pool: Pool | str | None = None,
        *,
        planner: str | None = None,
        store: TraceStore | Path | None = None,
        keys: Any = None,
        spend_limits: Sequence[SpendLimit] = (),
        **settings: Any,
    ) -> str:
        """The address, as "http://127.0.0.1:PORT".

        Args:
            pool: the workers, or a file. Default: `open_team`'s.
            planner: the configured one. Without it, the first worker conducts.
            store: where traces are kept. Default: a folder of its own. A file is closed with the server.
            keys: the API keys, closed with the server, which settles what they spent. Without them, none is needed.
            spend_limits: further dollar limits of all questions.
            settings: keys of [plan] (max_steps, early_stop, processes, quarantine_failing), the tables `budget` and
                `conductor`, or keys of [serve].
        """
        pool = open_team() if pool is None else pool
        of_plan = ("max_steps", "early_stop", "processes", "quarantine_failing")
        plan = {key: settings.pop(key) for key in of_plan if key in settings}
        plan |= {} if planner is None else {"planner": planner}
        budget = TeamBudget(**settings.pop("budget", Budget()).model_dump(exclude_unset=True))
        if "body_bytes" in settings:
            settings["max_body_mib"] = settings.pop("body_bytes") / 2**20
        leads = settings.pop("conductor", None)
        team = TeamReference(pool).read() if isinstance(pool, str) else TeamSettings()
        update = {
            "conductor": team.conductor if leads is None else ConductorSettings(**leads),
            "plan": PlanSettings(**plan) if plan else team.plan,
            "budget": budget,
            "serve": ServeSettings(**settings),
        }
        workers = open_pool(team) if isinstance(pool, str) else pool
        folder = TemporaryDirectory(prefix="podium-served-")
        own = Path(folder.name) / "traces.sqlite"
        kept = TraceStore(store or own) if store is None or isinstance(store, Path) else store
        keys = Keys(open_key_store(own)) if keys is None else keys
        opened = team_module.Team.from_settings(
            team.model_copy(update=update),
            workers,
            call_state=CallState(spend_limits=spend_limits),
            seed="served",
        )
        service = Service(opened, store=kept, keys=keys)
        server = _Server(uvicorn.Config(create_app(service), port=0, log_level="warning", lifespan="on"))

        async def life() -> None:
            try:
                await server.serve()
            finally:
                await keys.close()
                await opened.close()
                if kept is not store:
                    kept.close()
                folder.cleanup()

        thread = threading.Thread(target=lambda: asyncio.run(life()), name="podium-serve", daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        self._running[url] = _Running(service, server, thread)
        return url

    def service(self, url: str) -> Service:
        """What the server there serves."""
        return self._running[url].service

    def stop(self, url: str) -> None:
        """End the server there, and wait until it has ended."""
        running = self._running.pop(url)
        running.server.end()
        running.thread.join(timeout=30)
        assert not running.thread.is_alive(), "the server did not end"

    def stop_all(self) -> None:
        """End every server."""
        for url in tuple(self._running):
            self.stop(url)
