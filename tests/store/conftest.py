import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podium.store import TraceStore
from podium.trace import Trace
from postgres_server import DATABASES, PostgresServer
from sample_traces import build_trace

MakeTrace = Callable[..., Trace]
collect_ignore = [] if "postgresql" in DATABASES else ["test_postgres_store.py"]


@pytest.fixture(scope="session")
def make_trace() -> MakeTrace:
    return build_trace


@dataclass(frozen=True)
class StoreDatabase:
    """Where a store keeps its traces, and how to take its database away for a while."""

    url: str
    server: PostgresServer | None

    def open(self, **bounds: Any) -> TraceStore:
        """A store there; with `bounds` of its queue, if given."""
        return TraceStore(self.url, **bounds)

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
def database(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> StoreDatabase:
    """Where there is no trace yet, of each kind of database that there is here."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if request.param == "sqlite":
        return StoreDatabase(str(tmp_path / "deep" / "traces.sqlite"), None)
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return StoreDatabase(server.new_database(), server)


@pytest.fixture
async def kept(database: StoreDatabase) -> AsyncIterator[TraceStore]:
    """An empty store."""
    store = database.open()
    yield store
    store.close()
