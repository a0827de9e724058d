"""Turns a trace into one line of JSON in UTF-8, and into rows of a store's tables (`schema`); and checks what is read.

Characters that databases refuse are replaced: half a surrogate pair by "?", and a null character by U+FFFD. In the
JSON, null characters are escaped. Nothing here opens a file or a database.

A trace that was imported, or that somebody changed in the database, may have numbers and references that cannot be
shown, summed or run again: `find_flaw` finds them, beyond the types of `model`.
"""

from __future__ import annotations

import json
import math
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple, TextIO

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from podium.errors import UsageError
from podium.trace.costs import Cost, costs_of
from podium.trace.model import OutcomeVerdict, RoundTrace, Trace, TraceStatus


def to_json(trace: Trace) -> str:
    """One line of JSON. Half a surrogate pair, which UTF-8 cannot hold, becomes "?"."""
    try:
        return trace.model_dump_json()
    except PydanticSerializationError:
        return without_surrogates(json.dumps(trace.model_dump(), ensure_ascii=False, separators=(",", ":")))


def without_surrogates(text: str) -> str:
    """The text without half surrogate pairs, which some models write and UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def write_jsonl(traces: Iterable[Trace], stream: TextIO) -> int:
    """Write each trace as one line. Returns the number of traces."""
    count = 0
    for trace in traces:
        stream.write(to_json(trace) + "\n")
        count += 1
    return count


def read_jsonl(lines: Iterable[str | bytes], source: str) -> Iterator[Trace]:
    """The traces of `lines`. Blank lines, and a mark at the beginning that the file is UTF-8, are skipped.

    Raises:
        UsageError: a line is not a trace. The message names `source`, the line (from 1) and the field.
    """
    for number, line in enumerate(lines, 1):
        document = line.removeprefix(BOM_UTF8) if number == 1 and isinstance(line, bytes) else line
        if not document.strip():
            continue
        try:
            yield read_document(document)
        except DamagedTraceError as error:
            raise UsageError(f"{source}, line {number}: not a trace{error}.") from error


class DamagedTraceError(ValueError):
    """A document that is no trace. Its text says where and why, and follows the words "not a trace" in messages."""


def read_document(document: str | bytes) -> Trace:
    """The trace in a document of a store or a line of JSON.

    Raises:
        DamagedTraceError: the document is no trace, or its values do not fit together.
    """
    try:
        trace = Trace.model_validate_json(document)
        flaw = find_flaw(trace)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise DamagedTraceError(f"{f' at {field}' if field else ''} ({first['msg']})") from None
    except RecursionError:
        flaw = "it is nested too deeply"
    if flaw is not None:
        raise DamagedTraceError(f" ({flaw})")
    return trace


_QUESTION_START = 200
_SEARCHED = 1000
"""A search covers this many characters at the beginning and at the end of a question, since a question may be long."""


class ListedTrace(NamedTuple):
    """What lists and filters read of a trace: a row of `schema.TRACES`, whose columns have this order."""

    started: float
    """When the question was asked, in seconds since 1970."""
    id: str
    """The trace's id, without the characters that some databases cannot store."""
    planner: str
    status: TraceStatus
    question: str
    calls: int
    cost_usd: float
    seconds: float
    owner: str | None
    workers: str
    """The workers' names, as a list in JSON."""
    searched: str
    outcome: OutcomeVerdict | None


class TraceRow(NamedTuple):
    """A trace as a store keeps it."""

    document: str
    """The whole trace as JSON."""
    listed: ListedTrace
    workers: tuple[str, ...]
    costs: tuple[Cost, ...]


def to_row(trace: Trace) -> TraceRow:
    """The database row of a trace."""
    workers = tuple(dict.fromkeys(storable(span.answered_by or span.worker) for span in trace.spans))
    listed = ListedTrace(
        started=to_seconds(trace.started_at),
        id=storable(trace.id),
        planner=storable(trace.planner),
        status=trace.status,
        question=storable(trace.question.text[:_QUESTION_START]),
        calls=trace.calls,
        cost_usd=trace.cost_usd,
        seconds=trace.seconds,
        owner=None if trace.owner is None else storable(trace.owner),
        workers=json.dumps(workers, ensure_ascii=False),
        searched=searchable(trace.question.text),
        outcome=None if trace.outcome is None else trace.outcome.verdict,
    )
    costs = tuple(Cost(storable(cost.worker), *cost[1:]) for cost in costs_of(trace))
    return TraceRow(to_json(trace), listed, workers, costs)


def searchable(text: str) -> str:
    """The part of a question that searches read: its beginning and end, in folded case."""
    if len(text) > 2 * _SEARCHED:
        text = f"{text[:_SEARCHED]}\n{text[-_SEARCHED:]}"
    return storable(text).casefold()


def storable(text: str) -> str:
    """The text in which characters are replaced that some databases cannot store."""
    return without_surrogates(text).replace("\0", "\ufffd")


def to_seconds(moment: str) -> float:
    """Seconds since 1970 of an ISO 8601 time. A time without a zone is in UTC."""
    at = datetime.fromisoformat(moment)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


# --- flaws ---------------------------------------------------------------------------------------------

MAX_TRACE_NUMBER = 10**12
"""The largest count, dollars or seconds of one trace. Sums of millions of traces fit into a database."""
_MAX_NESTING = 32
_FREE_FORM = frozenset(
    {"parameters", "logprobs", "extra", "tools", "tool_choice", "response_format", "metadata"}
)
"""Fields whose form the caller or a provider decides. Their numbers are never summed, and need only be finite."""
_NUMBER_TYPES, _OTHER_TYPES = (float, int), (str, bool)


def find_flaw(trace: Trace) -> str | None:
    """The first flaw of the trace, in half a sentence that names its path. None if there is no flaw."""
    return next(_flaws(trace, 0), None)


def _flaws(trace: Trace, depth: int) -> Iterator[str]:
    if not trace.id.strip():
        yield "id is empty"
    dates = {"started_at": trace.started_at}
    if trace.outcome is not None:
        dates["outcome.at"] = trace.outcome.at
    for name, date in dates.items():
        if not _is_date(date):
            yield f"{name} is no date: {date[:40]!r}"
    if (wrong := _wrong_number(trace)) is not None:
        path, number, free_form = wrong
        huge = isinstance(number, int) and abs(number) > MAX_TRACE_NUMBER
        right = "is finite" if free_form else f"is from 0 to {MAX_TRACE_NUMBER}"
        yield f"{'.'.join(path)} is {'too large' if huge else f'{number:g}'}; a number there {right}"
    for number, round_ in enumerate(trace.rounds):
        yield from (f"rounds.{number}.{flaw}" for flaw in _flaws_of_round(round_, len(trace.pool), depth))


def _flaws_of_round(round_: RoundTrace, workers: int, depth: int) -> Iterator[str]:
    workflow = round_.workflow
    steps = () if workflow is None else workflow.steps
    prefix = "plan.decision" if round_.fallback is None else "fallback"
    for position, step in enumerate(steps):
        if not 0 <= step.worker < workers:
            yield f"{prefix}.steps.{position}.worker is {step.worker}, and the pool has {workers} workers"
        if (j := _not_earlier(step.access.steps, position)) is not None:
            yield f"{prefix}.steps.{position}.access names step {j}, which is no earlier one"
    seen: set[int] = set()
    for number, span in enumerate(round_.spans):
        path = f"spans.{number}"
        if workflow is not None and not 0 <= span.position < len(steps):
            yield f"{path}.position is {span.position}, and the plan has {len(steps)} steps"
        if span.position in seen:
            yield f"{path}.position is {span.position}, as in another span"
        seen.add(span.position)
        if workflow is not None and any(not 0 <= j < len(steps) or j == span.position for j in span.waited):
            yield f"{path}.waited names a step that the plan does not have"
    for path, span in (
        *((f"spans.{number}", span) for number, span in enumerate(round_.spans)),
        *((f"abandoned.{number}", span) for number, span in enumerate(round_.abandoned)),
    ):
        if (j := _not_earlier(span.reads, span.position)) is not None:
            yield f"{path}.reads names step {j}, which is no earlier one"
        if span.nested is not None and depth == _MAX_NESTING:
            yield f"{path}.reply.nested: more than {_MAX_NESTING} teams are nested"
        elif span.nested is not None:
            yield from (f"{path}.reply.nested.{flaw}" for flaw in _flaws(span.nested, depth + 1))


def _not_earlier(steps: tuple[int, ...], position: int) -> int | None:
    return next((j for j in steps if not 0 <= j < position), None)


def _is_date(text: str) -> bool:
    """Whether the text is an ISO 8601 time since 1970 that can be shown in every time zone."""
    try:
        return 1970 <= datetime.fromisoformat(text).year < 9999
    except ValueError:
        return False


def _wrong_number(value: Any, free_form: bool = False) -> tuple[tuple[str, ...], float, bool] | None:
    """The path and value of the first number in `value` that is out of range, and whether it is in one of the
    `_FREE_FORM` fields, as `value` itself may be. None if there is none. Nested teams are left out."""
    # A trace has a thousand values, so the path is made only for a wrong number.
    items: Iterable[tuple[Any, Any]]
    if isinstance(value, BaseModel):
        items = vars(value).items()
    elif isinstance(value, dict):
        items = value.items()
    elif isinstance(value, tuple | list):
        items = enumerate(value)
    else:
        items = [(name, getattr(value, name)) for name in getattr(value, "__dataclass_fields__", ())]
    for key, item in items:
        if not item or isinstance(item, _OTHER_TYPES) or (key == "nested" and isinstance(item, Trace)):
            continue
        free = free_form or key in _FREE_FORM
        if isinstance(item, _NUMBER_TYPES):
            if not (-math.inf < item < math.inf if free else 0 <= item <= MAX_TRACE_NUMBER):
                return (str(key),), item, free
        elif (wrong := _wrong_number(item, free)) is not None:
            return (str(key), *wrong[0]), *wrong[1:]
    return None
