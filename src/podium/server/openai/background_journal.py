"""What is kept of a response that is made in the background: its request, and each plan and step as it ends.

A server that takes over a response reads all of it, and makes only the rest. `podium.trace.background_table` keeps it,
`background_responses` decides who makes a response, `background_stream` makes a client's events of it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from podium.errors import LostLeaseError, StoreError, UsageError
from podium.executor import StepEnded, StepStarted
from podium.planner import round_trace
from podium.server.openai.responses_body import BACKGROUND_KEY
from podium.server.openai.responses_reply import ResponseFrame
from podium.server.requests import ChatRequest
from podium.team import Event, Past, PlanReady, QuestionEnded
from podium.team.journal import LOST
from podium.trace import Attempt, Span, Trace, TraceStatus
from podium.trace.background_table import BackgroundRow, BackgroundTable, EventRow
from podium.trace.serialization import clean
from podium.types import Profile, Question
from podium.workflow import Acceptance, Workflow

T = TypeVar("T")
_RETRY_S = 0.5
_LOST = "The server ended while this call was in flight. It may have been paid for, and was made again."


@dataclass(frozen=True, slots=True)
class BackgroundRequest:
    """A request for a response, ready to run: earlier responses that it continues are part of its question."""

    request: ChatRequest
    previous: str | None
    """The response that it continues."""
    echo: dict[str, Any]
    """Further fields of the body that the response repeats."""

    @classmethod
    def of(cls, request: ChatRequest, previous: str | None, echo: dict[str, Any]) -> BackgroundRequest:
        """The request, whose trace will say what the response repeats of it."""
        again = {"model": request.model, "previous": previous, "echo": echo}
        metadata = {**request.metadata, BACKGROUND_KEY: json.dumps(again)}
        return cls(replace(request, metadata=metadata), previous, echo)

    def frame(self, row: BackgroundRow) -> ResponseFrame:
        """The fields of the response that repeat the request."""
        return ResponseFrame(
            trace_id=row.id,
            created=int(row.created),
            model=self.request.model,
            question=self.request.question,
            metadata=self.request.metadata,
            user=self.request.user,
            store=True,
            previous=self.previous,
            echo=self.echo,
        )

    def write(self) -> str:
        """As JSON."""
        return _write(_REQUEST, self)

    @classmethod
    def read(cls, row: BackgroundRow) -> BackgroundRequest:
        """The request of a response; an empty one if it cannot be read (see `is_readable`)."""
        try:
            return _REQUEST.validate_json(row.document)
        except ValidationError:
            return cls.of(ChatRequest(Question(text="")), None, {"background": True})


@dataclass(frozen=True, slots=True)
class _Began:
    """A call began: of a step, or of the planner (position None)."""

    round: int
    position: int | None
    at_s: float
    """Seconds since the question began."""


@dataclass(frozen=True, slots=True)
class _Planned:
    """A plan, and the names of the workers that its numbers stood for."""

    ready: PlanReady
    workers: tuple[str, ...]

    def renumbered(self, names: Sequence[str]) -> PlanReady:
        """The plan with the numbers that its workers have among `names`.

        Raises:
            UsageError: a worker of the plan is not among them.
        """
        plan = self.ready.plan
        if not isinstance(plan.decision, Workflow):
            return self.ready
        steps = []
        for step in plan.decision.steps:
            name = self.workers[step.worker]
            if name not in names:
                raise UsageError(
                    f"The worker {name!r} of its plan is no longer among those that it may use, so the response cannot "
                    "go on: ask again."
                )
            steps.append(replace(step, worker=list(names).index(name)))
        return replace(self.ready, plan=replace(plan, decision=Workflow(tuple(steps))))


_REQUEST = TypeAdapter(BackgroundRequest)
_BEGAN, _PLANNED, _STEP = TypeAdapter(_Began), TypeAdapter(_Planned), TypeAdapter(StepEnded)
_READERS: Mapping[str, TypeAdapter[Any]] = {"began": _BEGAN, "plan": _PLANNED, "step": _STEP}


class ResponseJournal:
    """The journal of one response that this server makes (a `podium.team.Journal`).

    Args:
        row: the response; `holder` is this server.
        past: what other servers have done of it.
        number: that of the next entry.
        workers: the names of the pool's workers, in order.
        patience_s: seconds for which an entry that cannot be written is tried again.
    """

    def __init__(
        self,
        table: BackgroundTable,
        row: BackgroundRow,
        past: Past,
        number: int,
        workers: tuple[str, ...],
        *,
        patience_s: float,
    ) -> None:
        self.past = past
        self.trace: Trace | None = None
        """The trace, once the question has ended."""
        self.handed_over = False
        """See `podium.team.journal.Journal`."""
        self.failed = False
        """Whether the store could not be written for long, so that the response has to wait."""
        self.changed = asyncio.Event()
        """Set, and replaced by a new one, when an entry was written."""
        self._table = table
        self._row = row
        self._number = number
        self._workers = workers
        self._patience_s = patience_s
        self._pending: deque[EventRow] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._open: set[tuple[int, int | None]] = set()
        self._on_quiet: Callable[[], None] | None = None
        self._blocked = False

    def stop(self, on_quiet: Callable[[], None]) -> None:
        """Let no further call begin. Once a call would begin and none is in flight, `on_quiet` is called."""
        self._on_quiet = on_quiet

    async def begin(self, round: int, position: int | None) -> None:
        """See `CallJournal.begin`."""
        if self._on_quiet is not None:
            self._blocked = True
            self._leave_if_quiet()
            await asyncio.Event().wait()
        self._open.add((round, position))
        self._note("began", _BEGAN, _Began(round, position, max(0.0, time.time() - self._row.created)))
        await self.wait_until_written()

    def observe(self, event: Event) -> None:
        """Keep an event of the question, if it is not known already."""
        match event:
            case PlanReady(round=number) if number not in self.past.plans:
                self._note("plan", _PLANNED, _Planned(event, self._workers))
                self._open.discard((number, None))
            case StepEnded(round=number, span=span) if (number, span.position) not in self.past.spans:
                self._note("step", _STEP, event)
                self._open.discard((number, span.position))
                self._leave_if_quiet()
            case QuestionEnded(trace=trace):
                self.trace = trace

    async def wait_until_written(self) -> None:
        """See `CallJournal.written`."""
        while self._pending:
            if self._writing is None or self._writing.done():
                self._writing = asyncio.create_task(self._write_pending())
            await asyncio.shield(self._writing)

    def _note(self, kind: str, adapter: TypeAdapter[T], value: T) -> None:
        self._pending.append(EventRow(self._number, kind, _write(adapter, value)))
        self._number += 1

    def _leave_if_quiet(self) -> None:
        if self._on_quiet is not None and self._blocked and not self._open:
            self._on_quiet()

    async def _write_pending(self) -> None:
        until = time.monotonic() + self._patience_s
        while self._pending:
            try:
                await self._table.append(self._row.id, self._row.holder, self._pending[0])
            except StoreError as error:
                self.failed = error.retryable and time.monotonic() > until
                self.handed_over = self.failed or isinstance(error, LostLeaseError)
                if self.failed or not error.retryable:
                    raise
                await asyncio.sleep(_RETRY_S)
            else:
                self._pending.popleft()
                self.changed.set()
                self.changed = asyncio.Event()


def is_readable(row: BackgroundRow, entries: Sequence[EventRow]) -> bool:
    """Whether a server can go on with the response. Not if something of it is damaged, or of another Podium's form."""
    try:
        _REQUEST.validate_json(row.document)
    except ValidationError:
        return False
    return len(list(_values(entries))) == len(entries)


def read_past(row: BackgroundRow, entries: Sequence[EventRow], names: Sequence[str] | None = None) -> Past:
    """What the entries say of a response.

    Args:
        names: the workers by whose places plans number them; None: those of `worker_names`.

    Raises:
        UsageError: a plan has a worker that is not among `names`.
    """
    names = worker_names(entries) if names is None else names
    plans: dict[int, PlanReady] = {}
    spans: dict[tuple[int, int], Span] = {}
    tries: dict[tuple[int, int], tuple[Attempt, ...]] = {}
    open_: dict[tuple[int, int | None], _Began] = {}
    lost_plans: Counter[int] = Counter()

    def lose(began: _Began) -> None:
        if began.position is None:
            lost_plans[began.round] += 1
            return
        workflow = plans[began.round].plan.decision
        assert isinstance(workflow, Workflow)
        worker = names[workflow.steps[began.position].worker]
        attempt = Attempt(
            worker=worker, started_s=began.at_s, ended_s=began.at_s, error_kind=LOST, error=_LOST
        )
        place = (began.round, began.position)
        tries[place] = (*tries.get(place, ()), attempt)

    for value in _values(entries):
        match value:
            case _Began(round=number, position=position):
                if (number, position) in open_:
                    lose(open_[number, position])
                open_[number, position] = value
            case _Planned(ready=ready):
                plans[ready.round] = value.renumbered(names)
                open_.pop((ready.round, None), None)
            case StepEnded(round=number, span=span):
                place = (number, span.position)
                open_.pop(place, None)
                if (
                    span.status == "cancelled"
                ):  # Its server was shutting down. Its attempts are those before, too.
                    tries[place] = span.attempts
                else:
                    spans[place] = span
    for began in open_.values():
        lose(began)
    started = datetime.fromtimestamp(row.created, UTC).isoformat(timespec="milliseconds")
    elapsed_s = max(0.0, time.time() - row.created)
    return Past(started, elapsed_s, plans, spans, tries, lost_plans)


def read_events(
    entries: Sequence[EventRow], names: list[str], plans: dict[int, PlanReady]
) -> Iterator[Event]:
    """The events that the entries stand for.

    Args:
        names: the workers by whose places the events number them; those of further plans are appended.
        plans: the plans so far, by round; those of the entries are added.
    """
    for value in _values(entries):
        match value:
            case _Planned(ready=ready):
                names += [name for name in value.workers if name not in names]
                plans[ready.round] = value.renumbered(names)
                yield plans[ready.round]
            case _Began(round=number, position=int() as position):
                workflow = plans[number].plan.decision
                assert isinstance(workflow, Workflow)
                step = workflow.steps[position]
                yield StepStarted(number, position, names[step.worker], step.subtask)
            case StepEnded(span=span) if span.status != "cancelled":
                yield value


def worker_names(entries: Sequence[EventRow]) -> list[str]:
    """The names of all workers that the plans could have named."""
    planned = (value for value in _values(entries) if isinstance(value, _Planned))
    return list(dict.fromkeys(name for plan in planned for name in plan.workers))


def unfinished_trace(
    row: BackgroundRow, kept: BackgroundRequest, entries: Sequence[EventRow], status: TraceStatus, error: str
) -> Trace:
    """The trace of a response for which the runner made none, from what was kept of it."""
    past, request = read_past(row, entries), kept.request
    names = worker_names(entries)
    rounds = []
    for number, ready in sorted(past.plans.items()):
        plan = ready.plan
        workflow = plan.decision if isinstance(plan.decision, Workflow) else None
        spans = () if workflow is None else _spans(past, number, workflow, names)
        done = [span.response for span in spans if span.status == "done"]
        rounds.append(
            round_trace(
                plan,
                ready.seconds,
                workflow=workflow,
                accepted=isinstance(plan.decision, Acceptance),
                error=ready.error,
                spans=spans,
                response=done[-1] if done else None,
            )
        )
    return Trace(
        id=row.id,
        question=request.question,
        pool=tuple(Profile(name=name) for name in names),
        planner=f"straight:{request.worker}" if request.worker else request.planner or "",
        seed=request.seed,
        budget=request.budget,
        max_steps=request.max_steps,
        rounds=tuple(rounds),
        status=status,
        error=error,
        started_at=past.started_at,
        seconds=past.elapsed_s,
        owner=row.owner,
        user=request.user,
        metadata=request.metadata,
    )


def _spans(past: Past, round: int, workflow: Workflow, names: Sequence[str]) -> tuple[Span, ...]:
    """A span for each step of a round: those that ended, and the others as cancelled."""
    known, tries = past.known(round), past.tries(round)
    return tuple(
        known.get(position)
        or Span(
            position=position,
            worker=names[step.worker],
            subtask=step.subtask,
            reads=workflow.reads(position),
            status="cancelled",
            attempts=tries.get(position, ()),
            cost_usd=sum(attempt.cost_usd for attempt in tries.get(position, ())),
        )
        for position, step in enumerate(workflow.steps)
    )


def _values(entries: Sequence[EventRow]) -> Iterator[_Began | _Planned | StepEnded]:
    """What the entries say, up to the first that cannot be read."""
    for entry in entries:
        try:
            value = _READERS[entry.kind].validate_json(entry.document)
        except (KeyError, ValidationError):
            return
        yield value


def _write(adapter: TypeAdapter[T], value: T) -> str:
    """JSON. Half a surrogate pair, which databases refuse, becomes "?"."""
    try:
        return adapter.dump_json(value).decode()
    except PydanticSerializationError:
        return clean(json.dumps(adapter.dump_python(value), ensure_ascii=False))
