import os
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event

from loaded_programs import loaded_python
from podium.errors import StoreError, UsageError
from podium.files.locations import default_store_path
from podium.store import TraceStore
from podium.store.trace_rows import TraceRows
from podium.trace import Trace
from podium.trace.serialization import TraceRow, to_row

WRITER = """
import sys
from podium.trace import Trace
from podium.store import TraceStore
path, name, document, mode = sys.argv[1:]
store = TraceStore(path)
trace = Trace.model_validate_json(document)
for number in range(10**9 if mode == "forever" else int(mode)):
    store.add(trace.model_copy(update={"id": f"{name}-{number:06}"}))
    if mode == "forever":
        store.flush()
        print(number, flush=True)
store.close()
"""

READER = """
import os, sys
from podium.store import TraceStore
if os.getuid() == 0:
    os.setuid(65534)
path = sys.argv[1]
with TraceStore(path, create=False) as store:
    listed, read = [trace.id for trace in store.list()], [trace.id for trace in store.iterate()]
    print(listed, read, store.get("t").id, os.access(path, os.W_OK))
"""


def writer(path, name, trace, mode):
    command = [loaded_python(), "-c", WRITER, str(path), name, trace.model_dump_json(), mode]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def store(tmp_path):
    with TraceStore(tmp_path / "deep" / "traces.sqlite") as opened:
        yield opened


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("a", "Several traces have an id that begins with 'a': a1, a2, a3, ...; give more of it."),
        ("b", "an id that begins with 'b'; `podium traces list` shows the ids there are."),
        ("", "An empty trace id was given; `podium traces list` shows the ids there are."),
        ("\udcff", "an id that begins with '?'; `podium traces list` shows the ids there are."),
    ],
)
def test_unknown_or_ambiguous_id_prefix_is_refused(store, make_trace, prefix, message):
    for number in range(1, 5):
        store.add(make_trace(f"a{number}"))
    with pytest.raises(UsageError) as refused:
        store.get(prefix)
    assert str(refused.value).endswith(message)


def test_the_list_is_newest_first_whatever_the_zone_it_was_written_in(store, make_trace):
    times = {
        "late": "2026-03-01T09:00:00-05:00",
        "early": "2026-03-01T13:00:00+00:00",
        "middle": "2026-03-01T13:30:00.5Z",
    }
    for id_, at in times.items():
        store.add(make_trace(id_, started_at=at))
    assert [s.id for s in store.list()] == ["late", "middle", "early"]
    assert [s.id for s in store.list(limit=1)] == ["late"]
    assert [t.id for t in store.iterate()] == ["early", "middle", "late"]


def test_interrupted_batch_stores_no_trace(store, make_trace):
    def broken():
        yield make_trace("one")
        raise UsageError("line 2 is broken")

    with pytest.raises(UsageError, match="line 2 is broken"):
        store.add_all(broken())
    assert store.list() == ()
    assert store.add_all([make_trace("two")]) == 1


def test_replacing_or_deleting_a_trace_reads_no_other_traces(store, make_trace):
    rows = store._rows
    statements = []

    def note(connection, cursor, statement, parameters, *context):
        statements.append((statement, parameters))

    event.listen(store.database._writers, "before_cursor_execute", note)
    for _ in range(2):
        rows.write([to_row(make_trace("t1")), to_row(make_trace("t2"))])
    rows.set_outcome(make_trace("t1"))
    assert rows.delete("t1")
    plans = []
    with closing(sqlite3.connect(store.name)) as connection:
        for statement, parameters in statements:
            if statement.startswith(("SELECT", "DELETE", "UPDATE")):
                plans += connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
    scanned = {plan[3].split()[1] for plan in plans if plan[3].startswith("SCAN")}
    assert len(plans) > 10
    assert not scanned & {"traces", "podium_documents", "podium_costs", "podium_worked"}


def test_a_store_that_another_process_is_just_making_is_waited_for(tmp_path):
    path = tmp_path / "t.sqlite"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    ended = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    ended.start()
    with closing(TraceStore(path)):
        assert not other.in_transaction
    other.close()


def test_two_processes_write_to_one_file(tmp_path, make_trace):
    path = tmp_path / "t.sqlite"
    both = [writer(path, name, make_trace(), "300") for name in ("left", "right")]
    assert [process.wait(60) for process in both] == [0, 0]
    with TraceStore(path, create=False) as store:
        assert len(store.list()) == 600


def test_a_killed_writer_loses_nothing_that_was_flushed(tmp_path, make_trace):
    path = tmp_path / "t.sqlite"
    with writer(path, "w", make_trace(), "forever") as process:
        assert process.stdout is not None
        for line in process.stdout:
            flushed = int(line)
            if flushed >= 20:
                break
        os.kill(process.pid, signal.SIGKILL)
    with TraceStore(path, create=False) as store:
        kept = [summary.id for summary in store.list()]
        store.add(make_trace("after"))
        assert store.get("after") == make_trace("after")
    assert set(kept) >= {f"w-{number:06}" for number in range(flushed + 1)}
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_file_that_is_no_store_is_refused_and_left_as_it_was(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to be looked at as one" * 50)
    foreign = tmp_path / "bank.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE spend_limits (id)")
    newer = tmp_path / "newer.sqlite"
    TraceStore(newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 99")
    for path, message in [
        (text, "cannot be opened (file is not a database); give another with --store."),
        (foreign, "is an SQLite file, but not a trace store; give another with --store."),
        (newer, "was written by another version of Podium (format 99, this one knows 1)"),
        (tmp_path, "cannot be opened (unable to open database file); give another with --store."),
        (text / "below", "cannot be opened ("),
    ]:
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(UsageError) as refused:
            TraceStore(path)
        assert message in str(refused.value)
        assert str(path) in str(refused.value)
        assert before == (path.read_bytes() if path.is_file() else None)


def test_a_store_that_may_not_be_written_is_read(make_trace):
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "shelf"
        os.chmod(made, 0o755)
        with TraceStore(folder / "t.sqlite") as store:
            store.add(make_trace())
        (folder / "t.sqlite").chmod(0o444)
        folder.chmod(0o555)
        command = [loaded_python(), "-c", READER, str(folder / "t.sqlite")]
        read = subprocess.run(command, capture_output=True, text=True, check=True)
        assert read.stdout == "['t1'] ['t1'] t1 False\n"
        assert [file.name for file in folder.iterdir()] == ["t.sqlite"]
        folder.chmod(0o755)


def test_a_missing_store_is_not_made_for_reading(tmp_path):
    with pytest.raises(UsageError, match="There is no trace store at"):
        TraceStore(tmp_path / "none.sqlite", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_locked_file_keeps_traces_waiting_and_loses_none(tmp_path, make_trace, monkeypatch):
    monkeypatch.setattr("podium.files.sqlite.BUSY_TIMEOUT_S", 0.001)
    store = TraceStore(tmp_path / "t.sqlite")
    other = sqlite3.connect(tmp_path / "t.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.add(make_trace("a" * 32))
    with pytest.raises(StoreError, match="cannot be written"):
        store.flush()
    store.add(make_trace("b" * 32))
    other.execute("ROLLBACK")
    store.flush()
    assert {trace.id for trace in store.iterate()} == {"a" * 32, "b" * 32}
    store.close()
    other.close()


def test_close_spills_unflushed_traces_without_another_write_attempt(tmp_path, make_trace, monkeypatch):
    tries = 0
    flushed, under_way = threading.Event(), threading.Event()

    def refuse(table: TraceRows, rows: list[TraceRow]) -> None:
        nonlocal tries
        if flushed.is_set():
            tries += 1
            under_way.set()
            while store._queue._close_by is None:
                time.sleep(0.001)
        raise StoreError("The file is locked.", retryable=True)

    monkeypatch.setattr("podium.store.write_queue._RECENT_S", 3600.0)
    monkeypatch.setattr(TraceRows, "write", refuse)
    store = TraceStore(tmp_path / "t.sqlite")
    store.add(make_trace("a" * 32))
    with pytest.raises(StoreError, match="locked"):
        store.flush()
    flushed.set()
    assert under_way.wait(60)
    store.add(make_trace("b" * 32))  # No try has it in hand.
    with pytest.raises(StoreError, match="unwritten"):
        store.close()
    assert tries == 1
    spilled = [line for file in tmp_path.glob("unwritten-*.jsonl") for line in file.read_text().splitlines()]
    assert {Trace.model_validate_json(line).id for line in spilled} == {"a" * 32, "b" * 32}


def test_spilled_traces_are_found_however_the_store_is_named(tmp_path, make_trace, monkeypatch):
    monkeypatch.setattr("podium.files.sqlite.BUSY_TIMEOUT_S", 0.001)
    monkeypatch.chdir(tmp_path)
    Path("kept").mkdir()
    Path("link.sqlite").symlink_to("kept/t.sqlite")
    for name in ("kept/t.sqlite", "link.sqlite"):
        store = TraceStore(name)
        with closing(sqlite3.connect(name, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            store.add(make_trace(f"by-{Path(name).stem}"))
            with pytest.raises(StoreError, match="unwritten"):
                store.close()
    with TraceStore(tmp_path / "kept" / "t.sqlite") as opened:
        opened.add(make_trace("later"))
        assert {trace.id for trace in opened.list()} == {"by-t", "by-link", "later"}


def test_a_trace_that_cannot_be_written_at_all_does_not_stop_the_others(tmp_path, make_trace):
    store = TraceStore(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(store.name)) as other:
        other.execute(
            "CREATE TRIGGER large BEFORE INSERT ON traces WHEN NEW.id LIKE 'b%' "
            "BEGIN SELECT zeroblob(2000000000); END"
        )
    for letter in "abc":
        store.add(make_trace(letter * 32))
    with pytest.raises(StoreError, match="too big"):
        store.flush()
    store.flush()
    assert {trace.id for trace in store.iterate()} == {"a" * 32, "c" * 32}
    store.close()


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"PODIUM_STORE": "/a/b.sqlite", "XDG_DATA_HOME": "/data"}, Path("/a/b.sqlite")),
        ({"XDG_DATA_HOME": "/data"}, Path("/data/podium/traces.sqlite")),
        ({}, Path("~/.local/share/podium/traces.sqlite").expanduser()),
    ],
)
def test_the_default_store_follows_the_environment(environ, expected):
    assert default_store_path(environ) == expected


def test_an_address_in_the_environment_is_no_file_and_not_repeated():
    with pytest.raises(UsageError, match=r"^PODIUM_STORE is the address of a server's database") as refused:
        default_store_path({"PODIUM_STORE": "postgresql://u:hush@db/x"})
    assert "hush" not in str(refused.value)
