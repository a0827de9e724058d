"""The trace store beside plain sqlite3: traces written a second, and how long a page of each filter takes.

python benchmarks/traces.py [--traces N] [--words N] [--postgres] [--json FILE]

A trace has a plan of three steps. Two of five belong to one key, one in a thousand has failed, one in a thousand was
answered by a worker that is seldom asked. The peer writes the same rows, at most the first 50,000 of them, with
`executemany` into a table that has the same columns and a primary key, in transactions of as many rows, and has no
other index and no table of costs. It gets finished rows; Podium makes its rows in the measured time. `--postgres`
measures a PostgreSQL of its own too, where one is installed; without it only SQLite is measured. The files lie in a
temporary folder, which TMPDIR moves: 1,000,000 traces take 11 GB, or 17 GB with `--words 200`, the answers of a page.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from podium.trace import Plan
from podium.types import Spent
from podium.workflow import Acceptance

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from podium.store import TraceStore
from podium.store.query import TraceFilters, write_cursor
from podium.store.schema import TRACES
from podium.store.spend_report import SPEND_BY, SpendQuery
from podium.trace import Attempt, Reply, RoundTrace, Span, Trace
from podium.trace.serialization import read_jsonl, to_json, to_row
from podium.types import Message, Profile, Question, Usage
from postgres_server import PROGRAMS, PostgresServer
from rows import Row, write

TIMES = 9
BATCH = 256
IMPORTED = 10_000
PEER_ROWS = 50_000
START = datetime(2026, 1, 1, tzinfo=UTC)
INSERTS_GOAL, PAGE_GOAL_MS = 5000, 50
WORDS = (
    "sum", "of", "all", "the", "numbers", "under", "which", "no", "letter", "stands", "is", "larger", "than", "we"
)  # fmt: skip
MODELS = 2000
"""Different traces; the others are copies with an id and a time of their own."""


def make(number: int, words: int, rng: Random) -> Trace:
    """A trace whose steps have answers of so many words."""
    question = " ".join(rng.choices(WORDS, k=rng.randint(10, 60)))
    spans = []
    for position, name in enumerate(rng.sample(("ada", "bob", "cy", "dee"), 3)):
        worker = "seldom" if number % 1000 == 7 and position == 2 else name
        response = " ".join(rng.choices(WORDS, k=words))
        spans.append(
            Span(
                position=position, worker=worker, subtask="Add them up.", status="done",
                messages=(Message(role="user", content=question + response),), answered_by=worker,
                reply=Reply(response, Usage(input_tokens=300, output_tokens=250)),
                spent=Spent(Usage(input_tokens=300, output_tokens=250), rng.random() / 100),
                attempts=(Attempt(worker=worker, started_s=0.0, ended_s=1.0),),
            )
        )  # fmt: skip
    return Trace(
        id="",
        question=Question(text=question),
        pool=tuple(Profile(name=name) for name in ("ada", "bob", "cy", "dee", "seldom")),
        planner="random" if number % 3 else "conductor",
        seed="0",
        rounds=(RoundTrace(plan=Plan("", Acceptance()), spans=tuple(spans)),),
        status="failed" if number % 1000 == 3 else "ok",
        started_at="",
        seconds=1.0,
        owner="shop" if number % 5 < 2 else f"key{number % 5}",
    )


def traces(count: int, words: int) -> Iterator[Trace]:
    """`count` traces, one a second, oldest first."""
    rng = Random("benchmarks/traces")
    models = [make(number, words, rng) for number in range(min(count, MODELS))]
    for number in range(count):
        yield models[number % len(models)].model_copy(
            update={
                "id": f"{rng.getrandbits(128):032x}",
                "started_at": (START + timedelta(seconds=number)).isoformat(),
            }
        )


def fill(store: TraceStore, count: int, words: int) -> float:
    """Traces a second, handed over one by one as a server does, until the last is written."""
    began, before = time.perf_counter(), time.process_time()
    for number, trace in enumerate(traces(count, words)):
        store.add(trace)
        if number % 5000 == 4999:
            store.flush()
    store.flush()
    print(f"{1e6 * (time.process_time() - before) / count:8.0f} microseconds of the processor for a trace")
    return count / (time.perf_counter() - began)


def imported(path: Path, words: int) -> float:
    """Traces a second of an import of JSONL into a file that is there."""
    lines = [
        to_json(trace.model_copy(update={"id": f"i{trace.id[1:]}"})) for trace in traces(IMPORTED, words)
    ]
    with TraceStore(path) as store:
        began = time.perf_counter()
        store.add_all(read_jsonl(lines, "lines"))
        return IMPORTED / (time.perf_counter() - began)


def plain_inserts(path: Path, count: int, words: int) -> float:
    """Rows a second that sqlite3 writes alone."""
    seconds = 0.0
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        columns = [*(column.name for column in TRACES.columns), "document"]
        connection.execute(f"CREATE TABLE traces ({', '.join(columns)}, PRIMARY KEY (id))")
        insert = f"INSERT INTO traces VALUES ({', '.join('?' * len(columns))})"
        rows: list[tuple[Any, ...]] = []
        for number, trace in enumerate(traces(count, words), 1):
            row = to_row(trace)
            rows.append((*row.listed, row.document))
            if len(rows) == BATCH or number == count:
                began = time.perf_counter()
                connection.execute("BEGIN")
                connection.executemany(insert, rows)
                connection.execute("COMMIT")
                seconds += time.perf_counter() - began
                rows.clear()
    return count / seconds


def median_ms(call: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of a call, and of the processor in this process: the medians of some."""
    taken, used = [], []
    for _ in range(TIMES):
        began, before = time.perf_counter(), time.process_time()
        call()
        taken.append(1000 * (time.perf_counter() - began))
        used.append(1000 * (time.process_time() - before))
    return statistics.median(taken), statistics.median(used)


def measure_reads(store: TraceStore, name: str, count: int) -> list[Row]:
    """Print the milliseconds of pages and sums, and in brackets those of the processor in this process.

    Returns the slowest page of the three filters that are the slowest.
    """
    middle = write_cursor((START + timedelta(seconds=count // 2)).timestamp(), "")
    end = write_cursor((START + timedelta(seconds=60)).timestamp(), "")
    measured = []
    for filtered, filters in {
        "all": TraceFilters(),
        "of one key": TraceFilters(owner="shop"),
        "of one key, failed": TraceFilters(owner="shop", status="failed"),
        "of one key, a worker (0.1 %)": TraceFilters(owner="shop", worker="seldom"),
        "of one hour": TraceFilters(since=START + timedelta(hours=12), until=START + timedelta(hours=13)),
        "a planner (33 %)": TraceFilters(planner="conductor"),
        "a planner (none)": TraceFilters(planner="nobody"),
        "failed (0.1 %)": TraceFilters(status="failed"),
        "a worker (75 %)": TraceFilters(worker="ada"),
        "a worker (0.1 %)": TraceFilters(worker="seldom"),
        "a worker (none)": TraceFilters(worker="nobody"),
        "cost (4 %)": TraceFilters(min_cost=0.02, max_cost=0.021),
        "cost (none)": TraceFilters(min_cost=5.0),
        "words (all)": TraceFilters(q="the"),
        "words (none)": TraceFilters(q="zebra"),
        "a worker (75 %), words (none)": TraceFilters(worker="ada", q="zebra"),
    }.items():
        slowest, shown = 0.0, []
        for place, cursor in {"first, counted": None, "middle": middle, "end": end}.items():
            taken, used = median_ms(partial(store.page, filters, cursor, 50))
            slowest = max(slowest, taken)
            shown.append(f"{place} {taken:8.2f} ms ({used:.2f})")
        print(f"{filtered:<30} {'   '.join(shown)}")
        work = f"{name}, {count:,} traces: slowest page, {filtered}"
        measured.append(Row(work, slowest, "ms", goal=PAGE_GOAL_MS, higher_is_better=False))
    for by in SPEND_BY:
        query = SpendQuery(START.date(), START.date() + timedelta(days=count // 86_400 + 1), by)
        taken, used = median_ms(partial(store.spend, query))
        print(f"spend by {by:<11} {taken:8.2f} ms ({used:.2f})")
    return sorted(measured, key=lambda row: -row.figure)[:3]


def measure(
    place: str, name: str, count: int, words: int, peer: float, *, filled: Callable[[], object] = lambda: None
) -> list[Row]:
    """Print and return the figures of one store. `filled` is called between writing and reading."""
    print(name)
    store = TraceStore(place)
    try:
        speed = fill(store, count, words)
        print(f"{speed:8.0f} traces a second, one by one; plain sqlite3 {peer:.0f}")
        work = f"{name}, {count:,} traces: inserts, one by one"
        inserts = Row(work, speed, "a second", "sqlite3 executemany", peer, INSERTS_GOAL)
        filled()
        return [inserts, *measure_reads(store, name, count)]
    finally:
        store.close()


def main(count: int, words: int, *, postgres: bool) -> list[Row]:
    """Measure a file, then the database, if it is wanted."""
    with TemporaryDirectory() as folder:
        peer = plain_inserts(Path(folder) / "plain.sqlite", min(count, PEER_ROWS), words)
        (Path(folder) / "plain.sqlite").unlink()
        path = Path(folder) / "traces.sqlite"
        measured = measure(str(path), "SQLite", count, words, peer)
        size = path.stat().st_size / count / 1000
        speed = imported(path, words)
        print(f"{speed:8.0f} traces a second imported; {size:.1f} kB a trace")
        work = f"SQLite, {count:,} traces: inserts, an import of {IMPORTED:,}"
        measured.append(Row(work, speed, "a second", "sqlite3 executemany", peer, INSERTS_GOAL))
    if postgres:
        with closing(PostgresServer()) as server:
            server.start()
            url = server.new_database()
            # PostgreSQL does this by itself, a minute after many rows were added.
            analyze = lambda: server.psql("VACUUM ANALYZE", url.rpartition("/")[2])  # noqa: E731
            measured += measure(url, "PostgreSQL", count, words, peer, filled=analyze)
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--traces", type=int, default=200_000)
    parser.add_argument("--words", type=int, default=40, help="of each step's answer")
    parser.add_argument("--postgres", action="store_true", help="measure PostgreSQL too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    if options.postgres and PROGRAMS is None:
        parser.error("--postgres: no PostgreSQL is installed here")
    write(main(options.traces, options.words, postgres=options.postgres), options.json)
