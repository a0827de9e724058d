"""The event log of a question, which readers follow at their own pace."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podium.executor import StepStarted, StepText
from podium.server.event_logs import EventLogs, QuestionLog
from podium.team import Event, QuestionEnded
from podium.trace import Trace
from podium.types import Question

TRACE = Trace(
    id="t", question=Question(text="?"), pool=(), planner="p", seed="0", status="ok",
    started_at="2026-03-01T00:00:00Z", seconds=1.0,
)  # fmt: skip


Read = tuple[str, str, dict[str, Any]]
"""Id, kind and data of an event."""


async def events(live: EventLogs, after: str | None = None) -> AsyncIterator[Read]:
    log = live.find("t", None)
    assert log is not None
    async for event in log.events(after):
        id, kind, data = (line.partition(": ")[2] for line in event.decode().strip().split("\n"))
        yield id, kind, json.loads(data)


async def read_all(source: AsyncIterator[Read]) -> list[tuple[str, str]]:
    return [(kind, data.get("text", "")) async for _, kind, data in source]


def begun(live: EventLogs, trace_id: str = "t", owner: str | None = None) -> Callable[[Event], None]:
    """Begin a question; its end ends its log, as in the server."""
    log = QuestionLog(trace_id, owner)
    live.begin(trace_id, log)

    def observe(event: Event) -> None:
        log.append(event)
        if isinstance(event, QuestionEnded):
            live.end(trace_id)

    return observe


async def test_pieces_that_come_while_a_watcher_is_busy_come_together() -> None:
    live = EventLogs()
    observe = begun(live)
    source = events(live)
    assert (await anext(source))[1] == "started"
    for piece in ("a", "\u00e4", "\ud800", "\u20ac"):
        observe(StepText(0, 0, piece))
    event_id, _, data = await anext(source)
    assert (event_id, data["text"]) == ("0.7", "aä?€")
    observe(StepText(0, 0, "b"))
    observe(QuestionEnded(TRACE))
    assert await read_all(source) == [("text", "b"), ("ended", "")]
    live.close()


async def test_tries_that_write_side_by_side_are_kept_apart() -> None:
    live = EventLogs()
    observe = begun(live)
    for attempt, piece in [(0, "a"), (1, "x"), (0, "b"), (0, "c"), (1, "y")]:
        observe(StepText(0, 0, piece, attempt))
    observe(QuestionEnded(TRACE))
    told = [data async for _, kind, data in events(live) if kind == "text"]
    assert [(one["attempt"], one["text"]) for one in told] == [(0, "a"), (1, "x"), (0, "bc"), (1, "y")]
    live.close()


@given(st.lists(st.one_of(st.text(max_size=3), st.none()), max_size=12), st.integers(0, 30))
def test_a_reader_that_reconnects_anywhere_reads_every_event_once(course: list[str | None], cut: int) -> None:
    async def follow() -> None:
        live = EventLogs()
        observe = begun(live)
        for number, piece in enumerate(course):
            observe(StepStarted(0, number, "ada", "Add.") if piece is None else StepText(0, 0, piece))
        observe(QuestionEnded(TRACE))
        whole = await read_all(events(live))
        first: list[Read] = []
        async for one in events(live):
            first.append(one)
            if len(first) > cut:
                break
        after = first[-1][0] if first else None
        rest = await read_all(events(live, after))
        assert [(kind, data.get("text", "")) for _, kind, data in first] + rest == whole
        assert "".join(text for _, text in whole) == "".join(piece or "" for piece in course)
        live.close()

    asyncio.run(follow())


async def test_watcher_gets_the_end_of_a_question_removed_meanwhile() -> None:
    live = EventLogs(kept_s=0.01)
    observe = begun(live, owner="ada")
    assert live.find("t", "ada") is live.find("t", None) is not None
    assert live.find("t", "bob") is None
    source = events(live)
    await anext(source)
    observe(QuestionEnded(TRACE))
    async with asyncio.timeout(20):
        while live.find("t", None) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert await read_all(source) == [("ended", "")]


async def test_only_so_many_ended_questions_are_remembered() -> None:
    live = EventLogs(max_kept=3)
    for number in range(10):
        begun(live, str(number))(QuestionEnded(TRACE))
    running = begun(live, "running")
    assert [name for name in map(str, range(10)) if live.find(name, None)] == ["7", "8", "9"]
    assert live.find("running", None) is not None
    del running
    live.close()


async def test_a_question_that_breaks_off_lets_its_watchers_go() -> None:
    live = EventLogs()
    begun(live)
    source = events(live)
    await anext(source)
    waiting = asyncio.ensure_future(read_all(source))
    await asyncio.sleep(0)
    live.end("t")
    live.end("t")
    live.end("nobody")
    assert await asyncio.wait_for(waiting, 20) == []
    live.close()
