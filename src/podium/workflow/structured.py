"""The structured plan: one object with a thought and a list of steps. Reads the three columns of its steps, and finds
the complete steps of a plan that is still being written.

    plan = { "thought": TEXT, "steps": [ step, ... ] }            any order, any further keys
         | { "thought": TEXT, "accept": true }                    in a later round
    step = { "worker": NAME or number, "subtask": TEXT, "sees": entry }

`parse` checks the columns like the three lists. The value of "sees" is an entry of the access list.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from podium.workflow.literal import Item
from podium.workflow.parse_error import ParseError, quote_fragment

_KEYS = ("worker", "subtask", "sees")
_PLAN_KEYS = frozenset({"thought", "steps", "accept"})
_LISTS = frozenset({"model_id", "subtasks", "access_list"})
_BEGINS = re.compile(r"""\{\s*+["'“”„‘`]?(?:thought|steps|accept)\b""", re.IGNORECASE)


class StepColumns(NamedTuple):
    """The workers, the subtasks and the access lists of the steps."""

    workers: list[Item]
    subtasks: list[Item]
    sees: list[Item]


def is_plan(item: Item) -> bool:
    """Whether an object is a structured plan, right or wrong: it has steps that are objects, or a key "accept"."""
    fields = _fields(item)
    steps = fields.get("steps")
    if steps is None or steps.value == []:
        says = steps is not None or _flag(fields.get("accept")) is not None
        return says and fields.keys() <= _PLAN_KEYS
    if _LISTS & fields.keys() or not isinstance(steps.value, list):
        return False
    return all({"worker", "subtask"} & _fields(step).keys() for step in steps.value)


def begins_plan(text: str, at: int) -> bool:
    """Whether the object that opens at `text[at]` is meant as a structured plan, by its first key."""
    return _BEGINS.match(text, at) is not None


def read_columns(item: Item, *, later_round: bool) -> StepColumns | None:
    """The columns of a structured plan. None if it accepts the answer. Raises `ParseError`."""
    fields = _fields(item)
    accept, steps = fields.get("accept"), fields.get("steps")
    if accept is not None and _flag(accept) is None:
        message = f'Expected true or false for "accept", found {item_text(accept)}.'
        raise ParseError("bad_accept", message, accept.at)
    listed = steps.value if steps is not None and isinstance(steps.value, list) else None
    if accept is not None and _flag(accept):
        if not later_round:
            message = 'Expected steps, found "accept": true in the first round: there is no answer to accept.'
            raise ParseError("empty_plan", message, accept.at)
        if listed:
            message = 'Expected either steps or "accept": true, found both.'
            raise ParseError("accept_and_steps", message, accept.at)
        return None
    if steps is None or listed is None:
        here = "none" if steps is None else item_text(steps)
        raise ParseError("no_steps", f'Expected a list "steps" of objects, found {here}.', (steps or item).at)
    if not listed:
        way_out = ': write "accept": true to accept the answer' if later_round else ""
        raise ParseError("empty_plan", f"Expected at least one step, found none{way_out}.", steps.at)
    rows = [_row(position, step) for position, step in enumerate(listed)]
    return StepColumns(*map(list, zip(*rows, strict=True)))


def _row(position: int, step: Item) -> list[Item]:
    if not isinstance(step.value, dict):
        message = f"Expected an object for step {position}, found {item_text(step)}."
        raise ParseError("bad_step", message, step.at)
    fields = _fields(step)
    missing = next((key for key in _KEYS if key not in fields), None)
    if missing is not None:
        message = f'Expected "{missing}" in step {position}, found none.'
        raise ParseError("missing_key", message, step.at)
    return [fields[key] for key in _KEYS]


def item_text(item: Item) -> str:
    """The item as a message repeats it."""
    if isinstance(item.value, list | dict):
        return "a list" if isinstance(item.value, list) else "an object"
    return quote_fragment(str(item.value))


def _fields(item: Item) -> dict[str, Item]:
    return {key.lower(): value for key, value in item.value.items()} if isinstance(item.value, dict) else {}


def _flag(item: Item | None) -> bool | None:
    word = item.value.lower() if item is not None and isinstance(item.value, str) else ""
    return word == "true" if word in ("true", "false") else None


class StepReader:
    """Reads the text of a structured plan piece by piece. A step counts as complete once the next step opens, so the
    last step of a plan is never complete: only the end of the plan shows which step is the last."""

    def __init__(self) -> None:
        self._text = ""
        self._open: list[str] = []
        self._in_string = self._escaped = False
        self._steps = 0

    def feed(self, piece: str) -> str | None:
        """Take in the next piece of the text. Returns the text with only the complete steps, closed so that `parse`
        reads it; None if the piece completes no step."""
        start, complete = len(self._text), None
        self._text += piece
        for position, character in enumerate(piece, start):
            if self._in_string:
                self._in_string = self._escaped or character != '"'
                self._escaped = character == "\\" and not self._escaped
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                if character == "{" and self._open == ["{", "["]:
                    self._steps += 1
                    complete = position if self._steps > 1 else None
                self._open.append(character)
            elif character in "}]" and self._open:
                self._open.pop()
        return None if complete is None else self._text[:complete].rstrip().removesuffix(",") + "]}"
