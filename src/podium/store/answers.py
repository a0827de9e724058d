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
"""How many traces are read, the newest first."""
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
    by_worker: dict[str, list[tuple[int, float]]] = {}
    for trace in traces:
        for span in trace.spans:
            if span.status == "done" and span.answered_by is not None and not span.cached:
                by_worker.setdefault(span.answered_by, []).append((span.usage.output_tokens, span.seconds))
    return {
        worker: PastAnswers(tuple(tokens for tokens, _ in pairs), tuple(took for _, took in pairs))
        for worker, pairs in by_worker.items()
    }


def past_answers(store: Path, *, newest: int = NEWEST) -> Mapping[str, PastAnswers]:
    """The past answers by the name of the worker that answered. Cached answers are left out, since they are copies.

    Raises:
        UsageError: the file is not a store of traces, or cannot be read.
    """
    by_worker: dict[str, tuple[list[int], list[float]]] = {}
    with closing(open_reader(store)) as reader:
        try:
            for worker, tokens, seconds in reader.execute(_QUERY, (newest,)):
                of_tokens, of_seconds = by_worker.setdefault(worker, ([], []))
                if not (isinstance(tokens, int) and isinstance(seconds, float | int)):
                    continue  # the row is damaged
                of_tokens.append(tokens)
                of_seconds.append(seconds)
        except sqlite3.Error as error:
            raise UsageError(f"The trace store {store} cannot be read ({error}); {WAY_OUT}.") from error
    return {worker: PastAnswers(tuple(tokens), tuple(times)) for worker, (tokens, times) in by_worker.items()}
