"""Reads the lengths of workers' past answers from a trace store or from traces, for cost estimates.

SQLite's JSON functions read the newest traces in some tens of milliseconds. Nothing is written, and no file is made.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from podium.errors import UsageError
from podium.store.schema import WAY_OUT
from podium.store.trace_store import open_reader
from podium.trace.model import Trace

NEWEST = 500
_QUERY = """
SELECT json_extract(span.value, '$.answered_by') AS worker,
       json_extract(span.value, '$.reply.usage.output_tokens'),
       coalesce(json_extract(span.value, '$.reply.latency_s'),
                json_extract(span.value, '$.ended_s') - json_extract(span.value, '$.started_s'))
FROM (SELECT CASE WHEN json_valid(document) THEN document ELSE '{}' END AS document
      FROM traces AS trace JOIN podium_documents ON podium_documents.id = trace.id
      ORDER BY trace.started DESC, trace.id DESC LIMIT ?) AS newest,
     json_each(newest.document, '$.rounds') AS round,
     json_each(round.value, '$.spans') AS span
WHERE json_extract(span.value, '$.status') = 'done'
  AND worker IS NOT NULL
  AND NOT coalesce(json_extract(span.value, '$.reply.cached'), 0)
"""


@dataclass(frozen=True, slots=True)
class PastAnswers:
    """The answers of one worker. Both fields have the same order."""

    output_tokens: tuple[int, ...]
    seconds: tuple[float, ...]
    """The seconds that each reply claims, or else the measured seconds with waiting and retries."""

    def __len__(self) -> int:
        return len(self.output_tokens)


def answers_in(traces: Iterable[Trace]) -> Mapping[str, PastAnswers]:
    """The past answers in `traces`, as `past_answers` reads them from a file."""
    return _by_worker(
        (span.answered_by, span.usage.output_tokens, span.seconds)
        for trace in traces
        for span in trace.spans
        if span.status == "done" and span.answered_by is not None and not span.cached
    )


def past_answers(store: Path, *, newest: int = NEWEST) -> Mapping[str, PastAnswers]:
    """The past answers by the name of the worker that answered. Cached answers are left out, since they are copies.

    Raises:
        UsageError: the file is not a store of traces, or cannot be read.
    """
    with closing(open_reader(store)) as reader:
        try:
            rows = reader.execute(_QUERY, (newest,)).fetchall()
        except sqlite3.Error as error:
            raise UsageError(f"The trace store {store} cannot be read ({error}); {WAY_OUT}.") from error
    sound = [row for row in rows if isinstance(row[1], int) and isinstance(row[2], float | int)]
    return _by_worker(sound)


def _by_worker(answers: Iterable[tuple[str, int, float]]) -> Mapping[str, PastAnswers]:
    pairs: dict[str, list[tuple[int, float]]] = {}
    for worker, tokens, seconds in answers:
        pairs.setdefault(worker, []).append((tokens, seconds))
    return {worker: PastAnswers(*zip(*of_worker, strict=True)) for worker, of_worker in pairs.items()}
