"""The stores of keys, in each database: every operation is atomic for any number of replicas."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from key_storage import KeyStorage
from podium.errors import UsageError
from podium.server.keys.key_store import KeySpending, KeyStore, NewKey, StoredKey
from podium.server.keys.keys import FILE


async def test_register_returns_key_settings_as_given(storage: KeyStorage) -> None:
    may = {"rpm": 5, "admin": True, "allow": ("a", "b, c"), "deny": ("ü'; DROP TABLE keys",)}
    _, full = await storage.added("web", budget="5/day", **may)
    _, bare = await storage.added("phone")
    key_store = storage.open()
    assert [kept.caller for kept in await key_store.keys()] == [full, bare]
    assert (await key_store.keys())[0].added.tzinfo is not None
    await key_store.close()
    await key_store.close()


async def test_key_name_is_unique(storage: KeyStorage) -> None:
    _, caller = await storage.added("web", rpm=2)
    key_store, secret = storage.open(), NewKey.generate()
    again = StoredKey(replace(caller, id=secret.id), secret.digest, datetime.now(UTC))
    assert not await key_store.add(again)
    assert not await key_store.add(replace(again, caller=replace(caller, name="other"))), (
        "nor has a beginning two"
    )
    assert [kept.caller for kept in await key_store.keys()] == [caller]
    await key_store.close()


async def test_removed_key_can_neither_ask_nor_spend_and_loses_its_history(storage: KeyStorage) -> None:
    _, caller = await storage.added("web", rpm=2, budget="5/day")
    key_store, key = storage.open(), caller.id
    assert await key_store.count_request(key) is None
    assert await key_store.reserve(key, "today", 100, 60) == KeySpending(0, 60)
    assert await key_store.remove("web")
    assert not await key_store.remove("web")
    assert await key_store.keys() == ()
    assert await key_store.count_request(key) == 60.0
    assert await key_store.reserve(key, "today", 100, 1) is None
    assert await key_store.settle(key, "today", 10, 60) == KeySpending(), "a call in flight ends in peace"
    assert await key_store.spending(key, "today") == KeySpending()
    await key_store.close()


async def test_a_sum_is_reserved_spent_and_given_back_within_the_limit(storage: KeyStorage) -> None:
    _, caller = await storage.added(budget="1")
    key_store, key = storage.open(), caller.id
    assert await key_store.spending(key, "x") == KeySpending(0, 0)
    assert await key_store.reserve(key, "x", 100, 101) is None
    assert await key_store.reserve(key, "x", 100, 60) == KeySpending(0, 60)
    assert await key_store.reserve(key, "x", 100, 41) is None
    assert await key_store.reserve(key, "x", 100, 40) == KeySpending(0, 100)
    assert await key_store.reserve(key, "y", 100, 100) == KeySpending(0, 100), "periods are apart"
    assert await key_store.settle(key, "x", 25, 60) == KeySpending(25, 40)
    assert await key_store.reserve(key, "x", 100, 35) == KeySpending(25, 75)
    assert await key_store.settle(key, "x", 5 * 10**15, 75) == KeySpending(25 + 5 * 10**15, 0), (
        "sums are large"
    )
    assert await key_store.settle(key, "z", 7, 0) == KeySpending(7, 0), (
        "a payment without a reservation counts too"
    )
    await key_store.close()


async def test_replicas_together_let_in_as_many_requests_as_a_minute_may_have(storage: KeyStorage) -> None:
    _, caller = await storage.added(rpm=30)
    _, other = await storage.added("other", rpm=3)
    replicas = [storage.open() for _ in range(3)]
    waits = await asyncio.gather(
        *(replica.count_request(caller.id) for _ in range(30) for replica in replicas)
    )
    assert sum(wait is None for wait in waits) == 30
    assert all(0 < wait <= 60 for wait in waits if wait is not None)
    assert await replicas[0].count_request(other.id) is None, "keys are apart"
    for replica in replicas:
        await replica.close()


async def test_a_minute_slides_over_requests_one_by_one(tmp_path: Path) -> None:
    storage, now = KeyStorage(str(tmp_path / "traces.sqlite")), [1e9]
    _, caller = await storage.added(rpm=3)
    key_store = KeyStore(tmp_path / FILE, clock=lambda: now[0])
    for at, wait in [
        (0, None),
        (10, None),
        (20, None),
        (20, 40.0),
        (59.5, 0.5),
        (60, None),
        (60, 10.0),
        (70, None),
    ]:
        now[0] = 1e9 + at
        assert await key_store.count_request(caller.id) == wait, at
    now[0] -= 3600
    assert await key_store.count_request(caller.id) is None, "a clock that is set back locks no key out"
    await key_store.close()


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_a_file_of_keys_is_its_owners_alone_and_holds_no_key(tmp_path: Path) -> None:
    storage = KeyStorage(str(tmp_path / "deep" / "traces.sqlite"))
    keys = [(await storage.added(name, rpm=3, budget="1"))[0] for name in ("ada", "bob")]
    key_store = storage.open()
    await key_store.count_request((await key_store.keys())[0].caller.id or "")
    files = contents(tmp_path)
    assert {path.name for path in files} >= {"keys.sqlite", "keys.sqlite-wal"}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    await key_store.close()
    files |= {path.with_suffix(".closed"): content for path, content in contents(tmp_path).items()}
    for key in keys:
        assert any(key[:11].encode() in content for content in files.values()), (
            "the public beginning is there"
        )
        assert not any(key[12:].encode() in content for content in files.values())


async def test_a_file_that_is_something_else_is_left_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / FILE
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE mine (x)")
    before = file.read_bytes()
    with pytest.raises(UsageError, match="is an SQLite file, but not a file of keys; move it away"):
        KeyStorage(str(tmp_path / "traces.sqlite")).open()
    assert file.read_bytes() == before


def test_reading_a_missing_key_file_does_not_create_the_file(tmp_path: Path) -> None:
    storage = KeyStorage(str(tmp_path / "none" / "traces.sqlite"))
    with pytest.raises(UsageError, match=r"There is no file of keys at .*; `podium keys add` makes one"):
        storage.open(create=False)
    assert list(tmp_path.iterdir()) == []
