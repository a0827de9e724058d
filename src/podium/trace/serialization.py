"""Turns a trace into one line of JSON in UTF-8, and into rows of a store's tables (`schema`).

Characters that databases refuse are replaced: half a surrogate pair by "?", and a null character by U+FFFD. In the
JSON, null characters are escaped. Nothing here opens a file or a database.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple, TextIO

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from podium.errors import UsageError
from podium.trace.costs import Cost, costs_of
from podium.trace.model import OutcomeVerdict, Trace, TraceStatus
from podium.trace.validation import find_flaw


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
