"""What is asked once is not asked again; what comes back is what was said."""

import asyncio
import gc
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paid_worker import Paid, reply, request
from podium.errors import StoreError, UsageError, WorkerError
from podium.trace import Plan, Reply, RoundTrace, Span, Trace
from podium.types import Message, Question, Spent, ToolCall, Usage
from podium.workers.response_cache import ResponseCache
from podium.workers.scripted import ScriptedWorker
from podium.workflow import Step, Workflow

TEXTS = st.text(st.characters(exclude_categories=()), max_size=40)
"""Of all letters there are, halves of pairs and null characters too."""


async def test_a_repeated_request_gets_the_stored_reply_and_no_call(ask):
    worker = Paid()
    first, second = await ask(worker, request()), await ask(worker, request())
    assert (first.text, second.text, worker.asked) == ("reply 0", "reply 0", 1)
    assert (first.cached, second.cached) == (False, True)
    assert second.usage == first.usage
    assert second.cost(worker.profile) == first.cost(worker.profile) > 0


async def test_a_reply_that_cannot_be_stored_is_given_and_told(cache, caplog):
    worker = Paid()

    async def pay() -> Reply:
        with closing(sqlite3.connect(cache.path)) as other:
            other.execute("ALTER TABLE replies RENAME TO lost")
        return await worker.answer(request())

    assert (await cache.get_or_call(worker, request(), pay)).text == "reply 0"
    assert "cannot be written" in caplog.text
    with pytest.raises(StoreError):  # Nothing is paid that could not be looked up.
        await cache.get_or_call(worker, request(), pay)
    assert worker.asked == 1


async def test_cached_reply_keeps_every_field(cache):
    span = Span(
        position=0,
        worker="w",
        subtask="Do \ud800.",
        status="done",
        reply=Reply("7", Usage()),
        spent=Spent(cost_usd=0.1),
    )
    nested = Trace(
        id="n",
        question=Question(text="?\0", history=(Message(role="user", content="hm"),)),
        pool=(Paid().profile,),
        planner="p",
        seed="s",
        rounds=(RoundTrace(plan=Plan("...", Workflow((Step(0, "Do it."),))), spans=(span,)),),
        status="ok",
        started_at="2026-01-01T00:00:00Z",
        seconds=2.5,
    )
    said = Reply(
        "42",
        Usage(input_tokens=9, output_tokens=5, cached_tokens=4, reasoning_tokens=2, estimated=True),
        latency_s=3.5,
        recorded="r#1",
        finish="length",
        model="big-2",
        fingerprint="fp_1",
        context_tokens=4096,
        dropped=("temperature",),
        folded=True,
        first_token_s=0.25,
        cost_usd=0.125,
        tool_calls=(ToolCall(id="1", name="look", arguments='{"up": "\ud800"}'),),
        nested=nested,
    )

    async def made():
        return said

    assert await cache.get_or_call(Paid(), request(), made) is said
    assert await cache.get_or_call(Paid(), request(), made) == replace(said, cached=True)


async def test_cached_reply_keeps_its_original_latency(cache):
    async def slow():
        await asyncio.sleep(0.05)
        return reply()

    assert (await cache.get_or_call(Paid(), request(), slow)).latency_s is None
    kept = await cache.get_or_call(Paid(), request(), slow)
    assert kept.latency_s is not None
    assert 0.05 <= kept.latency_s < 30


async def test_free_worker_is_not_cached(ask, cache):
    worker = ScriptedWorker("free", ["one", "two"])
    assert [(await ask(worker, request())).text for _ in range(2)] == ["one", "two"]
    assert cache.count == 0


async def test_truncated_replies_are_cached_but_errors_are_not(cache):
    async def fails():
        raise WorkerError("It is down.", kind="connection", retryable=True)

    async def cut():
        return reply("4", finish="length")

    with pytest.raises(WorkerError, match=r"It is down\."):
        await cache.get_or_call(Paid(), request(), fails)
    assert cache.count == 0
    await cache.get_or_call(Paid(), request(), cut)
    assert (await cache.get_or_call(Paid(), request(), fails)).finish == "length"


async def test_cached_reply_gets_the_fence_mark_of_the_new_request(cache):
    def fenced(mark):
        return request(f"<<<question {mark}>>>\nWhat?\n<<<end {mark}>>>", fence_mark=mark, seed=mark)

    async def quotes():
        return reply("The block <<<question 0a1b>>> asks.")

    await cache.get_or_call(Paid(), fenced("0a1b"), quotes)
    again = await cache.get_or_call(Paid(), fenced("ffff"), quotes)
    assert (again.text, again.cached) == ("The block <<<question ffff>>> asks.", True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=TEXTS, said=TEXTS, marks=st.tuples(TEXTS, TEXTS), where=st.lists(st.integers(0, 40), max_size=4))
async def test_cached_text_survives_with_any_fence_marks(cache, asked, said, marks, where):
    """Texts that hold no mark are given back; and each mark as the reader's own."""
    first, second = (f"«{mark}»" for mark in marks)
    said = said.replace(first, "").replace(second, "")
    pieces = [
        said[place:after] for place, after in zip([0, *sorted(where)], [*sorted(where), None], strict=True)
    ]
    if any(mark in said for mark in (first, second)):
        return
    cache.forget()
    await cache.get_or_call(
        Paid(), request(asked, fence_mark=first), lambda: _ready(reply(first.join(pieces)))
    )
    if second not in asked and first not in asked:
        kept = await cache.get_or_call(Paid(), request(asked, fence_mark=second), _never)
        assert kept.text == second.join(pieces)
    again = await cache.get_or_call(Paid(), request(asked, fence_mark=first), _never)
    assert again.text == first.join(pieces)


async def test_identical_calls_in_flight_are_made_once(ask):
    worker = Paid(delay=0.05)
    replies = await asyncio.gather(*(ask(worker, request()) for _ in range(50)))
    assert worker.asked == 1
    assert {given.text for given in replies} == {"reply 0"}
    assert sum(not given.cached for given in replies) == 1


async def test_different_calls_do_not_wait_for_each_other(cache):
    inside, all_inside = 0, asyncio.Event()

    async def meets():
        nonlocal inside
        inside += 1
        if inside == 20:
            all_inside.set()
        await all_inside.wait()
        return reply()

    async with asyncio.timeout(30):
        await asyncio.gather(*(cache.get_or_call(Paid(), request(sample=k), meets) for k in range(20)))


async def test_if_the_first_call_fails_the_others_are_made_one_at_a_time(cache):
    asked, at_once = [], 0

    async def fails_twice():
        nonlocal at_once
        assert not at_once
        at_once += 1
        asked.append(None)
        number = len(asked)
        await asyncio.sleep(0.01)
        at_once -= 1
        if number <= 2:
            raise WorkerError(f"failure {number}", kind="status")
        return reply(f"answer {number}")

    results = await asyncio.gather(
        *(cache.get_or_call(Paid(), request(), fails_twice) for _ in range(6)), return_exceptions=True
    )
    assert [str(result) for result in results[:2]] == ["failure 1", "failure 2"]
    assert [result.text for result in results[2:]] == ["answer 3"] * 4
    assert len(asked) == 3


async def test_if_the_first_call_is_cancelled_the_next_one_is_made(cache):
    begun = asyncio.Event()

    async def hangs():
        begun.set()
        await asyncio.Event().wait()
        return reply()

    first = asyncio.create_task(cache.get_or_call(Paid(), request(), hangs))
    await begun.wait()
    rest = [
        asyncio.create_task(cache.get_or_call(Paid(), request(), lambda: _ready(reply("mine"))))
        for _ in range(3)
    ]
    await asyncio.sleep(0)
    rest[1].cancel()
    first.cancel()
    results = await asyncio.gather(first, *rest, return_exceptions=True)
    assert [isinstance(result, asyncio.CancelledError) for result in results] == [True, False, True, False]
    assert [results[1].text, results[3].text] == ["mine", "mine"]


def test_event_loops_in_threads_share_cached_replies(tmp_path):
    worker, begun = Paid(delay=0.05), threading.Barrier(3)
    with ResponseCache(tmp_path / "c.sqlite") as cache:

        async def run():
            begun.wait(30)
            calls = [cache.get_or_call(worker, request(), lambda: worker.answer(request())) for _ in range(5)]
            return [given.text for given in await asyncio.gather(*calls)]

        with ThreadPoolExecutor(3) as threads:
            runs = [threads.submit(asyncio.run, run()) for _ in range(3)]
            texts = {text for done in runs for text in done.result(60)}
        assert len(texts) == 1
        assert worker.asked <= 3
        assert not cache._locks


async def test_old_replies_are_deleted_on_request(ask, cache):
    worker = Paid(says="x" * 10_000)
    for sample in range(200):
        await ask(worker, request(sample=sample))
    between = datetime.now(UTC)
    await asyncio.sleep(0.01)
    await ask(Paid("small"), request("Another?"))
    before = cache.size
    assert cache.forget(datetime.now(UTC) - timedelta(days=1)) == 0
    assert cache.forget(between) == 200
    assert cache.count == 1
    assert cache.size < before / 10
    assert [(kept.worker, kept.replies) for kept in cache.workers] == [("small", 1)]
    assert cache.forget() == 1
    assert (cache.count, cache.workers) == (0, ())


async def test_cache_summary_lists_replies_and_cost_by_worker(ask, cache):
    for worker, samples in ((Paid("a"), 2), (Paid("b", model="other"), 3)):
        for sample in range(samples):
            await ask(worker, request(sample=sample))
    first, second = cache.workers
    assert [(kept.worker, kept.replies) for kept in (first, second)] == [("a", 2), ("b", 3)]
    assert second.usd == pytest.approx(1.5 * first.usd)
    assert datetime.now(UTC) - timedelta(minutes=10) < first.oldest <= first.newest <= second.newest


async def test_a_miss_in_replay_calls_nobody_and_writes_nothing(tmp_path):
    path, worker = tmp_path / "c.sqlite", Paid()
    with ResponseCache(path) as cache:
        await cache.get_or_call(worker, request(), lambda: worker.answer(request()))
    before = path.read_bytes()
    with ResponseCache(path, replay=True) as cache:
        for asked in (request("What is 6 x 8?"), request(sample=1), request(duplicate_index=1)):
            with pytest.raises(
                WorkerError, match="no reply of 'big' to this request, and 1 to others"
            ) as miss:
                await cache.get_or_call(worker, asked, lambda: worker.answer(request()))
            assert (miss.value.kind, miss.value.retryable) == ("unrecorded", False)
    assert (worker.asked, path.read_bytes()) == (1, before)


async def test_the_file_holds_no_question(tmp_path):
    with ResponseCache(tmp_path / "c.sqlite") as cache:
        await cache.get_or_call(
            Paid(), request("Where is Ada?"), lambda: Paid(says="Here.").answer(request())
        )
    content = (tmp_path / "c.sqlite").read_bytes()
    assert b"Here." in content
    assert b"Ada" not in content


def test_a_file_that_is_no_response_cache_is_refused_and_left_as_it_was(tmp_path):
    text, foreign, newer, empty = (
        tmp_path / name for name in ("notes.txt", "bank.db", "newer.db", "empty.db")
    )
    text.write_text("not a database, but long enough to be looked at as one" * 50)
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE spend_limits (id)")
    ResponseCache(newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 99")
    empty.touch()
    gc.collect()
    for path, replay, message in [
        (text, False, "The response cache {} cannot be opened (file is not a database); give another file."),
        (text, True, "The response cache {} cannot be opened (file is not a database); give another file."),
        (foreign, False, "{} is an SQLite file, but not a response cache; give another file."),
        (foreign, True, "{} is an SQLite file, but not a response cache; give another file."),
        (empty, True, "{} is an SQLite file, but not a response cache; give another file."),
        (
            newer,
            True,
            "{} was written by another version of Podium (format 99, this one knows 1); give another file.",
        ),
        (
            tmp_path,
            False,
            "The response cache {} cannot be opened (unable to open database file); give another file.",
        ),
        (
            tmp_path / "none",
            True,
            "There is no response cache at {}; a run with this file and without replay creates it.",
        ),
    ]:
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(UsageError) as refused:
            ResponseCache(path, replay=replay)
        assert str(refused.value) == message.format(path)
        assert before == (path.read_bytes() if path.is_file() else None)
    assert not (tmp_path / "none").exists()


async def _ready(given):
    return given


async def _never():
    raise AssertionError("asked, though the reply is kept")
