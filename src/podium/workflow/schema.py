"""The JSON schemas of structured plans, for endpoints that enforce a schema. The reply is parsed and checked all the
same.

The schema "portable" uses only what the strictest providers accept: every property is required, no further properties
are allowed, and there are enums but no bounds. The schema "exact" adds what local servers accept: it bounds the steps,
allows each only earlier ones, and bounds the characters of a text, since a small model that repeats itself would
otherwise write until it is cut off. A step that needs an earlier response must see one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from podium.workflow.check import PlanRules

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
    if kind == "exact":
        return _ExactSchema.of(rules, max_tokens, need_responses).document()
    step = _step(_worker_of(range(rules.workers), rules), _entry(rules.max_steps - 1, rules))
    accept = {"accept": {"type": "boolean"}} if rules.later_round else {}
    return _object({"thought": {"type": "string"}, **accept, "steps": {"type": "array", "items": step}})


@dataclass(frozen=True, slots=True)
class _ExactSchema:
    rules: PlanRules
    max_steps: int
    chars: int
    """The most characters of each text."""
    need_responses: tuple[int, ...]

    @classmethod
    def of(cls, rules: PlanRules, max_tokens: int | None, need_responses: Collection[int]) -> Self:
        max_steps, chars = rules.max_steps, _SUBTASK_CHARS
        if max_tokens is not None:
            max_steps = min(max_steps, _steps_within(max_tokens))
            chars = _chars_within(max_tokens, max_steps)
        return cls(rules, max_steps, chars, tuple(sorted(need_responses)))

    def document(self) -> dict[str, Any]:
        steps = {f"step{position}": self._step_at(position) for position in range(self.max_steps)}
        steps |= {f"last{position}": self._last_step_at(position) for position in range(1, self.max_steps)}
        thought = {"type": "string", "maxLength": min(_THOUGHT_CHARS, self.chars)}
        lengths = [_first_steps(count) for count in range(1, self.max_steps + 1)]
        plan = _object({"thought": thought, "steps": {"anyOf": lengths}})
        if self.rules.later_round:
            acceptance = _object({"thought": thought, "accept": {"type": "boolean", "enum": [True]}})
            plan = {"anyOf": [plan, acceptance]}
        return {**plan, "$defs": steps}

    def _step_at(self, position: int) -> dict[str, Any]:
        """The schema of a step that is not the last of several. Models write keys in order, so the worker decides what
        the step may see."""
        rules, sees = self.rules, _entry(position, self.rules, bounded=True)
        everyone = range(rules.workers)
        need_none = [number for number in everyone if number not in self.need_responses]
        if len(need_none) in (0, rules.workers):
            return _step(_worker_of(everyone, rules), sees, self.chars)
        sees_any = _step(_worker_of(need_none, rules), sees, self.chars)
        if not (position or rules.later_round):
            return sees_any
        sees_some = _step(_worker_of(self.need_responses, rules), {**sees, "minItems": 1}, self.chars)
        return {"anyOf": [sees_any, sees_some]}

    def _last_step_at(self, position: int) -> dict[str, Any]:
        sees = _entry(position, self.rules, bounded=True)
        everyone = _worker_of(range(self.rules.workers), self.rules)
        return _step(everyone, {**sees, "minItems": 1}, self.chars)


def _worker_of(numbers: Sequence[int], rules: PlanRules) -> dict[str, Any]:
    """The schema of a choice among these workers."""
    if rules.names:
        return {"type": "string", "enum": [rules.names[number] for number in numbers]}
    return {"type": "integer", "enum": [*numbers]}


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


def _entry(earlier: int, rules: PlanRules, *, bounded: bool = False) -> dict[str, Any]:
    """The schema of the access list of a step with `earlier` steps before it. `bounded` limits the number of items."""
    listed = rules.access == "lists"
    words = ["all", *(["previous"] if listed and rules.later_round else [])]
    items: dict[str, Any] = {"type": "string", "enum": words}
    if listed and earlier:
        items = {"anyOf": [{"type": "integer", "enum": [*range(earlier)]}, items]}
    max_entries = max(1, earlier + rules.later_round) if listed else 1
    return {"type": "array", "items": items, **({"maxItems": max_entries} if bounded else {})}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
