"""How long the answers of workers were, as a store of traces has it: what estimates are made of.

Reads the newest traces, in SQLite's own JSON: some tens of milliseconds. Never writes, and makes no file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from podium.errors import UsageError
from podium.trace.sqlite_store import WAY_OUT, open_reader

NEWEST = 500
"""Traces that are looked at."""
_QUERY = """
SELECT json_extract(span.value, '$.answered_by') AS worker,
       json_extract(span.value, '$.usage.output_tokens'),
       coalesce(json_extract(span.value, '$.simulated_s'),
                json_extract(span.value, '$.ended_s') - json_extract(span.value, '$.started_s'))
FROM (SELECT document FROM traces ORDER BY started DESC, rowid DESC LIMIT ?) AS newest,
     json_each(newest.document, '$.rounds') AS round,
     json_each(round.value, '$.spans') AS span
WHERE json_extract(span.value, '$.status') = 'done'
  AND worker IS NOT NULL
  AND NOT coalesce(json_extract(span.value, '$.cached'), 0)
"""


@dataclass(frozen=True, slots=True)
class PastAnswers:
    """What one worker answered; both in the same order."""

    output_tokens: tuple[int, ...]
    seconds: tuple[float, ...]
    """As claimed by a simulated worker, else by the clock, waiting and retries included."""

    def __len__(self) -> int:
        return len(self.output_tokens)


def past_answers(store: Path, *, newest: int = NEWEST) -> Mapping[str, PastAnswers]:
    """By the name of the worker that answered; cached answers are left out, since they are others' copies.

    Raises:
        UsageError: the file is not a store of traces, or cannot be read.
    """
    found: dict[str, tuple[list[int], list[float]]] = {}
    with closing(open_reader(store)) as reader:
        try:
            for worker, tokens, seconds in reader.execute(_QUERY, (newest,)):
                of_tokens, of_seconds = found.setdefault(worker, ([], []))
                of_tokens.append(tokens)
                of_seconds.append(seconds)
        except sqlite3.Error as error:
            raise UsageError(f"The trace store {store} cannot be read ({error}); {WAY_OUT}.") from error
    return {worker: PastAnswers(tuple(tokens), tuple(times)) for worker, (tokens, times) in found.items()}
