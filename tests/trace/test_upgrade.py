"""Files of the first format, as older Podiums made them, in the words in which they made them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from podium.errors import UsageError
from podium.trace import Feedback, RoundTrace, Span, Trace
from podium.trace.answers import past_answers
from podium.trace.costs import SUMS_OF_COSTS
from podium.trace.query import Filters
from podium.trace.spend import SpendQuery
from podium.trace.sqlite_store import SqliteTraceStore
from podium.trace.store import TraceStore

MakeTrace = Callable[..., Trace]


@pytest.fixture
def old(tmp_path: Path, make_trace: MakeTrace) -> Path:
    """Three traces in a file of format 1; the documents know nothing of owners."""
    path = tmp_path / "old.sqlite"
    spans = tuple(
        Span(position=number, worker=name, subtask="Add.", status="done", answered_by=by)
        for number, (name, by) in enumerate([("cy", "bob"), ("ada", None), ("bob", "bob")])
    )
    traces = [
        make_trace("a", text="Where is ÄSOP?"),
        make_trace("b", rounds=(RoundTrace(plan_text="", spans=spans),), started_at="2026-03-02T00:00:00Z"),
        make_trace("c", rounds=(), answer=None, status="failed", started_at="2026-03-03T00:00:00Z"),
    ]
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute(
            "CREATE TABLE traces ("
            "id TEXT PRIMARY KEY, started REAL, planner TEXT, status TEXT, question TEXT, "
            "calls INTEGER, cost_usd REAL, seconds REAL, document TEXT)"
        )
        file.execute("CREATE INDEX by_start ON traces (started)")
        for number, trace in enumerate(traces):
            document = trace.model_dump_json(exclude={"owner", "user", "metadata"})
            file.execute(
                "INSERT INTO traces VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (trace.id, 1772359200.0 + number * 86400, trace.planner, trace.status, trace.question.text[:200],
                 trace.calls, trace.cost_usd, trace.seconds, document),
            )  # fmt: skip
        file.execute(f"PRAGMA application_id = {0x506F4469}")
        file.execute("PRAGMA user_version = 1")
    return path


def form(path: Path) -> tuple[int, list[str]]:
    with closing(sqlite3.connect(path)) as file:
        columns = [row[1] for row in file.execute("PRAGMA table_info(traces)")]
        return file.execute("PRAGMA user_version").fetchone()[0], columns


async def test_an_old_file_is_upgraded_in_place_and_listed_and_filtered(
    old: Path, make_trace: MakeTrace
) -> None:
    store = SqliteTraceStore(old)
    page = await store.page(Filters())
    assert [(row.id, row.workers, row.owner) for row in page.traces] == [
        ("c", (), None),
        ("b", ("bob", "ada"), None),
        ("a", ("ada", "bob"), None),
    ]
    for filters, expected in [
        (Filters(q="äsop"), "a"),
        (Filters(worker="cy"), ""),
        (Filters(worker="ada"), "ba"),
        (Filters(owner="ada"), ""),
        (Filters(status="failed"), "c"),
    ]:
        assert "".join(row.id for row in (await store.page(filters)).traces) == expected
    assert await store.get("a") == make_trace("a", text="Where is ÄSOP?")
    store.add(make_trace("d", owner="ada"))
    assert await store.delete("a")
    await store.close()
    assert form(old)[0] == 6
    with TraceStore(old, create=False) as again:
        assert [row.id for row in again.list()] == ["c", "b", "d"]


def test_the_command_line_upgrades_and_lists_it_too(old: Path) -> None:
    with TraceStore(old, create=False) as store:
        assert [row.id for row in store.list()] == ["c", "b", "a"]
        assert [trace.id for trace in store.iterate()] == ["a", "b", "c"]
    assert form(old) == form_of_new(old.parent / "new.sqlite")


def form_of_new(path: Path) -> tuple[int, list[str]]:
    TraceStore(path).close()
    return form(path)


async def test_an_old_file_says_what_its_questions_cost(old: Path) -> None:
    store = SqliteTraceStore(old)
    for _ in range(2):
        spend = await store.spend(SpendQuery(date(2026, 3, 1), date(2026, 3, 3), "day"))
        assert [(group.name, group.sums.cost_usd, group.sums.calls) for group in spend.groups] == [
            ("2026-03-01", 0.5, 2),
            ("2026-03-02", 0.0, 0),
            ("2026-03-03", 0.0, 0),
        ]
        await store.close()
        store = SqliteTraceStore(old)
    await store.close()


def test_a_file_from_before_outcomes_takes_them(old: Path) -> None:
    TraceStore(old).close()
    with closing(sqlite3.connect(old, isolation_level=None)) as file:
        for index in ("listed", "listed_of", "troubled", "judged", "planned"):
            file.execute(f"DROP INDEX {index}")
        file.execute("ALTER TABLE traces DROP COLUMN outcome")
        file.execute("CREATE INDEX listed ON traces (started, id, owner, status)")
        file.execute("PRAGMA user_version = 2")
    with TraceStore(old) as store:
        assert [row.outcome for row in store.list()] == [None, None, None]
        assert store.judge("b", Feedback(right=False, at="2026-03-04T00:00:00Z")).id == "b"
        assert [row.id for row in store.list(outcome="wrong")] == ["b"]
        assert [row.id for row in store.list(outcome="none")] == ["c", "a"]
    assert form(old) == form_of_new(old.parent / "new.sqlite")


async def test_a_file_from_before_the_table_of_workers_keeps_its_costs_and_gets_one(
    tmp_path: Path, make_trace: MakeTrace
) -> None:
    path = tmp_path / "fourth.sqlite"
    with TraceStore(path) as store:
        store.add_all([make_trace("a"), make_trace("b", started_at="2026-03-02T00:00:00Z")])
        store.judge("a", Feedback(right=True, at="2026-03-04T00:00:00Z"))
    before = form(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        for dropped in ("TABLE worked", "TRIGGER worked_deleted", "TRIGGER costs_deleted", "INDEX planned",
                        "INDEX costs_of", "TABLE spent", "TRIGGER spent_less"):  # fmt: skip
            file.execute(f"DROP {dropped}")
        file.execute("ALTER TABLE costs DROP COLUMN started")
        for statement in (
            "CREATE INDEX by_start ON traces (started)",
            "CREATE INDEX costs_of_trace ON costs (trace)",
            "CREATE INDEX costs_of_day ON costs (day, owner, planner, worker, calls, unpriced, tokens, usd, "
            "unpaid_usd, saved_usd)",
            "CREATE TRIGGER costs_deleted AFTER DELETE ON traces BEGIN DELETE FROM costs WHERE trace = old.id; END",
            "PRAGMA user_version = 4",
        ):
            file.execute(statement)
    store = SqliteTraceStore(path)
    query = SpendQuery(date(2026, 3, 1), date(2026, 3, 3), "worker")
    spend = await store.spend(query)
    assert (spend.total.cost_usd, spend.total.questions) == (1.0, 2)
    assert [(group.name, group.accuracy and group.accuracy.right) for group in spend.groups] == [
        ("ada", 1), ("bob", 1), (None, 1)
    ]  # fmt: skip
    assert [row.id for row in (await store.page(Filters(worker="bob"))).traces] == ["b", "a"]
    assert await store.delete("b")
    assert [row.id for row in (await store.page(Filters(worker="bob"))).traces] == ["a"]
    assert (await store.spend(query)).total.questions == 1
    await store.close()
    assert form(path) == before


async def test_a_file_from_before_the_sums_of_costs_gets_them_and_keeps_them(
    tmp_path: Path, make_trace: MakeTrace
) -> None:
    path = tmp_path / "fifth.sqlite"
    with TraceStore(path) as store:
        store.add_all(
            make_trace(
                f"t{number}",
                owner=None if number % 3 else "shop",
                started_at=f"2026-03-0{number + 1}T00:00:00Z",
            )
            for number in range(6)
        )
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        before = sums(file)
        file.execute("DROP TABLE spent")
        file.execute("DROP TRIGGER spent_less")
        file.execute("CREATE INDEX costs_by_day ON costs (day, owner, planner, worker)")
        file.execute("PRAGMA user_version = 5")
    with TraceStore(path) as store:
        store.add(make_trace("t0", owner="shop"))  # in place of another
        store.add(make_trace("t6"))
    opened = SqliteTraceStore(path)
    assert await opened.delete("t5")
    await opened.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        assert sums(file) == sums(file, "costs") != before
        (plan,) = (
            " ".join(row[3] for row in file.execute(f"EXPLAIN QUERY PLAN DELETE FROM spent {BY_DAY}")),
        )
        assert "USING INDEX spent_by_day" in plan


BY_DAY = "WHERE (day, coalesce(owner, x'00'), planner, worker) = ('d', 'o', 'p', 'w')"


def sums(file: sqlite3.Connection, table: str = "spent") -> list[tuple[object, ...]]:
    source = (
        f"SELECT {SUMS_OF_COSTS} FROM costs GROUP BY 1, 2, 3, 4"
        if table == "costs"
        else "SELECT * FROM spent"
    )
    return sorted(file.execute(source).fetchall(), key=str)


def test_reading_alone_leaves_an_old_file_as_it_is(old: Path) -> None:
    before = old.read_bytes()
    past_answers(old)
    assert old.read_bytes() == before


def test_an_upgrade_that_fails_changes_nothing(old: Path) -> None:
    with closing(sqlite3.connect(old, isolation_level=None)) as file:
        file.execute(
            "UPDATE traces SET document = json_set(document, '$.rounds', json('[1]')) WHERE id = 'a'"
        )
        file.execute(
            "CREATE TRIGGER stop BEFORE UPDATE ON traces WHEN old.id = 'b' BEGIN SELECT raise(ABORT, 'full'); END"
        )
    before = form(old)
    with pytest.raises(UsageError, match=r"cannot be opened \(full\)"):
        TraceStore(old)
    assert form(old) == before
    with closing(sqlite3.connect(old, isolation_level=None)) as file:
        file.execute("DROP TRIGGER stop")
        file.execute("UPDATE traces SET document = 'torn' WHERE id = 'c'")
    with TraceStore(old) as store:
        assert [(row.id, row.workers) for row in store.list()] == [
            ("c", ()),
            ("b", ("bob", "ada")),
            ("a", ()),
        ]


def test_processes_that_open_an_old_file_together_upgrade_it_once(old: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; from podium.trace.store import TraceStore; TraceStore(sys.argv[1]).close()",
    ]
    together = [subprocess.Popen([*command, str(old)]) for _ in range(4)]
    assert [process.wait(60) for process in together] == [0, 0, 0, 0]
    with TraceStore(old) as store:
        assert [row.workers for row in store.list()] == [(), ("bob", "ada"), ("ada", "bob")]
