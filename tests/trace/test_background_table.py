"""Who makes a response in the background: one server at a time, in both databases."""

import asyncio

import pytest
from sqlalchemy import update

from podium.errors import LostLeaseError
from podium.trace import background_table
from podium.trace.async_store import AsyncTraceStore
from podium.trace.background_table import BackgroundTable, EventRow
from podium.trace.schema import BACKGROUND

LONG = 600.0


async def add(table: BackgroundTable, id: str, *, holder: str = "", lease_s: float = 0.0) -> None:
    await table.add(id, owner="ann", caller="pk-1", document="{}", holder=holder, lease_s=lease_s)


async def test_each_response_is_taken_by_one_server_the_oldest_first(place) -> None:
    stores = [place.open() for _ in range(3)]
    tables = [BackgroundTable(store.rows) for store in stores]
    for number in range(6):
        await add(tables[0], f"r{number}")
    await asyncio.sleep(0.01)  # The lease that ended at once is over.
    first = await tables[0].take("s0", LONG)
    assert first is not None
    assert first.id == "r0"
    taken = await asyncio.gather(*(tables[n % 3].take(f"s{n % 3}", LONG) for n in range(12)))
    found = [row.id for row in taken if row is not None]
    assert sorted(found) == [f"r{number}" for number in range(1, 6)]
    for store in stores:
        await store.close()


async def test_a_server_writes_nothing_once_another_has_the_response(kept: AsyncTraceStore) -> None:
    table = BackgroundTable(kept.rows)
    await add(table, "r", holder="one", lease_s=LONG)
    assert await table.take("two", LONG) is None
    await table.append("r", "one", EventRow(0, "plan", "{}"))
    assert await table.renew("one", 0.0) == {"r": False}
    await table.cancel("r")
    await asyncio.sleep(0.01)
    taken = await table.take("two", LONG)
    assert taken is not None
    assert (taken.holder, taken.cancelled, taken.owner, taken.caller) == ("two", True, "ann", "pk-1")
    with pytest.raises(LostLeaseError):
        await table.append("r", "one", EventRow(1, "step", "{}"))
    assert (await table.renew("one", LONG), await table.renew("two", LONG)) == ({}, {"r": True})
    assert [await table.end("r", holder) for holder in ("one", "two", "two")] == [False, True, False]
    assert [entry.number for entry in await table.entries("r")] == [0]
    await table.release("r", "two")
    assert await table.take("three", LONG) is None


async def test_rows_go_with_their_trace_or_an_hour_after_the_end(
    kept: AsyncTraceStore, make_trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = BackgroundTable(kept.rows)
    for name in ("kept", "gone", "running"):
        await add(table, name, holder="one", lease_s=LONG)
        await table.append(name, "one", EventRow(0, "plan", "{}"))
        kept.add(make_trace(name))
        if name != "running":
            await table.end(name, "one")
    assert await table.find("gone", "eve") is None
    assert await kept.delete("gone")
    await table.sweep()
    left = [name for name in ("kept", "gone", "running") if await table.find(name) is not None]
    assert left == ["kept", "running"]
    monkeypatch.setattr(background_table, "KEPT_S", -1.0)
    await table.sweep()
    assert (await table.find("kept"), await table.entries("kept")) == (None, [])
    assert await table.entries("running")


@pytest.mark.parametrize("date", [1e12, 1e300])
async def test_a_date_that_cannot_be_holds_no_response_and_keeps_no_row(
    kept: AsyncTraceStore, date: float
) -> None:
    table = BackgroundTable(kept.rows)
    await add(table, "held", holder="one", lease_s=date)
    taken = await table.take("two", LONG)
    assert taken is not None
    await kept.rows(update(BACKGROUND).where(BACKGROUND.c.id == "held").values(created=date))
    found = await table.find("held")
    assert found is not None
    assert found.created == 0.0
    await kept.rows(update(BACKGROUND).where(BACKGROUND.c.id == "held").values(ended=date))
    await table.sweep()
    assert await table.find("held") is None
