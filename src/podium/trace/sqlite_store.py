"""The traces of a server in one SQLite file: for one machine, whose processes may share it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from podium.database import connect
from podium.errors import StoreError
from podium.trace.database_store import DatabaseStore
from podium.trace.row import TraceRow
from podium.trace.statements import Statement
from podium.trace.table import SQLITE, insert_rows, open_writer


class SqliteStore(DatabaseStore):
    """A file of traces, made if it is missing; one of an older Podium is brought up to date.

    Raises:
        UsageError: the file cannot be opened, or is not a trace store.
    """

    def __init__(self, path: Path | str, **bounds: Any) -> None:
        self.path = Path(path)
        self._writer = open_writer(self.path)
        self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._closed = False
        super().__init__(str(self.path), SQLITE, self.path.parent, **bounds)

    @property
    def shared(self) -> bool:
        """Not over machines."""
        return False

    async def _rows(self, statement: Statement) -> Sequence[Sequence[Any]]:
        return await asyncio.to_thread(self._ask, statement)

    def _ask(self, statement: Statement) -> Sequence[Sequence[Any]]:
        try:
            try:
                reader = self._readers.get_nowait()
            except Empty:
                reader = connect(self.path)
                reader.execute(
                    "PRAGMA secure_delete = ON"
                )  # What is deleted is overwritten in the file, too.
            try:
                return reader.execute(*statement).fetchall()
            finally:
                self._readers.put(reader)
                if self._closed:
                    self._let_go()
        except sqlite3.Error as error:
            raise StoreError(f"The trace store {self.path} cannot be read ({error}).") from error

    def _write(self, rows: Sequence[TraceRow]) -> None:
        try:
            insert_rows(self._writer, rows)
        except sqlite3.Error as error:
            retryable = not isinstance(
                error, sqlite3.DataError
            )  # A document that is larger than SQLite takes.
            raise StoreError(
                f"The trace store {self.path} cannot be written ({error}).", retryable=retryable
            ) from error

    def _let_go(self) -> None:
        self._closed = True
        self._writer.close()
        while True:
            try:
                self._readers.get_nowait().close()
            except Empty:
                return
