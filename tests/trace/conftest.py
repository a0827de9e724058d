import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podium.trace import Attempt, Plan, Reply, RoundTrace, Span, Trace
from podium.trace.store.async_store import AsyncTraceStore
from podium.types import Message, Profile, Question, Spent, Usage
from podium.workflow import Access, Step, Workflow
from postgres_server import DATABASES, PostgresServer

MakeTrace = Callable[..., Trace]
collect_ignore = [] if "postgresql" in DATABASES else ["test_postgres_store.py"]


def build_trace(id_: str = "t1", *, text: str = "What is 2 + 3?", **changes: object) -> Trace:
    """A trace of one round of two steps."""
    spans = tuple(
        Span(
            position=position,
            worker=name,
            subtask="Add.",
            reads=tuple(range(position)),
            status="done",
            messages=(Message(role="user", content=text),),
            reply=Reply("5", Usage(input_tokens=10, output_tokens=2)),
            answered_by=name,
            spent=Spent(Usage(input_tokens=10, output_tokens=2), 0.25),
            attempts=(Attempt(worker=name, started_s=0.0, ended_s=0.5),),
        )
        for position, name in enumerate(("ada", "bob"))
    )
    workflow = Workflow((Step(0, "Add."), Step(1, "Check.", Access(all=True))))
    values: dict[str, object] = {
        "id": id_,
        "question": Question(text=text),
        "pool": (Profile(name="ada"), Profile(name="bob")),
        "planner": "conductor",
        "seed": "0",
        "rounds": (RoundTrace(plan=Plan("model_id = [0, 1]", workflow), spans=spans, response="5"),),
        "answer": "5",
        "status": "ok",
        "started_at": "2026-03-01T10:00:00+00:00",
        "seconds": 1.5,
    }
    return Trace.model_validate(values | changes)


@pytest.fixture(scope="session")
def make_trace() -> MakeTrace:
    return build_trace


@dataclass(frozen=True)
class Place:
    """Where a store keeps its traces, and how to take its database away for a while."""

    url: str
    server: PostgresServer | None

    def open(self, **bounds: Any) -> AsyncTraceStore:
        """A store there; with `bounds` of its queue, if given."""
        return AsyncTraceStore(self.url, **bounds)

    @contextmanager
    def away(self) -> Iterator[None]:
        """The database cannot be used within the block."""
        if self.server is not None:
            self.server.stop()
        else:
            self._rename("podium_documents", "elsewhere")
        try:
            yield
        finally:
            if self.server is not None:
                self.server.start()
            else:
                self._rename("elsewhere", "podium_documents")

    def _rename(self, name: str, other: str) -> None:
        with closing(sqlite3.connect(self.url)) as connection:
            connection.execute(f"ALTER TABLE {name} RENAME TO {other}")


@pytest.fixture(params=DATABASES)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Where there is no trace yet, of each kind of database that there is here."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if request.param == "sqlite":
        return Place(str(tmp_path / "deep" / "traces.sqlite"), None)
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return Place(server.new_database(), server)


@pytest.fixture
async def kept(place: Place) -> AsyncIterator[AsyncTraceStore]:
    """An empty store."""
    store = place.open()
    yield store
    await store.close()
