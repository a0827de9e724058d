"""Answers questions without a waiting request: a queue of this process, and tasks that make the answers.

Any process on the same store can read, cancel and delete a question, since its state is in the store's
`background_table`. Its events are in logs of the process that answers it, where the other processes of the same server
read them. A question that has ended is an ordinary trace. The routes of each API open the questions.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal
from uuid import uuid4

from podium.errors import APIError, PodiumError, StoreError
from podium.server.api_errors import took_too_long
from podium.server.event_logs import EventLog, EventLogs
from podium.server.keys import Caller
from podium.server.prepared_question import PreparedQuestion
from podium.server.service import Service
from podium.store.background_table import SERVER_ENDED, BackgroundTable
from podium.team import Event, QuestionEnded
from podium.trace import Trace

_LOG = logging.getLogger("podium.server")
MAX_RUNNING = 64
"""The most questions that one process answers in the background at once. Further questions wait in a queue."""
_MAX_QUEUED = 1000
_HEARTBEAT_S = 2.0
"""Seconds between two heartbeats, which also look for cancelled questions."""
_SEARCH_S = 300.0
"""Seconds between two searches for questions whose server has ended."""
_CANCEL_S = 10.0
"""Seconds to wait until a question is recorded as cancelled. Another server may answer it."""
_POLL_S = 0.1
_CLEAN_UP_S = 5.0
"""Seconds for cancelled questions to be recorded at the end of the process."""
_KEPT_S = 3600.0
"""Seconds for which the events of an ended question are kept in the form of its API."""
_CANCELLED = "The response was cancelled."
_BUG = "The server has an internal error; its log says more."
_FULL_ID = re.compile("[0-9a-f]{32}")


class BackgroundQuestions:
    """The questions that this process answers in the background."""

    def __init__(self, service: Service) -> None:
        self.logs = EventLogs(service.peers, "background", kept_s=_KEPT_S)
        """The logs that `start` received."""
        self._service = service
        self._running: dict[str, _BackgroundQuestion] = {}
        self._table = BackgroundTable(service.store)
        self._holder = uuid4().hex
        self._slots = asyncio.Semaphore(MAX_RUNNING)
        self._heartbeats: asyncio.Task[None] | None = None
        self._store_failed = False
        """Whether the store has failed, so that it may have rows of questions that no task here answers."""
        self._searched_s = float("-inf")

    def open(self) -> None:
        """Start sending heartbeats."""
        self._heartbeats = asyncio.create_task(self._send_heartbeats(), name="background questions")

    async def close(self) -> None:
        """Cancel all questions and wait until they are recorded. Calling twice is fine."""
        tasks = set[asyncio.Task[None]]()
        for running in self._running.values():
            running.stop("cancel")
            if running.task is not None:
                tasks.add(running.task)
        if tasks:
            _, tasks = await asyncio.wait(tasks, timeout=_CLEAN_UP_S)
        if self._heartbeats is not None:
            tasks.add(self._heartbeats)
        # Their traces wait for the store, which is closed last by the code that opened it.
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.logs.close()

    async def start(
        self, question: PreparedQuestion, log: EventLog | None = None, *, streams: bool = False
    ) -> None:
        """Store a question and begin its answer. Returns once the question is stored. A further `log` has the events in
        the form of the question's API, for an hour after its end.

        Raises:
            APIError: 429, too many questions wait already; or 404, the plan that the question runs was run meanwhile.
            StoreError: the question cannot be stored, and is not answered.
        """
        if len(self._running) >= MAX_RUNNING + _MAX_QUEUED:
            problem = "Too many questions wait in the background; ask again when some of them have ended."
            raise APIError(429, "rate_limit_error", problem, headers={"Retry-After": "30"})
        lost, plans, approved = _trace_if_killed(question), self._service.plans, question.approved
        if approved is not None:
            await plans.take(approved.planned)
        # `_keep` stores the trace, unless the question was deleted meanwhile.
        question = replace(question, request=replace(question.request, keep=False), approved=None)
        logs: list[EventLog] = [question.begin_log()]
        if log is not None:
            self.logs.begin(lost.id, log)
            logs.append(log)
        running = self._running[lost.id] = _BackgroundQuestion(question, lost, tuple(logs), streams)
        try:
            await self._table.add(lost, self._holder)
        except BaseException:
            self._store_failed = True
            self._end(lost.id)
            if approved is not None:
                plans.add(approved.planned, keep=True)
            raise
        running.task = asyncio.create_task(self._run(running), name=f"background {lost.id}")

    async def has(self, id: str, caller: Caller) -> bool:
        """Whether a question of `caller` is still being answered, by this or another server."""
        if (running := self._running.get(id)) is not None:
            return caller.visible_owner in (None, running.lost.owner)
        return bool(_FULL_ID.fullmatch(id)) and await self._table.find(id, caller.visible_owner) is not None

    async def cancel(self, id: str) -> None:
        """Cancel a question of any server, and wait until that is recorded."""
        if (running := self._running.get(id)) is not None and running.task is not None:
            running.stop("cancel")
            await asyncio.wait({running.task}, timeout=_CANCEL_S)
            return
        await self._table.cancel(id)
        until = asyncio.get_running_loop().time() + _CANCEL_S
        while await self._table.find(id) is not None:
            if asyncio.get_running_loop().time() > until:
                return
            await asyncio.sleep(_POLL_S)

    async def delete(self, id: str) -> None:
        """Delete a question. The server that answers it stops."""
        await self._table.delete(id)
        if id in self._running:
            self._running[id].stop("drop")

    async def _run(self, running: _BackgroundQuestion) -> None:
        """Answer one question, and store its trace."""
        try:
            trace = await self._answer(running)
            running.finishing = True
            if await self._keep(trace, running.question.caller):
                running.append(QuestionEnded(trace))
        finally:
            self._end(running.lost.id)

    def _end(self, id: str) -> None:
        del self._running[id]
        self._service.event_logs.end(id)
        self.logs.end(id)

    async def _answer(self, running: _BackgroundQuestion) -> Trace:
        """The trace of a question, even if it failed, was cancelled, or took longer than the server's time limit.

        Raises:
            asyncio.CancelledError: the question was deleted.
        """
        ended: list[Trace] = []

        def record(event: Event) -> None:
            if isinstance(event, QuestionEnded):
                ended.append(event.trace)
            else:
                running.append(event)

        status: Literal["failed", "cancelled"] = "failed"
        seconds = self._service.settings.serve.timeout
        limit = asyncio.timeout(None)
        try:
            async with self._slots:
                await self._table.begin(running.lost.id)
                for log in running.logs:
                    log.begin()
                async with limit:
                    limit.reschedule(asyncio.get_running_loop().time() + seconds)
                    await running.question.answer(
                        on_event=record, streams=running.streams, in_background=True
                    )
        except asyncio.CancelledError:
            if running.stop_reason == "drop":
                raise
            status, why = "cancelled", _CANCELLED
        except PodiumError as error:
            why = str(error)
        except Exception as error:
            if isinstance(error, TimeoutError) and limit.expired():
                return _timed_out_trace(ended[-1] if ended else running.lost, seconds)
            _LOG.exception("The background question %s failed.", running.lost.id)
            why = _BUG
        return ended[-1] if ended else running.lost.model_copy(update={"status": status, "error": why})

    async def _keep(self, trace: Trace, caller: Caller) -> bool:
        """Store the trace of a question, then remove the question, so that nothing is lost if the process is killed.
        Returns False if the question was deleted, or given up for dead."""
        store = self._service.store
        try:
            if trace.id not in await self._table.heartbeat(self._holder):
                return False
            self._service.keep(trace, caller)
            await store.to_thread(store.flush)
            if not await self._table.end(trace.id, self._holder):
                await store.to_thread(store.delete, trace.id)  # The question was deleted a moment ago.
                return False
        except StoreError as error:
            # The answer is paid for, so its trace waits until the store works again.
            self._service.keep(trace, caller)
            self._store_failed = True
            _LOG.error("The background question %s has ended, which is not recorded yet: %s", trace.id, error)
        return True

    async def _send_heartbeats(self) -> None:
        """Send heartbeats, stop questions that other servers cancelled or deleted, and end questions of servers that
        ended."""
        failing = False
        while True:
            try:
                await self._sync_with_store()
                failing = False
            except StoreError as error:
                if not failing:
                    _LOG.error(
                        "Background questions cannot be recorded until the store works again: %s", error
                    )
                failing = True
            await asyncio.sleep(_HEARTBEAT_S)

    async def _sync_with_store(self) -> None:
        answering = [running for running in self._running.values() if running.task is not None]
        if answering or self._store_failed:
            mine = await self._table.heartbeat(self._holder)
            for running in answering:
                if running.lost.id not in mine:
                    running.stop("drop")
                elif mine[running.lost.id]:
                    running.stop("cancel")
            for id in mine:
                if id not in self._running:
                    await self._table.end(id, self._holder)
            self._store_failed = False
        now = asyncio.get_running_loop().time()
        if now > self._searched_s + _SEARCH_S:
            self._searched_s = now
            await self._table.end_lost()


@dataclass(slots=True, eq=False)
class _BackgroundQuestion:
    """One question that has not ended."""

    question: PreparedQuestion
    lost: Trace
    """The question's trace if this server is killed."""
    logs: tuple[EventLog, ...]
    streams: bool
    task: asyncio.Task[None] | None = None
    """The task that answers the question. None if the question is not stored yet."""
    stop_reason: Literal["cancel", "drop"] | None = None
    """Why the task was cancelled. "drop" means that the question was deleted. None if it was not cancelled."""
    finishing: bool = False
    """Whether the trace is being stored, so that it is too late to cancel the question."""

    def append(self, event: Event) -> None:
        """Add an event to the question's logs."""
        for log in self.logs:
            log.append(event)

    def stop(self, stop_reason: Literal["cancel", "drop"]) -> None:
        """Cancel the task only once, since a second cancellation would interrupt the clean-up of the first."""
        task = self.task
        if self.stop_reason is not None or task is None:
            return
        self.stop_reason = stop_reason

        def cancel() -> None:
            if not self.finishing:
                task.cancel()

        # The loop runs this after the task's first step, since a task that never began would store no trace.
        asyncio.get_running_loop().call_soon(cancel)


def _timed_out_trace(trace: Trace, seconds: float) -> Trace:
    """The trace of a question that the server's time limit ended. Its steps have what was answered so far."""
    error = took_too_long(seconds, "failed").message
    ended = {"status": "failed", "error": error, "error_kind": "timeout", "answer": None}
    return trace.model_copy(update=ended)


def _trace_if_killed(question: PreparedQuestion) -> Trace:
    """The trace that a question gets if its server is killed."""
    request, runner = question.request, question.runner
    return Trace(
        id=question.trace_id,
        question=request.question,
        pool=runner.pool.profiles,
        planner=runner.planner.name,
        seed=request.seed,
        budget=runner.budget,
        max_steps=runner.max_steps,
        layout=runner.settings.layout,
        early_stop=runner.settings.early_stop,
        rounds=() if question.approved is None else question.approved.planned.rounds,
        status="failed",
        error=SERVER_ENDED,
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        seconds=0.0,
        versions=runner.versions,
        owner=question.caller.name,
        user=request.user,
        metadata=request.metadata,
    )
