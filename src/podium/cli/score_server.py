"""`podium score-server`: starts the scoring service for other machines, environments and notebooks.

Opens what the service needs in a run's folder, and closes it when the service has ended. `podium train` starts the
same service by itself for a run of several ranks.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from podium.cli.printable import say
from podium.cli.run_settings import with_files_beside
from podium.cli.team_options import CallOptions, Calls, open_limited_call_state
from podium.concurrency.event_loops import run_event_loop
from podium.config import SettingsSource
from podium.errors import CheckpointError, UsageError
from podium.rollout.run_folder import TRACES
from podium.scoring import ScoringSession, ScoringSettings
from podium.scoring.service import DRAIN_S, serve_session
from podium.scoring.training_tasks import open_training_tasks
from podium.store import TraceStore
from podium.team.team_file import open_pool
from podium.train.settings import TrainSettings
from podium.train.start import prompt_of_start

_PORTS = 65535


def score_server(
    *overrides: str,
    config: Path,
    run: Path,
    host: str = "127.0.0.1",
    port: int = 0,
    key_env: str | None = None,
    drain: float = DRAIN_S,
    calls: Calls = CallOptions(),
) -> int:
    """Serve a scoring session over HTTP until SIGTERM. After a restart, no answer that it has kept is paid again.

    Args:
        overrides: Settings as key=value, such as rounds=2; they override the file.
        config: The training run's TOML file. The service uses its tasks, pool, prompt, limits and reward, and ignores
            the settings of the trainer.
        run: The folder to which the service writes responses.sqlite, spending.sqlite and traces.sqlite.
        host: The address to listen on. Any but this machine's own (127.0.0.1, ::1, localhost) needs a key.
        port: The port; 0 takes a free one. Give a port if clients have to find the service again after a restart.
        key_env: The environment variable that holds the key which clients have to send.
        drain: Seconds that the service waits for the rollouts in flight after SIGTERM or SIGINT.
    """
    if not 0 <= port <= _PORTS:
        raise UsageError(f"--port {port}: give a number from 0 to {_PORTS}.")
    if not 0 <= drain < float("inf"):
        raise UsageError(f"--drain {drain:g}: give a number from 0 on.")
    settings = scoring_settings(config, overrides)
    key = None if key_env is None else os.environ.get(key_env, "").strip()
    if key == "":
        raise UsageError(
            f"--key-env {key_env}: there is nothing in this variable; set it to the service's key."
        )
    cancelled = asyncio.Event()

    async def open_and_serve() -> bool:
        async with AsyncExitStack() as opened:
            pool = open_pool(settings.pool)
            opened.push_async_callback(pool.close)
            tasks = open_training_tasks(settings, pool, partial(say, stderr=True))
            call_state = opened.enter_context(open_limited_call_state(calls, pool, run=run))
            traces = opened.enter_context(TraceStore(run / TRACES))
            session = ScoringSession(settings, tasks, pool, call_state, on_trace=traces.add)
            async with serve_session(
                session,
                host=host,
                port=port,
                key=key,
                flush=traces.flush,
                drain_s=drain,
                on_cancelled=cancelled.set,
            ) as url:
                needs = "no key is needed on this machine" if key is None else "a key is needed"
                print(
                    f"Podium scores at {url} ({needs}); Ctrl+C ends it.\n"
                    f"Tasks: {len(tasks)}; workers: {len(pool.names)}; rounds: {settings.rounds}; settings: "
                    f"{settings.digest}; kept in {run}.",
                    flush=True,
                )
                await _wait_for_signal()
        return not cancelled.is_set()

    if not run_event_loop(open_and_serve()):
        say(
            "podium: Some rollouts did not end in time; a client that requests them again starts them anew.",
            stderr=True,
        )
    return 0


def scoring_settings(config: Path, overrides: Sequence[str] = ()) -> ScoringSettings:
    """The settings of a run's own file that say how it scores. What concerns its trainer is left out; a key that is
    neither a session's nor a trainer's is a `ConfigError`."""
    source = SettingsSource.read(config, overrides)
    of_trainer = TrainSettings.model_fields.keys() - ScoringSettings.model_fields.keys()
    tables = {key: value for key, value in source.tables.items() if key not in of_trainer}
    settings = with_files_beside(replace(source, tables=tables).into(ScoringSettings), config, overrides)
    if (start := source.tables.get("start")) is None:
        return settings
    try:
        prompt = prompt_of_start(settings.prompt, str(start), source.tables.get("revision"))
    except CheckpointError:
        return settings  # This machine need not reach the start: a trainer whose prompt differs is refused.
    return settings.model_copy(update={"prompt": prompt})


async def _wait_for_signal() -> None:
    """Wait for SIGTERM or SIGINT. A second one ends the process at once; the cache keeps what was paid for."""
    loop, signalled = asyncio.get_running_loop(), asyncio.Event()

    def on_signal() -> None:
        if signalled.is_set():
            os._exit(130)
        signalled.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    await signalled.wait()
