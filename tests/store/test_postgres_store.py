"""What is PostgreSQL's alone among the stores of traces: its address, its servers side by side, its faults."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from podium.errors import StoreError, UsageError
from podium.store import TraceStore
from podium.store.database import PostgresAddress
from podium.store.query import TraceFilters
from podium.trace import Trace
from postgres_server import PASSWORD, PostgresServer

MakeTrace = Callable[..., Trace]


def database(url: str) -> str:
    return url.rpartition("/")[2]


def test_servers_that_start_together_make_the_tables_once(postgres_url: str, make_trace: MakeTrace) -> None:
    with ThreadPoolExecutor(6) as starting:
        stores = list(starting.map(TraceStore, [postgres_url] * 6))

        for number, store in enumerate(stores):
            store.add(make_trace(f"t{number}"))
        list(starting.map(TraceStore.close, stores))
    with TraceStore(postgres_url) as last:
        assert last.page(TraceFilters()).total == 6


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda url, port: url.replace(str(port), "1"), "cannot be opened ("),
        (lambda url, port: url.replace("podium_", "nowhere_"), 'database "nowhere_'),
        (lambda url, port: url.replace("podium:", "stranger:"), "password authentication failed"),
        (lambda url, port: url + "?sslmode=require", "cannot be opened ("),
        (lambda url, port: url + "?sslmode=mighty", "cannot be opened ("),
        (lambda url, port: url.replace(":" + str(port), ":port"), "cannot be read; write postgresql://USER:"),
        (lambda url, port: url.replace("%2F", "/"), "cannot be read; write postgresql://USER:"),
        (lambda url, port: url.replace("%40", "@").replace("%2F", "/"), "cannot be read; write"),
        (lambda url, port: url.rpartition("/")[0], "cannot be read; write postgresql://USER:"),
    ],
)
def test_no_error_repeats_the_password(
    postgres_url: str, postgres_server: PostgresServer, change: Callable[[str, int], str], said: str
) -> None:
    url = change(postgres_url, postgres_server.port)
    with pytest.raises(UsageError) as refused:
        TraceStore(url)
    told: BaseException | None = refused.value
    assert said in str(told)
    while told is not None:
        for secret in (PASSWORD, url.split(":", 2)[2].partition("@")[0], "s3cret"):
            assert secret not in f"{told} {told!r}"
        told = told.__cause__


def test_an_address_shows_no_password_in_any_form() -> None:
    address = PostgresAddress.read("postgres://u:p%40ss%2Fword@db.local/x?sslmode=prefer&password=again!")
    assert address.display == "postgresql://db.local/x"
    assert "word" not in repr(address)
    assert address.scrub("p@ss/word p%40ss%2Fword again! u") == "*** *** *** u"


async def test_database_outage_is_logged_without_the_password(
    postgres_url: str,
    postgres_server: PostgresServer,
    make_trace: MakeTrace,
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = TraceStore(postgres_url, close_timeout_s=10.0)
    with caplog.at_level(logging.DEBUG):
        postgres_server.stop()
        try:
            store.add(make_trace())
            async with asyncio.timeout(60):
                while store.write_problem is None:  # noqa: ASYNC110 - it comes true in another thread
                    await asyncio.sleep(0.02)
        finally:
            postgres_server.start()
        store.close()
    ours = [record.getMessage() for record in caplog.records if record.name == "podium.store"]
    assert "Traces wait, and are written when that works again." in ours[0]
    assert ours[-1].endswith("can be written again.")
    assert "s3cret" not in caplog.text


async def test_a_connection_that_is_cut_costs_no_trace(
    postgres_url: str, postgres_server: PostgresServer, make_trace: MakeTrace
) -> None:
    store = TraceStore(postgres_url, close_timeout_s=10.0)
    for number in range(20):
        for part in range(50):
            store.add(make_trace(f"{number:02}-{part:02}"))
        await asyncio.to_thread(
            postgres_server.psql,
            f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{database(postgres_url)}'",
        )
    store.close()
    last = TraceStore(postgres_url)
    assert last.page(TraceFilters()).total == 1000
    last.close()


async def test_a_database_that_hangs_blocks_only_its_readers(
    make_trace: MakeTrace, postgres_url: str
) -> None:
    """One of whose table somebody else keeps a lock."""
    import psycopg  # noqa: PLC0415

    store = TraceStore(postgres_url, close_timeout_s=10.0)
    other = await psycopg.AsyncConnection.connect(postgres_url)
    async with other.transaction():
        await other.execute("LOCK TABLE podium_documents")
        for number in range(300):
            store.add(make_trace(f"t{number}"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(store.to_thread(store.get, "t1"), 0.5)
    await other.close()
    assert store.get("t299").id == "t299"
    store.close()


def test_newer_database_format_and_other_encodings_are_refused(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    TraceStore(postgres_url).close()
    postgres_server.psql("UPDATE podium_formats SET version = 9", database(postgres_url))
    with pytest.raises(UsageError, match=r"another version of Podium \(format 9, this one knows 1\); give"):
        TraceStore(postgres_url)
    postgres_server.psql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(UsageError, match="has the encoding LATIN1"):
        TraceStore(postgres_server.url("latin"))


async def test_a_user_who_may_only_write_goes_on_with_the_tables_there(
    postgres_url: str, postgres_server: PostgresServer, make_trace: MakeTrace
) -> None:
    TraceStore(postgres_url).close()
    for statement in (
        "CREATE ROLE clerk LOGIN PASSWORD 'clerk'",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk",
    ):
        postgres_server.psql(statement, database(postgres_url))
    server = postgres_url.partition("@")[2]
    store = TraceStore(f"postgresql://clerk:clerk@{server}")
    store.add(make_trace())
    assert store.get("t1") == make_trace()
    store.close()


async def test_trace_refused_by_the_database_is_set_aside_without_blocking(
    postgres_url: str, postgres_server: PostgresServer, make_trace: MakeTrace, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    store = TraceStore(postgres_url, close_timeout_s=10.0)
    postgres_server.psql(
        "ALTER TABLE traces ADD CHECK (id <> 'bad')",
        database(postgres_url),
    )
    for id_ in ("t1", "bad", "t2"):
        store.add(make_trace(id_))
    assert store.get("t2").id == "t2"
    assert store.get("t1").id == "t1"
    with pytest.raises(
        StoreError, match=r"could not be written to postgresql://127.0.0.1:\d+/podium_\w+ are in"
    ):
        store.close()
    (file,) = tmp_path.rglob("refused-*.jsonl")
    assert '"id":"bad"' in file.read_text()


async def test_a_spilled_trace_that_the_database_refuses_blocks_no_others(
    postgres_url: str, postgres_server: PostgresServer, make_trace: MakeTrace, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    wide = make_trace("wide", planner=Random(0).randbytes(6000).hex())
    stores = [TraceStore(postgres_url, close_timeout_s=0.2) for _ in range(2)]
    postgres_server.stop()
    try:
        for store, ids in zip(stores, (("t1", "wide", "t2"), ("t3",)), strict=True):
            for id_ in ids:
                store.add(wide if id_ == "wide" else make_trace(id_))
            with pytest.raises(StoreError):
                store.close()
    finally:
        postgres_server.start()
    following = TraceStore(postgres_url)
    following.add(make_trace("t4"))
    following.flush()
    page = following.page(TraceFilters())
    assert {trace.id for trace in page.traces} == {"t1", "t2", "t3", "t4"}
    following.close()
    assert not [*tmp_path.rglob("unwritten-*.jsonl")]
    (file,) = tmp_path.rglob("refused-*.jsonl")
    assert '"id":"wide"' in file.read_text()


def test_a_missing_extra_is_one_sentence(postgres_url: str) -> None:
    without = "import sys; sys.modules['psycopg'] = None; from podium.store import TraceStore; "
    told = subprocess.run(
        [sys.executable, "-c", without + "TraceStore(sys.argv[1])", postgres_url],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.stderr.splitlines()[-1].endswith(
        "A trace store in PostgreSQL needs the package psycopg; install it: pip install 'podium-conductor[postgres]'."
    )


def test_unresponsive_database_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.store.database.CONNECT_S", 2)  # The driver knows no shorter time.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(UsageError, match=r"cannot be opened \(.*timeout"):
            TraceStore(f"postgresql://u:p@127.0.0.1:{port}/x")
