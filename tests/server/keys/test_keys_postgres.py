"""Keys in PostgreSQL: its own clock, what its tables hold, and errors of an unreachable database."""

from __future__ import annotations

import asyncio
import os
import signal

from key_storage import KeyStorage
from podium.errors import StoreError


async def test_postgres_rate_limit_uses_a_sliding_minute(postgres_url: str, postgres_server) -> None:
    storage = KeyStorage(postgres_url)
    _, caller = await storage.added(rpm=2)
    key_store = storage.open()
    assert [await key_store.count_request(caller.id) is None for _ in range(3)] == [True, True, False]
    database = postgres_url.rpartition("/")[2]
    postgres_server.psql("UPDATE podium_key_requests SET at = at - 59 WHERE slot = 1", database)
    assert 0 < (await key_store.count_request(caller.id) or 0) <= 1.0
    postgres_server.psql("UPDATE podium_key_requests SET at = at - 1 WHERE slot = 1", database)
    assert [await key_store.count_request(caller.id) is None for _ in range(2)] == [True, False]
    await key_store.close()


async def test_a_database_holds_no_key(postgres_url: str, postgres_server) -> None:
    key, _ = await KeyStorage(postgres_url).added("ada", rpm=3, budget="1")
    database = postgres_url.rpartition("/")[2]
    rows = postgres_server.psql("SELECT k::text, encode(digest, 'escape') FROM podium_keys k", database)
    assert key[:11] in rows
    assert key[12:] not in rows


def test_a_register_serves_one_event_loop_after_another(postgres_url: str) -> None:
    key_store = KeyStorage(postgres_url).open()
    assert [asyncio.run(key_store.keys()) for _ in range(3)] == [()] * 3


async def test_requests_in_flight_when_the_database_is_killed_fail(
    postgres_url: str, postgres_server
) -> None:
    storage = KeyStorage(postgres_url)
    await storage.added()
    key_store = storage.open()

    async def ask() -> list[Exception]:
        failures = []
        while not failures:
            try:
                await key_store.keys()
            except Exception as error:  # Any other than a StoreError is a bug, and fails the test.
                failures.append(error)
        return failures

    asking = [asyncio.create_task(ask()) for _ in range(40)]
    await asyncio.sleep(0.2)
    pid = int((postgres_server.folder / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    postgres_server.stop()
    try:
        failures = [error for failed in await asyncio.gather(*asking) for error in failed]
    finally:
        await asyncio.sleep(1.0)  # Its other processes end once they notice.
        postgres_server.start()
    assert {type(error) for error in failures} == {StoreError}
    await key_store.close()
