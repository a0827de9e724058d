"""Where a server keeps its traces: what every store of them can do, and how one is opened.

Two forms, held to the same claims by the same tests: a file (`sqlite_store`) and a PostgreSQL database (`postgres`).
Verbs that run once use `store` instead, which waits for its disk.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from podium.trace.model import Trace, TraceStatus
from podium.trace.summary import TraceSummary

MOST = 200
"""Traces of one page."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Which traces; each that is given must hold. None: any."""

    since: datetime | None = None
    """Begun then or later."""
    until: datetime | None = None
    """Begun before."""
    planner: str | None = None
    worker: str | None = None
    """That answered a step, or was asked in vain."""
    status: TraceStatus | None = None
    min_cost: float | None = None
    """Dollars."""
    max_cost: float | None = None
    q: str | None = None
    """Stands in the question's text, in its first or its last 1,000 characters; the case of letters is no matter."""
    owner: str | None = None
    """The name of a key."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list."""

    traces: tuple[TraceSummary, ...]
    """Newest first."""
    next: str | None
    """Where the next page begins; None: this is the last."""
    total: int | None
    """Of all pages; told with the first page alone, and None where there are more than are worth counting."""


class Store(Protocol):
    """Keeps traces. May be used from any event loop and thread."""

    @property
    def shared(self) -> bool:
        """Whether servers on other machines may keep their traces in it too."""
        ...

    @property
    def waiting(self) -> int:
        """Traces that are not written yet."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why traces cannot be written now, in one sentence; they wait meanwhile. None: they can."""
        ...

    def add(self, trace: Trace) -> None:
        """Queue `trace` for writing, without waiting; one with the same id is replaced.

        Raises:
            StoreError: the queue is full, because the database has been away for long.
        """
        ...

    async def get(self, prefix: str, owner: str | None = None) -> Trace:
        """The trace whose id is `prefix` or, if there is one alone, begins with it; of `owner` alone, if given.

        Raises:
            UnknownTraceError: there is none, or not for this owner.
            UsageError: there are several.
            StoreError: the database cannot be read.
        """
        ...

    async def page(self, filters: Filters, cursor: str | None = None, limit: int = 50) -> Page:
        """At most `limit` traces from `cursor` on, of those that pass. What is added meanwhile moves no page.

        Raises:
            UsageError: the cursor is not one of ours, or the limit is not from 1 to 200.
            StoreError: as `get`.
        """
        ...

    async def newest(self, count: int) -> tuple[Trace, ...]:
        """The newest traces, whole."""
        ...

    async def delete(self, id: str, owner: str | None = None) -> bool:
        """Take away the trace with exactly this id, of `owner` alone, if given. False: there is none."""
        ...

    def export(self, filters: Filters) -> AsyncIterator[str]:
        """The traces that pass, oldest first, each as one line of JSON without its end."""
        ...

    async def close(self) -> None:
        """Write what waits, then let go of the database. Calling twice is fine.

        Raises:
            StoreError: something could not be written; says where it lies now.
        """
        ...


def open_store(place: str | Path) -> Store:
    """The store at `place`: "postgresql://user:password@host/database", or a file, which is made if it is missing.

    Raises:
        UsageError: it cannot be opened; passwords are never repeated.
    """
    if "://" in str(place):
        from podium.trace.postgres import PostgresStore  # noqa: PLC0415 - the file needs none of it

        return PostgresStore(str(place))
    from podium.trace.sqlite_store import SqliteStore  # noqa: PLC0415

    return SqliteStore(Path(place).expanduser())
