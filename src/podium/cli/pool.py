"""`podium pool`: who is on offer, and whether each answers."""

from __future__ import annotations

import asyncio
import json as json_
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.table import Table
from rich.text import Text

from podium.cli.opening import open_console
from podium.cli.options import Flag, PoolName
from podium.cli.printable import counted, printable, seconds, shorten
from podium.errors import UsageError, WorkerError
from podium.types import Message, Profile
from podium.workers.base import Request, Worker
from podium.workers.pool import Pool, open_pool

_QUESTION = "Reply with the one word: ready"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How one worker answered."""

    worker: str
    answered: bool
    seconds: float
    """By the clock."""
    text: str
    """The reply, or why there is none."""


def list_workers(*, pool: PoolName = None, json: Flag = False) -> int:
    """List the workers of a pool.

    Args:
        json: Print a JSON array.
    """
    profiles = open_pool(pool or "embedded").profiles
    if json:
        print(json_.dumps([profile.model_dump(mode="json") for profile in profiles]))
    else:
        _print_profiles(profiles)
    return 0


def check(*, pool: PoolName = None, timeout: float | None = None, json: Flag = False) -> int:
    """Ask every worker one small question; returns 1 if any did not answer.

    Args:
        timeout: Seconds at most for each. Default: as the pool file has it.
        json: Print a JSON array.
    """
    if timeout is not None and not timeout > 0:
        raise UsageError(f"--timeout {timeout}: give seconds above 0.")
    results = asyncio.run(_check_all(open_pool(pool or "embedded"), timeout))
    if json:
        print(json_.dumps([asdict(result) for result in results]))
    else:
        _print_results(results)
    return 0 if all(result.answered for result in results) else 1


async def _check_all(pool: Pool, limit_s: float | None) -> tuple[CheckResult, ...]:
    try:
        async with asyncio.TaskGroup() as group:
            checks = [group.create_task(_check(worker, limit_s)) for worker in pool]
    finally:
        await pool.close()
    return tuple(done.result() for done in checks)


async def _check(worker: Worker, limit_s: float | None) -> CheckResult:
    name = worker.profile.name
    limit = worker.limits.timeout if limit_s is None else limit_s
    started = time.perf_counter()
    try:
        async with asyncio.timeout(limit):
            reply = await worker.answer(Request((Message(role="user", content=_QUESTION),), seed="check"))
        answered, text = True, reply.text
    except WorkerError as error:
        answered, text = False, str(error)
    except TimeoutError:
        answered, text = False, f"No answer within {seconds(limit)}."
    return CheckResult(name, answered, time.perf_counter() - started, text)


def _print_profiles(profiles: Sequence[Profile]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("worker", no_wrap=True)
    table.add_column("$ in / out", justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("profile", ratio=1)
    for number, profile in enumerate(profiles):
        cells = (
            f"{number} {printable(profile.name)}",
            f"{profile.price.input:g} / {profile.price.output:g}",
            "" if profile.latency_s is None else seconds(profile.latency_s),
            " ".join(printable(profile.description).split()),
        )
        table.add_row(*(Text(cell) for cell in cells))
    console = open_console()
    console.print(table)
    console.print(Text(f"\n{counted(len(profiles), 'worker')}; prices in dollars per million tokens", "dim"))


def _print_results(results: Sequence[CheckResult]) -> None:
    console = open_console()
    width = max(len(printable(result.worker)) for result in results)
    for result in results:
        verdict = ("ok    ", "green") if result.answered else ("failed", "red")
        said = shorten(result.text, 120)
        name = f"{printable(result.worker):<{width}}  "
        console.print(
            Text.assemble((name, "bold"), verdict, f"  {seconds(result.seconds):>8}  ", (said, "dim"))
        )
