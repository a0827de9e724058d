"""How long a page of a hundred thousand traces takes: in a file, and in PostgreSQL where an address is given.

python benchmarks/traces.py [TRACES] [URL]

The traces are as long as those of a plan of three steps with answers of a page; two of five belong to one key, one in
a thousand has failed, and one in a thousand was answered by a worker that is seldom asked. The file lies in a temporary
folder; the database of the address should be an empty one, and keeps the traces.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from podium.trace import Attempt, RoundTrace, Span, Trace
from podium.trace.async_store import AsyncTraceStore
from podium.trace.query import Filters, write_cursor
from podium.trace.spend import SPEND_BY, SpendQuery
from podium.trace.store import open_store
from podium.types import Message, Profile, Question, Usage

TIMES = 15
START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = (
    "sum",
    "of",
    "all",
    "the",
    "numbers",
    "under",
    "which",
    "no",
    "letter",
    "stands",
    "is",
    "larger",
    "than",
    "we",
)


def make(number: int, rng: Random) -> Trace:
    """A trace of about 8 kB."""
    question = " ".join(rng.choices(WORDS, k=rng.randint(10, 60)))
    spans = []
    for position, name in enumerate(rng.sample(("ada", "bob", "cy", "dee"), 3)):
        worker = "seldom" if number % 1000 == 7 and position == 2 else name
        response = " ".join(rng.choices(WORDS, k=200))
        spans.append(
            Span(
                position=position, worker=worker, subtask="Add them up.", status="done",
                messages=(Message(role="user", content=question + response),), response=response,
                answered_by=worker, usage=Usage(input_tokens=300, output_tokens=250), cost_usd=rng.random() / 100,
                attempts=(Attempt(worker=worker, started_s=0.0, ended_s=1.0),),
            )
        )  # fmt: skip
    return Trace(
        id=f"{rng.getrandbits(128):032x}",
        question=Question(text=question),
        pool=tuple(Profile(name=name) for name in ("ada", "bob", "cy", "dee", "seldom")),
        planner="random" if number % 3 else "conductor",
        seed="0",
        rounds=(RoundTrace(plan_text="", spans=tuple(spans)),),
        status="failed" if number % 1000 == 3 else "ok",
        started_at=(START + timedelta(seconds=number)).isoformat(),
        seconds=1.0,
        owner="shop" if number % 5 < 2 else f"key{number % 5}",
    )


async def fill(store: AsyncTraceStore, count: int) -> float:
    """Seconds until `count` traces are written."""
    rng = Random("benchmarks/traces")
    began = time.perf_counter()
    for number in range(count):
        while number % 1000 == 0 and store.trouble:  # noqa: ASYNC110 - the outbox is a thread
            await asyncio.sleep(0.1)
        store.add(make(number, rng))
        if number % 5000 == 4999:
            await store.newest(1)
    while not (await store.page(Filters(since=START + timedelta(seconds=count - 1)), limit=1)).traces:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return time.perf_counter() - began


async def page_ms(store: AsyncTraceStore, filters: Filters, cursor: str | None) -> float:
    """Milliseconds of a page of 50, the median of some."""
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        await store.page(filters, cursor, 50)
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken)


async def measure(place: str, count: int) -> None:
    """Print the figures of one store."""
    store = open_store(place)
    seconds = await fill(store, count)
    print(f"{count} traces added in {seconds:.1f} s ({count / seconds:.0f} a second, making them included)")
    middle = write_cursor((START + timedelta(seconds=count // 2)).timestamp(), "")
    end = write_cursor((START + timedelta(seconds=60)).timestamp(), "")
    for name, filters in {
        "all": Filters(),
        "of one key": Filters(owner="shop"),
        "of one key, failed": Filters(owner="shop", status="failed"),
        "of one day": Filters(since=START + timedelta(hours=12), until=START + timedelta(hours=13)),
        "one planner": Filters(planner="conductor"),
        "failed (0.1 %)": Filters(status="failed"),
        "a worker (75 %)": Filters(worker="ada"),
        "a worker (0.1 %)": Filters(worker="seldom"),
        "a worker (none)": Filters(worker="nobody"),
        "cost": Filters(min_cost=0.02, max_cost=0.021),
        "cost (none)": Filters(min_cost=5.0),
        "words (all)": Filters(q="the"),
        "words (none)": Filters(q="zebra"),
    }.items():
        first = await page_ms(store, filters, None)
        mid, last = await page_ms(store, filters, middle), await page_ms(store, filters, end)
        print(
            f"{name:<20} first, counted {first:7.2f} ms   in the middle {mid:7.2f} ms   near the end {last:7.2f} ms"
        )
    for by in SPEND_BY:
        query = SpendQuery(START.date(), START.date() + timedelta(days=count // 86_400 + 1), by)
        taken = []
        for _ in range(TIMES):
            began = time.perf_counter()
            await store.spend(query)
            taken.append(1000 * (time.perf_counter() - began))
        print(f"spend by {by:<11} {statistics.median(taken):7.2f} ms")
    began = time.perf_counter()
    lines = [len(line) async for line in store.export(Filters())]
    print(f"export: {len(lines)} lines, {sum(lines) / 1e6:.0f} MB, {time.perf_counter() - began:.1f} s")
    await store.close()


async def main() -> None:
    """Measure a file, then the database, if there is one."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with TemporaryDirectory() as folder:
        print("SQLite")
        await measure(str(Path(folder) / "traces.sqlite"), count)
    if len(sys.argv) > 2:
        print("PostgreSQL")
        await measure(sys.argv[2], count)


if __name__ == "__main__":
    asyncio.run(main())
