"""Who makes a response in the background, and what becomes of it if that server ends: in both databases."""

from typing import Any

import pytest
from sqlalchemy import select, update

from podium.store import TraceStore
from podium.store.background_table import ALIVE_S, BackgroundTable
from podium.store.database import SqlNow
from podium.store.schema import BACKGROUND
from podium.trace import Trace

B = BACKGROUND.c


async def change(store: TraceStore, id: str, **values: Any) -> None:
    await store.database.run(update(BACKGROUND).where(B.id == id).values(**values))


async def statuses(store: TraceStore, *ids: str) -> list[str]:
    return [store.get(id).status for id in ids]


@pytest.fixture
def failed(make_trace):
    def make(id: str) -> Trace:
        trace: Trace = make_trace(id)
        return trace.model_copy(update={"status": "failed", "answer": None, "rounds": (), "owner": "ann"})

    return make


async def test_response_belongs_to_its_server_until_its_trace_is_stored(kept: TraceStore, failed) -> None:
    table = BackgroundTable(kept)
    await table.add(failed("r"), "one")
    assert await table.find("r", "eve") is None
    queued = await table.find("r", "ann")
    assert queued is not None
    assert (queued.begun, queued.trace) == (False, failed("r"))
    await table.begin("r")
    begun = await table.find("r")
    assert begun is not None
    assert begun.begun
    assert (await table.heartbeat("one"), await table.heartbeat("two")) == ({"r": False}, {})
    await table.cancel("r")
    assert await table.heartbeat("one") == {"r": True}
    assert [await table.end("r", holder) for holder in ("two", "one", "one")] == [False, True, False]
    assert await table.find("r") is None


async def test_a_deleted_response_is_no_longer_its_server_s(kept: TraceStore, failed) -> None:
    table = BackgroundTable(kept)
    await table.add(failed("r"), "one")
    await table.delete("r")
    assert (await table.find("r"), await table.heartbeat("one")) == (None, {})


async def test_response_of_a_dead_server_is_read_as_failed(kept: TraceStore, failed) -> None:
    table = BackgroundTable(kept)
    for id in ("alive", "dead", "ended"):
        await table.add(failed(id), "one")
    await change(kept, "alive", heartbeat=SqlNow() - ALIVE_S / 2)
    await change(kept, "dead", heartbeat=SqlNow() - 2 * ALIVE_S)
    await change(kept, "ended", heartbeat=SqlNow() - 2 * ALIVE_S)
    kept.add(failed("ended").model_copy(update={"status": "ok", "answer": "4"}))  # Killed before `end`.
    kept.flush()
    assert await table.find("dead", "ann") is None
    assert kept.get("dead") == failed("dead")
    assert await statuses(kept, "dead", "ended") == ["failed", "ok"]
    assert [id for (id,) in await kept.database.run(select(B.id))] == ["alive"]
    # A server that had only stood still keeps no other trace.
    assert await table.heartbeat("one") == {"alive": False}


@pytest.mark.parametrize("date", [None, -1e300, 1e12, 1e300, float("inf"), float("nan")])
async def test_invalid_heartbeat_date_keeps_no_response_in_progress(
    kept: TraceStore, failed, date: float | None
) -> None:
    table = BackgroundTable(kept)
    await table.add(failed("r"), "one")
    await change(kept, "r", heartbeat=date)
    assert await table.find("r") is None
    assert await statuses(kept, "r") == ["failed"]


@pytest.mark.parametrize("document", [None, "", "{}", '{"id": "other"}', "[" * 10_000])
async def test_damaged_response_of_a_dead_server_is_read_as_failed(
    kept: TraceStore, failed, document: str | None
) -> None:
    table = BackgroundTable(kept)
    await table.add(failed("r"), "one")
    await change(kept, "r", document=document)
    assert await table.find("r") is not None
    await change(kept, "r", heartbeat=0.0)
    await table.end_lost()
    found = kept.get("r", "ann")
    assert (found.status, found.id) == ("failed", "r")
    assert await kept.database.run(select(B.id)) == []


async def test_lost_response_that_another_server_is_ending_stays_in_progress(
    kept: TraceStore, failed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other server takes the row after this one has read it, and has not stored the trace yet."""
    table, read = BackgroundTable(kept), kept.database.run
    await table.add(failed("r"), "one")
    await change(kept, "r", heartbeat=0.0)

    async def overtaken(statement: Any) -> Any:
        rows = await read(statement)
        monkeypatch.undo()
        await change(kept, "r", holder="another", heartbeat=SqlNow())
        return rows

    monkeypatch.setattr(kept.database, "run", overtaken)
    found = await table.find("r")
    assert found is not None
    assert found.trace == failed("r")
