"""The lengths of workers' past answers, for cost estimates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from podium.store.trace_store import TraceStore
from podium.trace.model import Trace

NEWEST = 200
"""How many of the newest traces are read."""


@dataclass(frozen=True, slots=True)
class PastAnswers:
    """The answers of one worker. Both fields have the same order."""

    output_tokens: tuple[int, ...]
    seconds: tuple[float, ...]
    """The seconds that each reply claims, or else the measured seconds with waiting and retries."""

    def __len__(self) -> int:
        return len(self.output_tokens)


def past_answers_in(traces: Iterable[Trace]) -> Mapping[str, PastAnswers]:
    """The past answers in `traces`, by the name of the worker that answered. Cached answers are left out, since they
    are copies."""
    pairs: dict[str, list[tuple[int, float]]] = {}
    for trace in traces:
        for span in trace.spans:
            if span.status == "done" and span.answered_by is not None and not span.cached:
                pairs.setdefault(span.answered_by, []).append((span.usage.output_tokens, span.seconds))
    return {worker: PastAnswers(*zip(*of_worker, strict=True)) for worker, of_worker in pairs.items()}


def read_past_answers(store: Path, *, newest: int = NEWEST) -> Mapping[str, PastAnswers]:
    """The past answers in the newest traces of a file, which is not changed.

    Raises:
        UsageError: the file is not a store of traces, or cannot be read.
    """
    with TraceStore(store, read_only=True) as traces:
        return past_answers_in(traces.newest(newest))
