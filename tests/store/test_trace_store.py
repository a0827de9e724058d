"""What a server's store of traces does, whatever database it is in."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import StoreError, UnknownTraceError, UsageError
from podium.store import TraceStore, trace_store
from podium.store.query import TraceFilters
from podium.trace import Plan, RoundTrace, Span, Trace
from podium.trace.serialization import read_jsonl
from podium.types import Spent
from podium.workflow import Acceptance

MakeTrace = Callable[..., Trace]
ALL = TraceFilters()
DAY = "2026-03-{:02}T00:00:00+00:00"


def at(day: int) -> datetime:
    return datetime(2026, 3, day, tzinfo=UTC)


async def ids(store: TraceStore, filters: TraceFilters = ALL) -> list[str]:
    return [trace.id for trace in store.page(filters).traces]


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - it comes true in another thread
            await asyncio.sleep(0.02)


async def test_added_trace_is_readable_at_once_and_equal(kept: TraceStore, make_trace: MakeTrace) -> None:
    trace = make_trace(owner="ada", user="u7", metadata={"app": "shop"})
    kept.add(trace)
    assert kept.get("t1") == trace


async def test_traces_outlive_the_store_that_wrote_them(database, make_trace: MakeTrace) -> None:
    first = database.open()
    for number in range(1000):
        first.add(make_trace(f"t{number}"))
    first.close()
    first.close()
    again = database.open()
    assert again.page(TraceFilters()).total == 1000
    assert again.get("t999") == make_trace("t999")
    again.close()


async def test_adding_to_a_closed_store_is_a_bug(database, make_trace: MakeTrace) -> None:
    store = database.open()
    store.close()
    with pytest.raises(RuntimeError, match="is closed"):
        store.add(make_trace())


async def test_a_trace_with_the_same_id_replaces_the_one_there(
    kept: TraceStore, make_trace: MakeTrace
) -> None:
    kept.add(make_trace())
    kept.add(make_trace(answer="6", status="degraded"))
    (summary,) = kept.page(TraceFilters()).traces
    assert summary.status == "degraded"
    assert kept.get("t1").answer == "6"


async def test_trace_summary_lists_answering_workers_and_owner(
    kept: TraceStore, make_trace: MakeTrace
) -> None:
    spans = (
        Span(position=0, worker="cy", subtask="Add.", status="done", answered_by="bob"),
        Span(position=1, worker="ada", subtask="Add.", status="failed"),
        Span(position=2, worker="bob", subtask="Add.", status="done", answered_by="bob"),
    )
    rounds = (RoundTrace(plan=Plan("", Acceptance()), spans=spans),)
    kept.add(make_trace("new", text="x" * 500, rounds=rounds, owner="shop", started_at=DAY.format(3)))
    kept.add(make_trace("old"))
    new, old = kept.page(TraceFilters()).traces
    assert (new.workers, new.owner, new.question, new.started) == (("bob", "ada"), "shop", "x" * 200, at(3))
    assert (old.workers, old.owner, old.cost_usd, old.calls, old.seconds) == (
        ("ada", "bob"),
        None,
        0.5,
        2,
        1.5,
    )


async def test_an_id_is_found_by_its_beginning_and_an_exact_one_wins(
    kept: TraceStore, make_trace: MakeTrace
) -> None:
    for id_ in ("ab", "abc1", "abd2", "x%", "x_y", "Z", "z"):
        kept.add(make_trace(id_))
    for prefix, found in [("abc", "abc1"), ("ab", "ab"), ("x_", "x_y"), ("Z", "Z"), ("z", "z")]:
        assert kept.get(prefix).id == found
    with pytest.raises(UnknownTraceError, match=r"has an id that begins with 'abx'; "):
        kept.get("abx")
    with pytest.raises(
        UsageError, match=r"^Several traces have an id that begins with 'a': ab, abc1, abd2; give"
    ):
        kept.get("a")
    with pytest.raises(UsageError, match="empty"):
        kept.get("")


async def test_an_owner_sees_and_deletes_its_own_traces_alone(
    kept: TraceStore, make_trace: MakeTrace
) -> None:
    kept.add(make_trace("a1", owner="ada"))
    kept.add(make_trace("a2", owner="bob"))
    kept.add(make_trace("a3"))
    assert kept.get("a", "ada").id == "a1"
    with pytest.raises(UnknownTraceError):
        kept.get("a2", "ada")
    assert await ids(kept, TraceFilters(owner="ada")) == ["a1"]
    assert not kept.delete("a2", "ada")
    assert not kept.delete("a", "ada")
    assert kept.delete("a1", "ada")
    assert not kept.delete("a1", "ada")
    assert await ids(kept) == ["a3", "a2"]
    assert kept.delete("a2")


async def test_each_filter_narrows_the_list_its_count_and_the_export(
    kept: TraceStore, make_trace: MakeTrace
) -> None:
    def paid(usd: float, worker: str) -> tuple[RoundTrace, ...]:
        span = Span(position=0, worker=worker, subtask="Add.", status="done", spent=Spent(cost_usd=usd))
        return (RoundTrace(plan=Plan("", Acceptance()), spans=(span,)),)

    kept.add(make_trace("1", started_at=DAY.format(1), text="Where is ÄSOP's 100% fox_den?", owner="shop"))
    kept.add(make_trace("2", started_at=DAY.format(2), status="failed", rounds=paid(0.1, "a")))
    kept.add(make_trace("3", started_at=DAY.format(3), planner="random", rounds=paid(2.0, 'a"b\\ü')))
    kept.add(make_trace("4", started_at=DAY.format(4), text="a" * 5000 + " the end", rounds=paid(0.0, "ab")))
    for filters, expected in [
        (TraceFilters(), "4321"),
        (TraceFilters(since=at(2)), "432"),
        (TraceFilters(until=at(2)), "1"),
        (TraceFilters(since=at(2), until=at(4)), "32"),
        (TraceFilters(planner="random"), "3"),
        (TraceFilters(status="failed"), "2"),
        (TraceFilters(worker="a"), "2"),
        (TraceFilters(worker="b"), ""),
        (TraceFilters(worker="bob"), "1"),
        (TraceFilters(worker='a"b\\ü'), "3"),
        (TraceFilters(min_cost=0.1), "321"),
        (TraceFilters(min_cost=0.1, max_cost=0.5), "21"),
        (TraceFilters(q="äsop"), "1"),
        (TraceFilters(q="100% FOX_"), "1"),
        (TraceFilters(q="0%_"), ""),
        (TraceFilters(q="THE END"), "4"),
        (TraceFilters(q="2 + 3"), "32"),
        (TraceFilters(owner="shop"), "1"),
        (TraceFilters(owner="shop", status="failed"), ""),
        (TraceFilters(q="\0"), ""),
        (TraceFilters(worker="\ud800", planner="\0", owner="\0"), ""),
    ]:
        page = kept.page(filters)
        assert "".join(trace.id for trace in page.traces) == expected, filters
        assert (page.total, page.next) == (len(expected), None)
        exported = [json.loads(line)["id"] for line in kept.export(filters)]
        assert "".join(exported) == expected[::-1], filters


async def test_pages_follow_one_another_whatever_comes_between(
    kept: TraceStore, make_trace: MakeTrace
) -> None:
    """Of traces of the same moment, too."""
    days = [1, 2, 2, 2, 3, 3, 4, 5, 5, 5]
    for number, day in enumerate(days):
        kept.add(make_trace(f"t{number}", started_at=DAY.format(day)))
    whole = await ids(kept)
    assert whole == [f"t{number}" for number in reversed(range(10))]
    found: list[str] = []
    cursor: str | None = None
    totals = []
    while True:
        page = kept.page(TraceFilters(), cursor, 3)
        found += [trace.id for trace in page.traces]
        totals.append(page.total)
        kept.add(make_trace(f"new{len(found)}", started_at=DAY.format(9)))
        kept.delete(found[-1])
        cursor = page.next
        if cursor is None:
            break
    assert found == whole
    assert totals == [10, None, None, None]


@pytest.mark.parametrize("cursor", ["", "x", "bm9uZQ", "W10", "WzEsMl0", "ü", "W05hTiwgIngiXQ=", "A" * 5000])
async def test_invalid_cursor_is_refused(kept: TraceStore, cursor: str) -> None:
    with pytest.raises(UsageError, match="is not a cursor"):
        kept.page(TraceFilters(), cursor)


@pytest.mark.parametrize("limit", [0, -1, 201])
async def test_page_limit_must_be_from_1_to_200(kept: TraceStore, limit: int) -> None:
    with pytest.raises(UsageError, match="from 1 to 200"):
        kept.page(TraceFilters(), limit=limit)


async def test_newest_traces_are_returned_complete(kept: TraceStore, make_trace: MakeTrace) -> None:
    for day in (2, 3, 1):
        kept.add(make_trace(f"t{day}", started_at=DAY.format(day)))
    assert kept.newest(2) == (
        make_trace("t3", started_at=DAY.format(3)),
        make_trace("t2", started_at=DAY.format(2)),
    )


async def test_exported_traces_can_be_imported_unchanged(kept: TraceStore, make_trace: MakeTrace) -> None:
    traces = [make_trace(f"t{number:02}", text=f"line\n{number}\u2028\0") for number in range(50)]
    for trace in traces:
        kept.add(trace)
    lines = list(kept.export(TraceFilters()))
    assert list(read_jsonl(lines, "here")) == traces
    assert not any("\n" in line for line in lines)


def test_any_text_can_be_kept(database, make_trace: MakeTrace) -> None:
    store = database.open()

    @given(text=st.text(st.characters(), min_size=1), name=st.text(st.characters(), min_size=1, max_size=20))
    def holds(text: str, name: str) -> None:
        asyncio.run(keep(text, name))

    async def keep(text: str, name: str) -> None:
        id_ = "i" + name.encode("utf-8", "replace").decode().replace("\0", "-")
        store.add(make_trace(id_, text=text, answer=text, planner=name, owner=name, error=text))
        whole = store.get(id_)
        assert whole.question.text == text.encode("utf-8", "replace").decode()
        assert [row.id for row in store.page(TraceFilters(owner=name, q=text[:1])).traces] == [id_]
        store.delete(id_)

    holds()
    store.close()


async def test_adding_traces_does_not_block_or_lose_any_without_the_database(
    database, make_trace: MakeTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_store, "_READ_AFTER_WRITE_S", 0.2)
    store = database.open()
    store.add(make_trace("before"))
    store.flush()
    with database.away():
        started = time.monotonic()
        for number in range(100):
            store.add(make_trace(f"during{number}"))
        assert time.monotonic() - started < 5
        await until(lambda: store.write_problem is not None)
        assert store.write_problem is not None
        assert "cannot be written (" in store.write_problem
        assert store.write_problem.endswith("Traces that wait for it: 100.")
        with pytest.raises(StoreError, match="cannot be read"):
            store.get("before")
    await until(lambda: store.write_problem is None)
    assert store.page(TraceFilters()).total == 101
    store.close()


async def test_traces_beyond_the_queue_are_spilled_to_a_file_and_written_later(
    database, make_trace: MakeTrace, tmp_path: Path
) -> None:
    store = database.open(max_rows=6)
    with database.away():
        for number in range(20):
            store.add(make_trace(f"t{number:02}"))
            if number % 3 == 2:
                await until(lambda: 2 * len(store._queue._waiting) < 6)
        assert list(tmp_path.rglob("unwritten-*.jsonl"))  # noqa: ASYNC240
    await until(lambda: store.write_problem is None)
    await until(lambda: not list(tmp_path.rglob("unwritten-*.jsonl")))
    assert await ids(store) == [f"t{number:02}" for number in reversed(range(20))]
    store.close()


async def test_a_queue_that_is_full_says_so(database, make_trace: MakeTrace, tmp_path: Path) -> None:
    """Where nothing can be put aside either."""
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "podium").touch()
    store = database.open(max_rows=3)
    store._queue._spill_folder = tmp_path / "data" / "podium"
    with database.away():
        for number in range(3):
            store.add(make_trace(f"t{number}"))
        await until(lambda: store.write_problem is not None)
        with pytest.raises(
            StoreError, match=r"^A trace cannot be kept: 3 others already wait to be written\. The"
        ):
            store.add(make_trace("t3"))
    await until(lambda: store.write_problem is None)
    store.add(make_trace("t3"))
    assert len(await ids(store)) == 4
    store.close()


async def test_traces_unwritten_at_close_are_written_by_the_next_store(
    database, make_trace: MakeTrace, tmp_path: Path
) -> None:
    store = database.open(close_timeout_s=0.2)
    with database.away():
        traces = [make_trace(f"t{number}") for number in range(3)]
        for trace in traces:
            store.add(trace)
        with pytest.raises(
            StoreError, match=r"^Traces that could not be written to .* are in .*unwritten-.*\.jsonl: "
        ):
            store.close()
    (file,) = tmp_path.rglob("unwritten-*.jsonl")  # noqa: ASYNC240
    assert list(read_jsonl(file.read_text().splitlines(), "here")) == traces
    following = database.open()
    await until(lambda: not file.exists())
    assert await ids(following) == ["t2", "t1", "t0"]
    following.close()


async def test_a_damaged_line_of_a_spill_file_is_set_aside(
    database, make_trace: MakeTrace, tmp_path: Path
) -> None:
    store = database.open(close_timeout_s=0.2)
    with database.away():
        store.add(make_trace("t1"))
        with pytest.raises(StoreError):
            store.close()
    (file,) = tmp_path.rglob("unwritten-*.jsonl")  # noqa: ASYNC240
    file.write_bytes(b'{"id": "cut \n' + file.read_bytes())
    following = database.open()
    await until(lambda: not file.exists())
    assert await ids(following) == ["t1"]
    following.close()
    (refused,) = tmp_path.rglob("refused-*.jsonl")  # noqa: ASYNC240
    assert refused.read_bytes() == b'{"id": "cut \n'


async def test_many_threads_and_loops_may_use_one_store(kept: TraceStore, make_trace: MakeTrace) -> None:
    def add(name: str) -> None:
        async def work() -> None:
            for number in range(25):
                kept.add(make_trace(f"{name}{number}"))
                assert kept.get(f"{name}{number}").id == f"{name}{number}"

        asyncio.run(work())

    threads = [threading.Thread(target=add, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert kept.page(TraceFilters(), limit=200).total == 100


async def test_two_stores_over_one_database_see_the_same(database, make_trace: MakeTrace) -> None:
    one, other = database.open(), database.open()
    one.add(make_trace("one"))
    one.get("one")
    other.add(make_trace("other"))
    assert await ids(other) == ["other", "one"]
    assert await ids(one) == ["other", "one"]
    one.close()
    other.close()


def test_unknown_store_address_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^redis:// is not a trace store; give a file, or postgresql://"):
        TraceStore("redis://user:hush@host/0")
