"""The JSON schemas of structured plans, for endpoints that hold a model to one. What comes back is parsed all the same.

"portable" keeps to what the strictest providers take: every property required, no further ones, enums, and no bounds.
"exact" adds what servers on one's own machine take: the number of steps, for each step the earlier ones alone, most
characters of a text, since a small model that repeats itself would write until it is cut off, and that steps which have
no result without an earlier response see one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from podium.workflow.check import AccessRule

SchemaKind = Literal["exact", "portable"]
_THOUGHT_CHARS, _SUBTASK_CHARS = 400, 600
"""The most characters of a thought and of a subtask in the exact schema; `check` allows longer subtasks."""
_FRAME_TOKENS, _CHARS_PER_TOKEN, _FEWEST_CHARS = 30, 3, 120
"""Tokens around each text of a plan (keys, name, `sees`, spaces); characters that a token of text has at least, in
most languages; and characters that each text needs, for a subtask is cut off in the middle of a word."""


def plan_schema(
    kind: SchemaKind,
    *,
    workers: int,
    names: Sequence[str] = (),
    max_steps: int = 5,
    later_round: bool = False,
    access: AccessRule = "lists",
    max_tokens: int | None = None,
    need_responses: Collection[int] = (),
) -> dict[str, Any]:
    """The schema of the structured plans for a pool. All that `render` writes of plans that pass `check` fits
    "portable". "exact" is narrower: texts are bounded; the last of several steps sees a response, else it alone would
    run; and so does a step of a worker that has no result without one.

    In a later round, "exact" allows either steps or an acceptance. "portable" always has both, since providers want no
    choice at the top: steps that are empty and `"accept": true`, or steps and `"accept": false`.

    Args:
        workers, names, max_steps, later_round, access: see `parse`. With names, workers have no numbers.
        max_tokens: after which a plan is cut off. "exact" then allows only texts with which it ends before, and
            rather fewer steps than texts that say nothing.
        need_responses: numbers of the workers that work on responses alone.
    """

    def worker_of(numbers: Sequence[int]) -> dict[str, Any]:
        """One of these workers."""
        if names:
            return {"type": "string", "enum": [names[number] for number in numbers]}
        return {"type": "integer", "enum": [*numbers]}

    everyone = range(workers)
    thought: dict[str, Any] = {"type": "string"}
    if kind == "portable":
        step = _step(worker_of(everyone), _entry(max_steps - 1, later_round, access))
        steps = {"type": "array", "items": step}
        accept = {"accept": {"type": "boolean"}} if later_round else {}
        return _object({"thought": thought, **accept, "steps": steps})
    chars = _SUBTASK_CHARS
    if max_tokens is not None:
        max_steps = min(max_steps, _steps_within(max_tokens))
        chars = _chars_within(max_tokens, max_steps)
    thought["maxLength"] = min(_THOUGHT_CHARS, chars)
    free = [number for number in everyone if number not in need_responses]

    def position_schema(position: int, *, last: bool) -> dict[str, Any]:
        """The step at one position. Models write keys in order: the worker decides what it may see."""
        sees = _entry(position, later_round, access, bounded=True)
        some = {**sees, "minItems": 1}
        if last:
            return _step(worker_of(everyone), some, chars)
        if len(free) in (0, workers):
            return _step(worker_of(everyone), sees, chars)
        unbound = _step(worker_of(free), sees, chars)
        if not (position or later_round):
            return unbound
        bound = _step(worker_of(sorted(need_responses)), some, chars)
        return {"anyOf": [unbound, bound]}

    definitions = {f"step{position}": position_schema(position, last=False) for position in range(max_steps)}
    definitions |= {
        f"last{position}": position_schema(position, last=True) for position in range(1, max_steps)
    }
    lengths = [_first_steps(count) for count in range(1, max_steps + 1)]
    plan = _object({"thought": thought, "steps": {"anyOf": lengths}})
    if later_round:
        acceptance = _object({"thought": thought, "accept": {"type": "boolean", "enum": [True]}})
        plan = {"anyOf": [plan, acceptance]}
    return {**plan, "$defs": definitions}


def _first_steps(count: int) -> dict[str, Any]:
    """A list of exactly `count` steps."""
    names = [
        *(f"step{position}" for position in range(count - 1)),
        f"last{count - 1}" if count > 1 else "step0",
    ]
    steps = [{"$ref": f"#/$defs/{name}"} for name in names]
    return {"type": "array", "prefixItems": steps, "minItems": count, "maxItems": count}


def _steps_within(max_tokens: int) -> int:
    """The most steps of a plan whose texts, a thought among them, have the characters that they need."""
    each = _FRAME_TOKENS + _FEWEST_CHARS // _CHARS_PER_TOKEN
    return max(1, max_tokens // each - 1)


def _chars_within(max_tokens: int, max_steps: int) -> int:
    """The most characters of each text in a plan of `max_steps` steps and a thought, in `max_tokens` tokens."""
    each = (max_tokens // (max_steps + 1) - _FRAME_TOKENS) * _CHARS_PER_TOKEN
    return min(_SUBTASK_CHARS, max(_FEWEST_CHARS, each))


def _step(worker: dict[str, Any], sees: dict[str, Any], chars: int | None = None) -> dict[str, Any]:
    subtask = {"type": "string", **({} if chars is None else {"maxLength": chars})}
    return _object({"worker": worker, "subtask": subtask, "sees": sees})


def _entry(earlier: int, later_round: bool, access: AccessRule, *, bounded: bool = False) -> dict[str, Any]:
    """The schema of the access list of a step with `earlier` steps before it, `bounded` to as many items."""
    listed = access == "lists"
    words = ["all", *(["previous"] if listed and later_round else [])]
    items: dict[str, Any] = {"type": "string", "enum": words}
    if listed and earlier:
        items = {"anyOf": [{"type": "integer", "enum": [*range(earlier)]}, items]}
    most = max(1, earlier + later_round) if listed else 1
    return {"type": "array", "items": items, **({"maxItems": most} if bounded else {})}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
