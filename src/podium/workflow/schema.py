"""The JSON schemas of structured plans, for endpoints that enforce a schema. The reply is parsed and checked all the
same.

The schema "portable" uses only what the strictest providers accept: every property is required, no further properties
are allowed, and there are enums but no bounds. The schema "exact" adds what local servers accept: it bounds the steps,
allows each only earlier ones, and bounds the characters of a text, since a small model that repeats itself would
otherwise write until it is cut off. A step that needs an earlier response must see one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from podium.workflow.check import AccessRule, PlanRules

SchemaKind = Literal["exact", "portable"]
_THOUGHT_CHARS, _SUBTASK_CHARS = 400, 600
"""The most characters of a thought and of a subtask in the exact schema. `check` allows longer subtasks."""
_FRAME_TOKENS, _CHARS_PER_TOKEN, _FEWEST_CHARS = 30, 3, 120
"""The tokens around each text of a plan (keys, name, `sees`, spaces), the fewest characters of a token in most
languages, and the fewest characters of a useful text."""


def plan_schema(
    kind: SchemaKind, rules: PlanRules, *, max_tokens: int | None = None, need_responses: Collection[int] = ()
) -> dict[str, Any]:
    """The schema of the structured plans for a pool. Every plan that passes `check` fits "portable" when `render`
    writes it. "exact" is narrower: texts are bounded, the last of several steps must see a response, since otherwise
    only that step would run, and a step of a worker that needs responses must see one.

    In a later round, "exact" allows either steps or an acceptance. "portable" always has both keys, since providers
    allow no choice at the top: empty steps with `"accept": true`, or steps with `"accept": false`.

    Args:
        rules: If there are names, plans must use them.
        max_tokens: the limit at which a plan is cut off. "exact" then bounds texts so that the plan ends before, and
            allows fewer steps rather than useless texts.
        need_responses: the numbers of the workers that need responses of earlier steps.
    """

    names, max_steps = rules.names, rules.max_steps
    later_round, access = rules.later_round, rules.access

    def worker_of(numbers: Sequence[int]) -> dict[str, Any]:
        """The schema of a choice among these workers."""
        if names:
            return {"type": "string", "enum": [names[number] for number in numbers]}
        return {"type": "integer", "enum": [*numbers]}

    everyone = range(rules.workers)
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
        """The schema of the step at one position. Models write keys in order, so the worker decides what the step may
        see."""
        sees = _entry(position, later_round, access, bounded=True)
        some = {**sees, "minItems": 1}
        if last:
            return _step(worker_of(everyone), some, chars)
        if len(free) in (0, rules.workers):
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
    names = [
        *(f"step{position}" for position in range(count - 1)),
        f"last{count - 1}" if count > 1 else "step0",
    ]
    steps = [{"$ref": f"#/$defs/{name}"} for name in names]
    return {"type": "array", "prefixItems": steps, "minItems": count, "maxItems": count}


def _steps_within(max_tokens: int) -> int:
    """The most steps of a plan in which the thought and each subtask have the fewest useful characters."""
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
    """The schema of the access list of a step with `earlier` steps before it. `bounded` limits the number of items."""
    listed = access == "lists"
    words = ["all", *(["previous"] if listed and later_round else [])]
    items: dict[str, Any] = {"type": "string", "enum": words}
    if listed and earlier:
        items = {"anyOf": [{"type": "integer", "enum": [*range(earlier)]}, items]}
    max_entries = max(1, earlier + later_round) if listed else 1
    return {"type": "array", "items": items, **({"maxItems": max_entries} if bounded else {})}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
