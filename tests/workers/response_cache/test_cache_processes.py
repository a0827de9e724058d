"""The file among processes: several write to it, some are killed, one holds it, and the disk is full."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from loaded_programs import loaded_python
from paid_worker import Paid, reply, request
from podium.errors import StoreError
from podium.workers.response_cache import ResponseCache

PREAMBLE = """
import asyncio, json, os, resource, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from paid_worker import Paid, reply, request
from podium.errors import StoreError
from podium.workers.response_cache import ResponseCache
path, *told = sys.argv[2:]
"""
WRITES_FOR_EVER = """
async def main():
    cache = ResponseCache(path)
    for number in range(10**9):
        text = f"{told[0]} {number} " + "x" * (number % 7 * 3000)
        async def ask():
            return reply(text)
        got = await cache.get_or_call(Paid(), request(told[0], sample=number), ask)
        print(json.dumps([number, len(got.text)]), flush=True)
asyncio.run(main())
"""
ASKS_AT_THE_SAME_TIME = """
mine, other, count = told
async def main():
    cache = ResponseCache(path)
    got = {}
    for number in range(int(count)):
        async def ask():
            Path(f"{path}-{mine}-{number}").touch()
            while not Path(f"{path}-{other}-{number}").exists():
                await asyncio.sleep(0.0005)
            return reply(f"of {mine}", cost_usd=float(mine))
        got[number] = await cache.get_or_call(Paid(), request(sample=number), ask)
    print(json.dumps([(given.text, given.cached, given.cost_usd) for given in got.values()]))
    cache.close()
asyncio.run(main())
"""
OPENS = """
while not Path(told[0]).exists():
    pass
ResponseCache(path).close()
"""
FILLS_THE_DISK = """
async def main():
    cache = ResponseCache(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))
    number = 0
    try:
        while True:
            async def ask():
                return reply(os.urandom(5000).hex())
            await cache.get_or_call(Paid(), request(sample=number), ask)
            number += 1
    except StoreError as error:
        print(json.dumps([number, str(error)]))
asyncio.run(main())
"""
READS_WHERE_NOBODY_MAY_WRITE = """
os.chmod(Path(path).parent, 0o555)
if os.getuid() == 0:
    os.setuid(65534)
async def main():
    cache = ResponseCache(path, replay=True)
    print((await cache.get_or_call(Paid(), request(), None)).text, os.access(Path(path).parent, os.W_OK))
asyncio.run(main())
"""


def start(script, path, *told):
    command = [
        loaded_python(),
        "-c",
        PREAMBLE + script,
        str(Path(__file__).parent),
        str(path),
        *map(str, told),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def never():
    raise AssertionError("asked, though the reply is kept")


async def test_concurrent_processes_get_one_cached_answer_and_pay_separately(tmp_path):
    both = [start(ASKS_AT_THE_SAME_TIME, tmp_path / "c", *names, 15) for names in ((1, 2), (2, 1))]
    one, other = (json.loads(process.communicate(timeout=120)[0]) for process in both)
    assert [text for text, _, _ in one] == [text for text, _, _ in other]
    assert {(cached, usd) for _, cached, usd in one} == {(False, 1.0)}
    assert {(cached, usd) for _, cached, usd in other} == {(False, 2.0)}
    with ResponseCache(tmp_path / "c", replay=True) as cache:
        assert cache.count == 15
        kept = [(await cache.get_or_call(Paid(), request(sample=k), never)).text for k in range(15)]
    assert kept == [text for text, _, _ in one]


@pytest.mark.parametrize("lines", [5, 60])
async def test_replies_given_to_a_killed_process_stay_cached(tmp_path, lines):
    path = tmp_path / "c.sqlite"
    given = {}
    with start(WRITES_FOR_EVER, path, "a") as process, start(WRITES_FOR_EVER, path, "b") as beside:
        assert process.stdout is not None
        for line in process.stdout:
            number, length = json.loads(line)
            given[number] = length
            if len(given) == lines:
                break
        process.send_signal(signal.SIGKILL)
        given |= dict(json.loads(line) for line in process.stdout if line.endswith("]\n"))
        beside.kill()
    with ResponseCache(path, replay=True) as cache:
        for number, length in given.items():
            kept = await cache.get_or_call(Paid(), request("a", sample=number), never)
            assert kept.text.startswith(f"a {number} ")
            assert len(kept.text) == length
    with ResponseCache(path) as cache:
        assert (await cache.get_or_call(Paid(), request("after"), ready)).cached is False
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_processes_that_make_the_file_at_the_same_moment_all_find_it_whole(tmp_path):
    path, sign = tmp_path / "c.sqlite", tmp_path / "go"
    openers = [start(OPENS, path, sign) for _ in range(4)]
    await asyncio.sleep(0.5)
    sign.touch()
    assert [opener.wait(60) for opener in openers] == [0, 0, 0, 0]
    with ResponseCache(path, replay=True) as cache:
        assert cache.count == 0


async def test_the_event_loop_goes_on_while_another_process_holds_the_file(tmp_path):
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    with ResponseCache(tmp_path / "c.sqlite") as cache:
        other = held(cache.path)
        clock = asyncio.create_task(tick())
        asking = asyncio.create_task(cache.get_or_call(Paid(), request(), ready))
        await asyncio.sleep(0.5)
        assert not asking.done()
        assert ticks >= 5
        other.execute("ROLLBACK")
        assert (await asking).text == "42"
        assert cache.count == 1
        clock.cancel()


async def test_cancelled_writer_returns_while_another_process_holds_the_lock(tmp_path):
    with ResponseCache(tmp_path / "c.sqlite") as cache:
        other = held(cache.path)
        asking = asyncio.create_task(cache.get_or_call(Paid(), request(), ready))
        await asyncio.sleep(0.1)
        asking.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert time.monotonic() - began < 5
        other.execute("ROLLBACK")
        assert cache.count == 0


async def test_cancelled_writer_stores_the_paid_reply_if_the_file_is_free(tmp_path):
    with ResponseCache(tmp_path / "c.sqlite") as cache:
        other = held(cache.path)
        asking = asyncio.create_task(cache.get_or_call(Paid(), request(), ready))
        await asyncio.sleep(0.1)
        other.execute("ROLLBACK")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert cache.count == 1


async def test_a_file_that_stays_locked_is_reported_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("podium.workers.response_cache.BUSY_TIMEOUT_S", 0.1)
    with ResponseCache(tmp_path / "c.sqlite") as cache:
        other = held(cache.path)
        assert (await cache.get_or_call(Paid(), request(), ready)).text == "42", "it is paid for"
        for work in (cache.get_or_call(Paid(), request("more"), never), asyncio.to_thread(cache.forget)):
            with pytest.raises(StoreError) as failed:
                await work
            assert str(failed.value) == (
                f"The response cache {cache.path} cannot be written (database is locked); "
                "another process has locked it: let it end, or give each its own file."
            )
        other.close()
        await cache.get_or_call(Paid(), request("more"), ready)
        assert cache.count == 2, "what could not be written was written later"


async def test_full_disk_is_reported_and_cached_replies_stay(tmp_path):
    path = tmp_path / "c.sqlite"
    number, sentence = json.loads(start(FILLS_THE_DISK, path).communicate(timeout=60)[0])
    assert sentence.startswith(f"The response cache {path} cannot be written (d")
    assert sentence.count(".") - str(path).count(".") == 1
    with ResponseCache(path, replay=True) as cache:
        assert number - 1 == cache.count > 5, "the last reply was given and is not kept"


async def test_a_damaged_file_is_reported_in_one_sentence(tmp_path):
    path = tmp_path / "c.sqlite"
    with ResponseCache(path) as cache:
        for sample in range(50):
            await cache.get_or_call(Paid(), request(sample=sample), lambda: ready("x" * 3000))
    content = path.read_bytes()
    path.write_bytes(content[:8192] + os.urandom(len(content) - 8192))
    with ResponseCache(path) as cache:
        calls = [cache.get_or_call(Paid(), request(sample=sample), ready) for sample in range(50)]
        failures = [
            said
            for said in await asyncio.gather(*calls, return_exceptions=True)
            if isinstance(said, Exception)
        ]
    assert failures
    assert {str(failure) for failure in failures if isinstance(failure, StoreError)} == {str(failures[0])}
    assert str(failures[0]).endswith(
        "(database disk image is malformed); move it away, or give another file."
    )


async def test_a_file_is_replayed_from_a_read_only_folder():
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "shelf"
        folder.mkdir()
        os.chmod(made, 0o755)
        with ResponseCache(folder / "c.sqlite") as cache:
            await cache.get_or_call(Paid(), request(), ready)
        (folder / "c.sqlite").chmod(0o644)  # A new file is its owner's alone.
        reader = start(READS_WHERE_NOBODY_MAY_WRITE, folder / "c.sqlite")
        assert reader.communicate(timeout=60)[0] == "42 False\n"
        assert [file.name for file in folder.iterdir()] == ["c.sqlite"]
        folder.chmod(0o755)


def held(path):
    """Another connection, which holds the file."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


async def ready(text="42"):
    return reply(text)
