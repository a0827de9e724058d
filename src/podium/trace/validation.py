"""Checks whether the values of a trace fit together, beyond the types of `model`.

A trace that was imported, or that somebody changed in the database, may have numbers and references that cannot be
shown, summed or run again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from podium.trace.model import RoundTrace, Trace

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
