r"""The parser of the workflow language: lenient about formatting, strict about meaning.

    plan        = the last readable triple of the text                                    see `triple`
    model_id    = list of numbers of workers, plain or in quotes                          see `literal`
    subtasks    = list of strings in quotes
    access_list = list of entries
    entry       = "[" [ item { "," item } ] "]" | word
    item        = number of an earlier step, from 0, plain or in quotes | word
    word        = all | previous | none | null, with or without quotes, any case

A list may have one more pair of brackets around it. `none` and `null` stand alone and mean `[]`. Numbers may repeat
and come in any order. With `all`, the other items of an entry do not count. Nothing is evaluated.
"""

from __future__ import annotations

import re
from dataclasses import replace

from podium.workflow.check import MAX_TEXT, AccessRule, Violation, canonical, first_violation, number_range
from podium.workflow.fault import ParseFault, found
from podium.workflow.literal import Item
from podium.workflow.model import Acceptance, Access, PlanError, Step, Workflow
from podium.workflow.triple import find_triple

_NUMBER = re.compile(r"\s*([+-]?[0-9]{1,9})\s*")
_WORDS = ("all", "previous", "none", "null")


def parse(
    text: str,
    *,
    workers: int,
    max_steps: int = 5,
    later_round: bool = False,
    access: AccessRule = "lists",
    cut: bool = False,
) -> Workflow | Acceptance | PlanError:
    """Parse the text that a planner wrote. Never raises; the time is linear in the length of the text.

    Args:
        text: the whole completion, with the three lists anywhere in it.
        workers: number of workers in the pool; they are numbered from 0.
        max_steps: most steps.
        later_round: whether a previous answer exists. Three empty lists then accept it, and "previous" shows it.
        access: what an access list may hold.
        cut: whether the text was cut off at a limit of tokens. A draft in an unfinished thought is then no plan.
    """
    if 4 * len(text) > MAX_TEXT:  # a character has at most four bytes
        size = len(text.encode(errors="surrogatepass"))
        if size > MAX_TEXT:
            return PlanError("text_too_long", f"Expected at most {MAX_TEXT} bytes of text, found {size}.")
    lists = find_triple(text, cut=cut)
    plan = lists if isinstance(lists, ParseFault) else _plan(lists, workers, max_steps, later_round, access)
    return plan.error(text) if isinstance(plan, ParseFault) else plan


def _plan(
    lists: dict[str, Item], workers: int, max_steps: int, later_round: bool, access: AccessRule
) -> Workflow | Acceptance | ParseFault:
    ids, subtasks = _unwrapped(lists["model_id"]), _unwrapped(lists["subtasks"])
    entries = _unwrapped_entries(lists["access_list"], len(subtasks))
    if not len(ids) == len(subtasks) == len(entries):
        return _unequal(lists, len(ids), len(subtasks), len(entries))
    if not ids and later_round:
        return Acceptance()
    steps: list[Step] = []
    for position, row in enumerate(zip(ids, subtasks, entries, strict=True)):
        step = _step(position, *row, workers)
        if isinstance(step, ParseFault):
            return step
        steps.append(step)
    workflow = Workflow(tuple(steps))
    violation = first_violation(
        workflow, workers=workers, max_steps=max_steps, later_round=later_round, access=access
    )
    if violation:
        rows = {"model_id": ids, "subtasks": subtasks, "access_list": entries}[violation.name]
        return ParseFault(violation.kind, violation.message, _place(violation, rows))
    if any(step.access.all for step in steps):
        return Workflow(tuple(replace(step, access=canonical(step.access)) for step in steps))
    return workflow


def _step(position: int, id_: Item, subtask: Item, entry: Item, workers: int) -> Step | ParseFault:
    worker = _number(id_)
    if worker is None:
        message = (
            f"Expected a worker's number ({number_range(workers)}) for step {position}, found {_shown(id_)}."
        )
        return ParseFault("bad_worker", message, id_.at)
    if not isinstance(subtask.value, str) or subtask.bare:
        message = f"Expected text in quotation marks as subtask of step {position}, found {_shown(subtask)}."
        return ParseFault("bad_subtask", message, subtask.at)
    access = _access(entry, position)
    return access if isinstance(access, ParseFault) else Step(worker, subtask.value.strip(), access)


def _unequal(lists: dict[str, Item], ids: int, subtasks: int, entries: int) -> ParseFault:
    # If two lists have the same length, the third is at fault.
    odd = "access_list" if ids == subtasks else "model_id" if subtasks == entries else "subtasks"
    message = (
        f"Expected three lists of one length, found {ids} in model_id, {subtasks} in subtasks "
        f"and {entries} in access_list."
    )
    return ParseFault("unequal_lists", message, lists[odd].at)


def _place(violation: Violation, entries: list[Item]) -> int | None:
    if violation.step is None:
        return None
    entry = entries[violation.step]
    culprit = (
        item for item in _items(entry) if violation.read is not None and _number(item) == violation.read
    )
    return next(culprit, entry).at


def _shown(item: Item) -> str:
    return "a list" if isinstance(item.value, list) else found(str(item.value))


def _items(item: Item) -> list[Item]:
    return item.value if isinstance(item.value, list) else [item]


def _unwrapped(item: Item) -> list[Item]:
    """The entries of a list of plain values, also if it has one more pair of brackets."""
    entries = _items(item)
    return _items(entries[0]) if len(entries) == 1 else entries


def _unwrapped_entries(item: Item, steps: int) -> list[Item]:
    """The entries of the access list, also if it has one more pair of brackets."""
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
    written = None if isinstance(item.value, list) or item.bare else _NUMBER.fullmatch(item.value)
    return int(written[1]) if written else None


def _word(item: Item) -> str | None:
    word = item.value.strip().lower() if isinstance(item.value, str) else ""
    return word if word in _WORDS else None


def _access(entry: Item, step: int) -> Access | ParseFault:
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
            return ParseFault("bad_access", f"{expected}, found {_shown(item)}{way_out}.", item.at)
    if words & {"none", "null"}:
        if steps or len(words) > 1:
            message = f'Expected "none" alone in the access list of step {step}, found more beside it.'
            return ParseFault("bad_access", message, entry.at)
        return Access()
    # Other items beside "all" are kept for the check, and dropped after it.
    return Access(tuple(sorted(steps)), all="all" in words, previous="previous" in words)
