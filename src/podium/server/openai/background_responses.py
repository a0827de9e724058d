"""Makes responses in the background: as tasks of the process that took them, each with a log of its events.

Any process on the same store can read, cancel and delete a response, since its state is in
`podium.trace.background_table`. Its events are in the memory of its process; the other processes of the same server
read them there. A finished response is a trace, like any other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Literal
from uuid import uuid4

from podium.errors import APIError, PodiumError, StoreError
from podium.server.answers import from_trace, no_answer_error
from podium.server.api_errors import invalid
from podium.server.keys import Caller
from podium.server.openai.responses_body import BACKGROUND_KEY, EchoedFields
from podium.server.openai.responses_reply import ResponseFrame, ResponseWriter
from podium.server.opened_question import OpenedQuestion
from podium.server.service import Service
from podium.server.streaming import COMMENT, EventStream, Write
from podium.team import Event, QuestionEnded
from podium.trace import Trace
from podium.trace.background_table import SERVER_ENDED, BackgroundTable

_LOG = logging.getLogger("podium.server")
MAX_RUNNING = 64
"""Responses that one process makes at a time; further ones are queued."""
_MAX_QUEUED = 1000
_BEAT_S = 2.0
"""Seconds between two signs of life, and looks for wishes to cancel."""
_SWEEP_S = 300.0
"""Seconds between two looks for responses whose server ended."""
_CANCEL_S = 10.0
"""Seconds to wait until a response is recorded as cancelled. Another server may make it."""
_POLL_S = 0.1
_CLEAN_UP_S = 5.0
"""Seconds for cancelled responses to be recorded at the end of the process."""
_KEPT_S = 3600.0
"""Seconds for which the events of a finished response are kept."""
_MAX_KEPT = 500
_CANCELLED = "The response was cancelled."
_BUG = "The server has an internal error; its log says more."


class BackgroundResponses:
    """The responses that this process makes in the background.

    Args:
        service: answers the questions.
    """

    def __init__(self, service: Service) -> None:
        self.running: dict[str, asyncio.Task[object]] = {}
        """The tasks that make responses, by trace id."""
        self._service = service
        self._table = BackgroundTable(service.store)
        self._holder = uuid4().hex
        self._responses: dict[str, _Response] = {}
        """The responses that this process makes, or that ended less than an hour ago, the oldest first."""
        self._turns = asyncio.Semaphore(MAX_RUNNING)
        self._beating: asyncio.Task[None] | None = None
        self._trouble = False
        """Whether the store failed, so that it may have rows of responses that nothing here makes."""
        self._swept_s = float("-inf")
        if service.peers is not None:
            service.peers.answers["response"] = self._answer_events

    def open(self) -> None:
        """Begin to give signs of life."""
        self._beating = asyncio.create_task(self._beat(), name="background responses")

    async def close(self) -> None:
        """Cancel all responses and wait until they are recorded. Calling twice is fine."""
        for response in self._responses.values():
            response.stop("cancel")
        tasks = set(self.running.values())
        if tasks:
            _, tasks = await asyncio.wait(tasks, timeout=_CLEAN_UP_S)
        if self._beating is not None:
            tasks.add(self._beating)
        for task in tasks:  # Their traces wait for the store, which the code that opened it closes last.
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def start(self, question: OpenedQuestion, frame: ResponseFrame) -> ResponseFrame:
        """Keep a request and begin its response. Returns once it is kept, with the frame of the response.

        Raises:
            APIError: 429, too many responses wait already.
            StoreError: it cannot be kept, and is not made.
        """
        if len(self.running) >= MAX_RUNNING + _MAX_QUEUED:
            problem = "Too many responses wait in the background; ask again when some of them have ended."
            raise APIError(429, "rate_limit_error", problem, headers={"Retry-After": "30"})
        echo = {**frame.echo, "background": True}
        repeated = EchoedFields(created=frame.created, model=frame.model, previous=frame.previous, echo=echo)
        metadata = {**frame.metadata, BACKGROUND_KEY: repeated.model_dump_json()}
        # `_keep` keeps the trace, if the response was not deleted meanwhile.
        question = replace(question, request=replace(question.request, metadata=metadata, keep=False))
        frame, lost = replace(frame, echo=echo), _lost_trace(question)
        writer = ResponseWriter(frame, question.runner.pool.profiles, direct=question.direct)
        response = self._responses[lost.id] = _Response(lost.owner)
        response.add(writer.queue())
        try:
            await self._table.add(lost, self._holder)
        except BaseException:
            del self._responses[lost.id]
            self._trouble = True
            raise
        task = asyncio.create_task(self._make(response, writer, question, lost), name=f"response {lost.id}")
        response.task = self.running[lost.id] = task
        return frame

    async def cancel(self, id: str) -> None:
        """Cancel a response, at whichever server, and wait until that is recorded."""
        await self._table.cancel(id)
        if id in self._responses:
            self._responses[id].stop("cancel")
        until = asyncio.get_running_loop().time() + _CANCEL_S
        while await self._table.find(id) is not None:
            if asyncio.get_running_loop().time() > until:
                return
            await asyncio.sleep(_POLL_S)

    async def delete(self, id: str) -> None:
        """Delete a response; the server that makes it stops."""
        await self._table.delete(id)
        if id in self._responses:
            self._responses[id].stop("drop")

    def stream(
        self,
        id: str,
        caller: Caller,
        *,
        after: int = -1,
        headers: Mapping[str, str] = MappingProxyType({}),
        seconds: float | None = None,
    ) -> EventStream:
        """The reply that streams the events of a response.

        Args:
            after: the number of the last event that the client has.
            seconds: when the stream ends at the latest; None: with the response.
        """

        async def produce(write: Write) -> None:
            found = False
            try:
                async with asyncio.timeout(seconds), aclosing(self._events(id, caller, after)) as pieces:
                    async for piece in pieces:
                        found = True
                        await write(piece)
            except TimeoutError:
                return
            if not found:
                raise invalid(
                    "stream: only a response in the background has events, at the server that makes it, until an hour "
                    "after its end; read it without stream.",
                    "stream",
                )

        return EventStream(produce, headers)

    async def _events(self, id: str, caller: Caller, after: int) -> AsyncGenerator[bytes]:
        """The events after number `after`, also of a response of another process; none if no process has any."""
        response, peers = self._responses.get(id), self._service.peers
        if response is not None:
            async for event in response.events(after):
                yield event
        elif peers is not None:
            owner = caller.visible_owner
            async with aclosing(peers.stream("response", id=id, owner=owner, after=after)) as pieces:
                async for piece in pieces:
                    yield piece

    async def _answer_events(self, arguments: dict[str, Any], write: Write) -> None:
        """Send the events of a response to another process."""
        response = self._responses.get(arguments["id"])
        if response is not None and arguments["owner"] in (None, response.owner):
            async for event in response.events(arguments["after"]):
                await write(event)

    async def _make(
        self, response: _Response, writer: ResponseWriter, question: OpenedQuestion, lost: Trace
    ) -> None:
        """Make one response, and keep what it became."""
        try:
            trace = await self._answer(response, writer, question, lost)
            response.finishing = True
            if await self._keep(trace, question.caller):
                response.add(_last_events(trace, writer, question.request.ignored))
        finally:
            del self.running[lost.id]
            response.end()

    async def _answer(
        self, response: _Response, writer: ResponseWriter, question: OpenedQuestion, lost: Trace
    ) -> Trace:
        """The trace of a response, also of one that failed or was cancelled.

        Raises:
            asyncio.CancelledError: it was deleted.
        """
        ended: list[Trace] = []

        def observe(event: Event) -> None:
            if isinstance(event, QuestionEnded):
                ended.append(event.trace)
            else:
                response.add(writer.for_event(event))

        status: Literal["failed", "cancelled"] = "failed"
        try:
            async with self._turns:
                await self._table.begin(lost.id)
                response.add(writer.begin())
                await question.answer(on_event=observe)
        except asyncio.CancelledError:
            if response.wish == "drop":
                raise
            status, why = "cancelled", _CANCELLED
        except PodiumError as error:
            why = str(error)
        except Exception:
            _LOG.exception("The response %s failed.", lost.id)
            why = _BUG
        return ended[-1] if ended else lost.model_copy(update={"status": status, "error": why})

    async def _keep(self, trace: Trace, caller: Caller) -> bool:
        """Keep the trace of a response, then take the response out. False: it was deleted, or taken for dead.

        A kill between the two costs nothing.
        """
        store = self._service.store
        try:
            if trace.id not in await self._table.beat(self._holder):
                return False
            self._service.keep(trace, caller)
            await store.wait_until_flushed()
            if not await self._table.end(trace.id, self._holder):
                await store.delete(trace.id)  # It was deleted a moment ago.
                return False
        except StoreError as error:
            # Its answer is paid for, and waits until the store works again.
            self._service.keep(trace, caller)
            self._trouble = True
            _LOG.error("The response %s has ended, which is not recorded yet: %s", trace.id, error)
        return True

    async def _beat(self) -> None:
        """Give signs of life, stop what other servers cancelled or deleted, and end what servers left that ended."""
        failing = False
        while True:
            try:
                await self._sync_with_store()
                failing = False
            except StoreError as error:
                if not failing:
                    _LOG.error(
                        "Background responses cannot be recorded until the store works again: %s", error
                    )
                failing = True
            await asyncio.sleep(_BEAT_S)

    async def _sync_with_store(self) -> None:
        here = tuple(self.running)
        if here or self._trouble:
            mine = await self._table.beat(self._holder)
            for id in here:
                if id not in mine:
                    self._responses[id].stop("drop")
                elif mine[id]:
                    self._responses[id].stop("cancel")
            for id in mine:
                if id not in self._responses or self._responses[id].ended_s is not None:
                    await self._table.end(id, self._holder)
            self._trouble = False
        now = asyncio.get_running_loop().time()
        if now > self._swept_s + _SWEEP_S:
            self._swept_s = now
            await self._table.end_lost()
        ended = [(id, each.ended_s) for id, each in self._responses.items() if each.ended_s is not None]
        for number, (id, ended_s) in enumerate(ended):
            if now > ended_s + _KEPT_S or number < len(ended) - _MAX_KEPT:
                del self._responses[id]


class _Response:
    """One response: the task that makes it, and its events so far. What is kept after its end has no question."""

    def __init__(self, owner: str | None) -> None:
        self.owner = owner
        self.task: asyncio.Task[None] | None = None
        self.wish: Literal["cancel", "drop"] | None = None
        """Why the task was cancelled. "drop": the response was deleted."""
        self.finishing = False
        """Whether its trace is being kept, so that it is too late to cancel it."""
        self.ended_s: float | None = None
        """When it ended, on the event loop's clock."""
        self._events: list[bytes] = []
        self._changed = asyncio.Event()

    def stop(self, wish: Literal["cancel", "drop"]) -> None:
        """Cancel the task, only once: a second cancellation would interrupt the clean-up of the first."""
        task = self.task
        if self.wish is not None or task is None:
            return
        self.wish = wish

        def cancel() -> None:
            if not self.finishing:
                task.cancel()

        # The loop runs this after the task's first step: one that never began would keep no trace.
        asyncio.get_running_loop().call_soon(cancel)

    def add(self, content: bytes) -> None:
        """Add the events in `content`."""
        self._events += [event + b"\n\n" for event in content.split(b"\n\n") if event]
        self._wake()

    def end(self) -> None:
        """End the events."""
        self.ended_s = asyncio.get_running_loop().time()
        self._wake()

    async def events(self, after: int) -> AsyncIterator[bytes]:
        """A sign of life, the events after number `after`, and those that follow, until the last."""
        yield COMMENT
        number = after + 1
        while True:
            changed = self._changed
            for event in self._events[number:]:
                number += 1
                yield event
            if self.ended_s is not None and number >= len(self._events):
                return
            await changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _lost_trace(question: OpenedQuestion) -> Trace:
    """The trace of a response whose server is killed."""
    request, runner = question.request, question.runner
    return Trace(
        id=question.ids[0],
        question=request.question,
        pool=runner.pool.profiles,
        planner=runner.planner.name,
        seed=request.seed,
        budget=runner.budget,
        max_steps=runner.max_steps,
        context=runner.settings.style,
        early_stop=runner.settings.early_stop,
        status="failed",
        error=SERVER_ENDED,
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        seconds=0.0,
        versions=runner.versions,
        owner=question.caller.name,
        user=request.user,
        metadata=request.metadata,
    )


def _last_events(trace: Trace, writer: ResponseWriter, ignored: tuple[str, ...]) -> bytes:
    error = no_answer_error(trace)
    if trace.status == "cancelled":
        return writer.cancel()
    return writer.end(from_trace(trace, ignored)) if error is None else writer.fail(error)
