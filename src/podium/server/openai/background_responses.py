"""Makes responses in the background: begins them, takes over those of servers that ended, cancels them, leaves them.

Each server has a lease on the responses that it makes, and renews it. A server that ends hands its responses back; if
it is killed, its leases run out. Then any server on the same store takes the response and makes the rest of it: no plan
and no step that ended is paid for twice (`background_journal`). A finished response is a trace, like any other.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Literal
from uuid import uuid4

from podium.errors import LostLeaseError, PodiumError, StoreError, UsageError
from podium.server.keys import ANONYMOUS, Caller
from podium.server.openai.background_journal import (
    BackgroundRequest,
    ResponseJournal,
    is_readable,
    read_past,
    unfinished_trace,
)
from podium.server.service import Service
from podium.team import Runner
from podium.trace import Trace
from podium.trace.background_table import BackgroundRow, BackgroundTable

_LOG = logging.getLogger("podium.server")
MAX_RUNNING = 64
"""Responses that one server makes at a time; further ones are queued."""
_TICK_S = 2.0
"""Seconds between two looks for responses to take, and for wishes to cancel; less, if the lease is short."""
_SWEEP_S = 300.0
_CANCEL_S = 10.0
"""Seconds to wait until a response is recorded as cancelled. Another server may have it."""
_POLL_S = 0.1
_MAX_TRIES = 5
"""If this many servers ended during the same call, the response fails: the call may be what ends them."""
_CANCELLED = "The response was cancelled."
_UNREADABLE = (
    "What was kept of this response is damaged or was written by another version of Podium, so the response cannot "
    "go on: ask again."
)
_BUG = "The server has an internal error; its log says more."


@dataclass(slots=True)
class _Run:
    """One response that this server makes."""

    task: asyncio.Task[None] | None = None
    journal: ResponseJournal | None = None
    wish: Literal["cancel", "leave", "drop"] | None = None
    """Why the task was cancelled. "leave": another server goes on; "drop": the response is no longer this server's."""
    finishing: bool = False

    def end(self, wish: Literal["cancel", "leave", "drop"]) -> None:
        """Cancel the task, only once: a second cancellation would interrupt the clean-up of the first."""
        if self.wish is None and not self.finishing and self.task is not None:
            self.wish = wish
            if self.journal is not None:
                self.journal.handed_over = wish != "cancel"
            self.task.cancel()


class BackgroundResponses:
    """The responses that this server makes in the background.

    Args:
        service: answers the questions.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lease_s = service.settings.serve.lease
        self._holder = uuid4().hex
        self._runs: dict[str, _Run] = {}
        self._stopping = False
        self._poked = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._trouble = False
        self._given_up = False
        """Whether the store failed while this server made a response. That response still has a lease, but no task."""
        self._unwanted: dict[str, float] = {}
        """Responses whose clients were told that they are not kept, though the database may have them; until when, on
        the event loop's clock, they are looked for."""
        self._swept_s = 0.0

    @property
    def running(self) -> frozenset[str]:
        """The ids of the responses that this server makes."""
        return frozenset(self._runs)

    @property
    def table(self) -> BackgroundTable:
        """Where they are kept."""
        return BackgroundTable(self._service.store.rows)

    def open(self) -> None:
        """Begin to take responses that no server makes."""
        self._watching = asyncio.create_task(self._watch(), name="background responses")

    def pause(self) -> None:
        """Begin no further call. A response is handed back as soon as none of its calls is in flight."""
        self._stopping = True
        for run in self._runs.values():
            if run.journal is None:
                run.end("leave")
            else:
                run.journal.stop(lambda run=run: run.end("leave"))  # type: ignore[misc]

    async def close(self) -> None:
        """Hand back every response; calls that are still in flight are cancelled. Calling twice is fine."""
        self.pause()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        try:
            await self._delete_unwanted()
        except StoreError as error:
            _LOG.error("The response of a request that failed may be made by another server: %s", error)
        for run in self._runs.values():
            run.end("leave")
        await asyncio.gather(*(run.task for run in self._runs.values() if run.task), return_exceptions=True)

    async def start(self, id: str, kept: BackgroundRequest, caller: Caller, runner: Runner) -> BackgroundRow:
        """Keep a request, and make its response here if there is room. Returns once it is kept.

        Raises:
            StoreError: it cannot be kept. If the database has it nevertheless, this server deletes it before it takes
                a response.
        """
        here = len(self._runs) < MAX_RUNNING and not self._stopping
        if here:
            self._runs[id] = _Run()
        try:
            row = await self.table.add(
                id,
                owner=caller.name,
                caller=caller.id,
                document=kept.write(),
                holder=self._holder if here else "",
                lease_s=self._lease_s,  # Nobody makes it before it is known to be kept.
            )
            if not here:
                await self.table.release(id, "")
        except BaseException:
            self._runs.pop(id, None)
            self._unwanted[id] = asyncio.get_running_loop().time() + self._lease_s
            self._poked.set()
            raise
        if here:
            self._begin(row, runner)
        return row

    async def cancel(self, id: str) -> BackgroundRow | None:
        """Cancel a response, at whichever server. Returns its row once that is recorded; None: it was deleted."""
        await self.table.cancel(id)
        if id in self._runs:
            self._runs[id].end("cancel")
        self._poked.set()
        until = asyncio.get_running_loop().time() + _CANCEL_S
        while True:
            row = await self.table.find(id)
            if row is None or row.ended is not None or asyncio.get_running_loop().time() > until:
                return row
            await asyncio.sleep(_POLL_S)

    async def delete(self, id: str) -> None:
        """Delete a response; the server that makes it stops."""
        await self.table.delete(id)
        if id in self._runs:
            self._runs[id].end("drop")

    async def changed(self, id: str) -> bool:
        """Wait a moment, or until there is news of the response. False: this server shuts down and makes it no more."""
        run = self._runs.get(id)
        if self._stopping and run is None:
            return False
        if run is None or run.journal is None:
            await asyncio.sleep(_POLL_S)
            return True
        try:
            async with asyncio.timeout(10 * _POLL_S):
                await run.journal.changed.wait()
        except TimeoutError:
            pass
        return True

    def _begin(self, row: BackgroundRow, runner: Runner | None = None) -> None:
        run = self._runs.setdefault(row.id, _Run())
        run.task = asyncio.create_task(self._make(run, row, runner), name=f"response {row.id}")

    async def _make(self, run: _Run, row: BackgroundRow, runner: Runner | None) -> None:
        """Make one response, as far as this server can."""
        try:
            trace = await self._answer(run, row, runner)
            run.finishing = True
            await self._finish(row, trace)
        except asyncio.CancelledError:
            if run.wish != "drop":  # A response that is to be cancelled is taken again, and ends then.
                await self._leave(run, row)
        except LostLeaseError:
            pass
        except StoreError as error:
            # It is handed back once that is possible; what ended is kept.
            _LOG.error("The response %s waits until the store works again: %s", row.id, error)
            self._given_up = True
        finally:
            del self._runs[row.id]
            self._poked.set()

    async def _answer(self, run: _Run, row: BackgroundRow, runner: Runner | None) -> Trace:
        """The trace of a response, also of one that failed or was cancelled.

        Raises:
            StoreError: the journal cannot be written.
            asyncio.CancelledError: this server is to stop making it.
        """
        kept = BackgroundRequest.read(row)
        entries = await self.table.entries(row.id)
        if row.cancelled:
            return unfinished_trace(row, kept, entries, "cancelled", _CANCELLED)
        if not is_readable(row, entries):
            return unfinished_trace(row, kept, entries, "failed", _UNREADABLE)
        try:
            caller = await self._caller(row)
            runner = runner or await self._service.open_runner(kept.request, caller)
            names = runner.pool.names
            journal = run.journal = ResponseJournal(
                self.table,
                row,
                read_past(row, entries, names),
                len(entries),
                names,
                patience_s=self._lease_s,
            )
            if self._stopping:
                run.wish = "leave"
                raise asyncio.CancelledError
            tries = (*map(len, journal.past.interrupted.values()), *journal.past.lost_plans.values())
            if max(tries, default=0) >= _MAX_TRIES:
                raise UsageError(f"Its server ended {_MAX_TRIES} times during the same call: ask again.")
            await self._service.answer(
                replace(
                    kept.request, keep=False
                ),  # `_finish` keeps the trace, if this server still has the response.
                caller,
                trace_id=row.id,
                runner=runner,
                on_event=journal.observe,
                journal=journal,
            )
        except asyncio.CancelledError:
            if run.wish != "cancel":
                raise
            if run.journal is None or run.journal.trace is None:
                return unfinished_trace(row, kept, entries, "cancelled", _CANCELLED)
        except Exception as error:
            if isinstance(error, LostLeaseError) or (run.journal is not None and run.journal.failed):
                raise
            why = str(error)
            if not isinstance(error, PodiumError):  # A bug: another try would meet it again, and pay again.
                _LOG.exception("The response %s failed.", row.id)
                why = _BUG
            if run.journal is None or run.journal.trace is None:
                if run.journal is not None:
                    await run.journal.wait_until_written()
                    entries = await self.table.entries(row.id)
                return unfinished_trace(row, kept, entries, "failed", why)
        assert run.journal is not None
        assert run.journal.trace is not None
        await run.journal.wait_until_written()
        return run.journal.trace

    async def _caller(self, row: BackgroundRow) -> Caller:
        """Who asked, with what the key may do today."""
        if row.caller is None:
            return ANONYMOUS
        caller = await self._service.keys.find(row.caller)
        if caller is None:
            raise UsageError(f"The key {row.owner!r} that asked was removed: ask again with another.")
        return caller

    async def _finish(self, row: BackgroundRow, trace: Trace) -> None:
        """Keep the trace, then mark the response as finished. A kill between the two costs nothing."""
        store = self._service.store
        if row.id not in await self.table.renew(self._holder, self._lease_s):
            return
        store.add(trace)
        await store.wait_until_flushed()
        if not await self.table.end(row.id, self._holder) and await self.table.find(row.id) is None:
            await store.delete(row.id)  # It was deleted a moment ago.

    async def _leave(self, run: _Run, row: BackgroundRow) -> None:
        try:
            if run.journal is not None:
                await run.journal.wait_until_written()
            await self.table.release(row.id, self._holder)
        except StoreError as error:
            _LOG.error("The response %s is taken over only when its lease ends: %s", row.id, error)

    async def _watch(self) -> None:
        """Renew the leases, and take responses that no server makes."""
        while True:
            self._poked.clear()
            try:
                await self._tick()
                self._trouble = False
            except StoreError as error:
                if not self._trouble:
                    _LOG.error("Background responses wait until the store works again: %s", error)
                self._trouble = True
            try:
                async with asyncio.timeout(min(_TICK_S, self._lease_s / 3)):
                    await self._poked.wait()
            except TimeoutError:
                pass

    async def _delete_unwanted(self) -> None:
        for id_, until in tuple(self._unwanted.items()):
            await self.table.delete(id_)
            if asyncio.get_running_loop().time() > until:
                del self._unwanted[id_]

    async def _tick(self) -> None:
        await self._delete_unwanted()
        runs = dict(self._runs)
        if runs or self._given_up:
            mine = await self.table.renew(self._holder, self._lease_s)
            for id_, run in runs.items():
                if id_ not in mine:
                    run.end("drop")
                elif mine[id_]:
                    run.end("cancel")
            for id_ in mine.keys() - self._runs.keys():
                await self.table.release(id_, self._holder)
            self._given_up = False
        now = asyncio.get_running_loop().time()
        if now > self._swept_s + _SWEEP_S:
            self._swept_s = now
            await self.table.sweep()
        while not self._stopping and len(self._runs) < MAX_RUNNING:
            row = await self.table.take(self._holder, self._lease_s)
            if row is None:
                return
            if row.id not in self._runs:
                self._begin(row)
