r"""The parser of the workflow language: lenient about formatting, strict about meaning.

    plan        = the last readable triple or object of the text                          see `search`, `structured`
    model_id    = list of numbers of workers, plain or in quotes                          see `literal`
    subtasks    = list of strings in quotes
    access_list = list of entries
    entry       = "[" [ item { "," item } ] "]" | word
    item        = number of an earlier step, from 0, plain or in quotes | word
    word        = all | previous | none | null, with or without quotes, any case

A list may have one more pair of brackets around it. `none` and `null` stand alone and mean `[]`. Numbers may repeat
and come in any order. With `all`, the other items of an entry do not count. Nothing is evaluated.

A structured plan may also name its workers: a name counts as it is written, or else in any case if only one worker has
it so; a number counts if no worker has it as its name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from podium.workflow.check import (
    MAX_TEXT,
    PlanRules,
    Violation,
    canonical,
    first_violation,
    number_range,
)
from podium.workflow.literal import Item
from podium.workflow.model import Acceptance, Access, PlanError, PlanForm, Step, Workflow
from podium.workflow.parse_error import ParseError, showable
from podium.workflow.search import find_plan
from podium.workflow.structured import StepColumns, item_text, read_columns

_NUMBER = re.compile(r"\s*([+-]?[0-9]{1,9})\s*")
_NAMES_WIDTH = 60
"""The most characters of the pool's names that a message repeats."""
_WORDS = ("all", "previous", "none", "null")


def parse(
    text: str, rules: PlanRules, *, form: PlanForm = "lists", truncated: bool = False
) -> Workflow | Acceptance | PlanError:
    """Parse the text that a planner wrote, in either form. It never raises. Its time is linear in the length of the
    text.

    Args:
        text: the whole completion, with the plan anywhere in it. Of several plans, the one that ends last counts.
        form: the form that was asked for. It decides what an error says, but both forms are read.
        truncated: whether the text reached a limit of tokens. Then a draft inside an unfinished thought does not count
            as a plan.
    """
    if 4 * len(text) > MAX_TEXT:  # a character has at most four bytes
        size = len(text.encode(errors="surrogatepass"))
        if size > MAX_TEXT:
            return PlanError("text_too_long", f"Expected at most {MAX_TEXT} bytes of text, found {size}.")
    try:
        match find_plan(text, truncated=truncated, form=form):
            case ParseError() as fault:
                raise fault
            case Item() as found:
                columns = read_columns(found, later_round=rules.later_round)
            case lists:
                rules = replace(rules, names=())
                columns = _columns_of_lists(lists, later_round=rules.later_round)
        return Acceptance() if columns is None else _workflow(columns, rules)
    except ParseError as fault:
        return fault.error(text)


def _worker(item: Item, step: int, rules: PlanRules) -> int:
    """The number of the worker that `item` names or numbers."""
    number = _number_of_name(item.value, rules.names) if isinstance(item.value, str) else None
    number = _number(item) if number is None else number
    if number is not None:
        return number
    expected, kind = f"a worker's number ({number_range(rules.workers)})", "bad_worker"
    if rules.names and isinstance(item.value, str):
        known = ", ".join(rules.names)
        known = known if len(known) <= _NAMES_WIDTH else f"{known[: _NAMES_WIDTH - 1]}…"
        expected, kind = f"a worker of the pool ({showable(known)})", "unknown_worker"
    raise ParseError(kind, f"Expected {expected} for step {step}, found {item_text(item)}.", item.at)


def _number_of_name(written: str, names: Sequence[str]) -> int | None:
    name = written.strip()
    if name in names:
        return names.index(name)
    alike = [k for k, other in enumerate(names) if other.casefold() == name.casefold()]
    return alike[0] if len(alike) == 1 else None


def _columns_of_lists(lists: dict[str, Item], *, later_round: bool) -> StepColumns | None:
    """The columns of three lists. None if they are empty in a later round, as an acceptance."""
    ids, subtasks = _unwrapped(lists["model_id"]), _unwrapped(lists["subtasks"])
    entries = _unwrapped_entries(lists["access_list"], len(subtasks))
    if not len(ids) == len(subtasks) == len(entries):
        # If two lists have the same length, the third is at fault.
        same_as_ids = len(ids) == len(subtasks)
        odd = "access_list" if same_as_ids else "model_id" if len(subtasks) == len(entries) else "subtasks"
        message = (
            f"Expected three lists of one length, found {len(ids)} in model_id, {len(subtasks)} in subtasks "
            f"and {len(entries)} in access_list."
        )
        raise ParseError("unequal_lists", message, lists[odd].at)
    return StepColumns(ids, subtasks, entries) if ids or not later_round else None


def _workflow(columns: StepColumns, rules: PlanRules) -> Workflow:
    rows = enumerate(zip(*columns, strict=True))
    workflow = Workflow(tuple(_step(position, *row, rules) for position, row in rows))
    violation = first_violation(workflow, rules)
    if violation:
        raise ParseError(violation.kind, violation.message, _fault_position(violation, columns))
    if any(step.access.all for step in workflow.steps):
        return Workflow(tuple(replace(step, access=canonical(step.access)) for step in workflow.steps))
    return workflow


def _step(position: int, id_: Item, subtask: Item, entry: Item, rules: PlanRules) -> Step:
    worker = _worker(id_, position, rules)
    if not isinstance(subtask.value, str) or subtask.bare:
        message = (
            f"Expected text in quotation marks as subtask of step {position}, found {item_text(subtask)}."
        )
        raise ParseError("bad_subtask", message, subtask.at)
    return Step(worker, subtask.value.strip(), _access(entry, position))


def _fault_position(violation: Violation, columns: StepColumns) -> int | None:
    if violation.step is None:
        return None
    column = {"model_id": columns.workers, "subtasks": columns.subtasks, "access_list": columns.sees}
    entry = column[violation.list_name][violation.step]
    culprit = (
        item for item in _items(entry) if violation.read is not None and _number(item) == violation.read
    )
    return next(culprit, entry).at


def _items(item: Item) -> list[Item]:
    return item.value if isinstance(item.value, list) else [item]


def _unwrapped(item: Item) -> list[Item]:
    """The entries of a list of plain values, which may have a second pair of brackets around it."""
    entries = _items(item)
    return _items(entries[0]) if len(entries) == 1 else entries


def _unwrapped_entries(item: Item, steps: int) -> list[Item]:
    """The entries of the access list, which may have a second pair of brackets around it."""
    entries = _items(item)
    if len(entries) != 1 or not isinstance(entries[0].value, list):
        return entries
    inner = entries[0].value
    nested = any(isinstance(entry.value, list) for entry in inner)
    # For two steps, `[["all", "all"]]` has two entries: one entry would be too few.
    words = len(inner) == steps != 1 and all(_word(entry) for entry in inner)
    return inner if nested or words else entries


def _number(item: Item) -> int | None:
    if isinstance(item.value, int):
        return item.value
    written = None if isinstance(item.value, list | dict) or item.bare else _NUMBER.fullmatch(item.value)
    return int(written[1]) if written else None


def _word(item: Item) -> str | None:
    word = item.value.strip().lower() if isinstance(item.value, str) else ""
    return word if word in _WORDS else None


def _access(entry: Item, step: int) -> Access:
    listed = isinstance(entry.value, list)
    steps: set[int] = set()
    words: set[str] = set()
    for item in _items(entry):
        number, word = _number(item), _word(item)
        if number is not None and listed:
            steps.add(number)
        elif word is not None:
            words.add(word)
        else:
            way_out = f": write [{number}]" if number is not None else ""
            expected = f'Expected [], ["all"] or numbers of earlier steps for step {step}'
            raise ParseError("bad_access", f"{expected}, found {item_text(item)}{way_out}.", item.at)
    if words & {"none", "null"}:
        if steps or len(words) > 1:
            message = f'Expected "none" alone in the access list of step {step}, found more beside it.'
            raise ParseError("bad_access", message, entry.at)
        return Access()
    # Other items beside "all" are kept for the check, and dropped after it.
    return Access(tuple(sorted(steps)), all="all" in words, previous="previous" in words)
