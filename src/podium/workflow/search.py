r"""Finds the plan in the text that a planner wrote: its three lists, or its object.

    text    = anything, with these in it: thought | named | object
    thought = "<think>" ... "</think>"        skipped; what comes before a lone "</think>" is skipped too
    named   = name format ( "=" | ":" | line break ) format list
    name    = "model_id" | "subtasks" | "access_list"      any case; "model id", "model-id", "model\_id"
    format  = spaces, quotation marks, backticks, asterisks, a type, a code fence, a remark in parentheses

A `<think>` that is never closed is ignored; if the text was cut off, it hides all that follows. The content of a list
is not searched for names. Three lists with the three names are a triple, in any order. A repeated name begins the next
triple, unless it replaces the list right before it, or one that cannot be read.

An object with steps, or with `"accept": true`, is a structured plan; what is in it is not searched. Any other object is
ordinary text, so lists in it count as lists. Of all readable triples and structured plans, the one that ends last
counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from podium.workflow.literal import Item, read_list, read_object
from podium.workflow.model import PlanForm
from podium.workflow.parse_error import ParseError, quote_fragment
from podium.workflow.structured import begins_plan, is_plan

NAMES = ("model_id", "subtasks", "access_list")
PATIENCE = 8
"""After each of the first 8 unreadable lists, the search continues right after the list's name, so that an unfinished
draft does not hide the plan after it. After further unreadable lists the search continues where reading stopped, so
that the time stays linear. Objects are read until 8 times the text's length was read."""
_OBJECT_CHARS = 32
"""How many characters are added to the length of each object that is read, since starting to read takes time too."""

_MARK = re.compile(
    r"""
    <(?P<ends>/?)think(?:ing)?>
  | (?<!\w) (?: (?P<model_id> model(?:\\?_|[ -])id ) | (?P<subtasks> subtasks )
              | (?P<access_list> access(?:\\?_|[ -])list ) ) (?!\w)
    ["'`*”’ \t]*+ (?>(?:\([^()\n]{0,60}\)["'`*”’ \t]*+)?)
    (?: \s*+ (?P<assigned> :[ ]*+(?:typing\.)?[Ll]ist\b[^=\n]{0,60}= | :=|==?|[:：＝] ) | \r?\n )
    [\s*`>]*+ (?> (?: (?<=`) (?:python|py|json|text)\s++ )? )
    (?P<open> \[ )?
  | (?P<object> \{ (?=\s*+["'“”„‘`\#/\w]) )""",
    re.VERBOSE | re.IGNORECASE,
)
_THOUGHT_ENDS = re.compile("</think(?:ing)?>", re.IGNORECASE)
_MISNAMED = {
    "model_id": re.compile(
        r"\b(model_?ids|models?|workers?|worker_?ids?)\b[\"'`* ]*[=:]\s*\[", re.IGNORECASE
    ),
    "subtasks": re.compile(r"\b(sub_?task|sub_tasks|tasks?|steps)\b[\"'`* ]*[=:]\s*\[", re.IGNORECASE),
    "access_list": re.compile(r"\b(access(?:_?lists|list|es)?)\b[\"'`* ]*[=:]\s*\[", re.IGNORECASE),
}


def text_before_lists(text: str) -> str:
    """The planner's line of thought: the text before the lists that `find_plan` finds, or "" if there are no lists."""
    lists = find_plan(text)
    if not isinstance(lists, dict):
        return ""
    first = min(item.at for item in lists.values())
    starts = [mark.start() for mark in _MARK.finditer(text) if mark.start() <= first <= mark.end()]
    return text[: starts[-1]] if starts else ""


def thought_in(text: str) -> str:
    """The planner's line of thought: the text before its lists, or the thought of its structured plan."""
    plan = find_plan(text)
    if isinstance(plan, Item) and isinstance(plan.value, dict):
        thought = plan.value.get("thought")
        return thought.value if thought is not None and isinstance(thought.value, str) else ""
    return text_before_lists(text)


def find_plan(
    text: str, *, truncated: bool = False, form: PlanForm = "lists"
) -> dict[str, Item] | Item | ParseError:
    """The last readable plan of `text`: the lists of a triple by name, or an object; else a fault, in the form that was
    asked for if both forms have one. An object that was meant as a plan but is none is returned too, since `parse` says
    its fault. `truncated` says whether the text was cut off before its end."""
    search = _Search(text, form, chars_left=PATIENCE * (len(text) + _OBJECT_CHARS))
    position, thought_ends = 0, True
    while mark := _MARK.search(text, position):
        position = mark.end()
        if mark["object"]:
            position = search.take_object(mark.start())
        elif mark["ends"] is None:
            position = search.take(mark)
        elif mark["ends"]:
            search = _Search(text, form, search.chars_left, after_thought=True, failures=search.failures)
        elif thought_ends:
            end = _THOUGHT_ENDS.search(text, position)
            if end:
                position, search.after_thought = end.end(), True
            elif truncated:
                search.thought_cut = True
                break
            else:
                thought_ends = False
    return search.plan or search.fault()


@dataclass(slots=True)
class _Search:
    text: str
    form: PlanForm
    chars_left: int
    """How many characters may still be read to find objects."""
    after_thought: bool = False
    thought_cut: bool = False
    plan: dict[str, Item] | Item | None = None
    triple: dict[str, Item | ParseError] = field(default_factory=dict)
    """The lists of the current, incomplete triple."""
    latest: str = ""
    """The name of the list that was read last."""
    triple_fault: ParseError | None = None
    """The first fault of the last unreadable triple."""
    near_plan: Item | ParseError | None = None
    """The last object that was meant as a plan but is none."""
    failures: int = 0
    """How many lists could not be read."""
    unlisted: dict[str, int] = field(default_factory=dict)
    """Names that are not followed by a list, with the position of the text that follows."""

    def take(self, mark: re.Match[str]) -> int:
        """Read the list after a name. Returns the position where the search continues."""
        name = next(name for name in NAMES if mark[name])
        if not mark["open"]:
            if mark["assigned"]:
                self.unlisted[name] = mark.end()
            return mark.end()
        if name != self.latest and isinstance(self.triple.get(name), Item):
            self.triple = {}
        read, end = read_list(self.text, mark.end() - 1, name)
        if isinstance(read, ParseError):
            self.failures += 1
            end = end if self.failures > PATIENCE else mark.end()
        self.triple[name], self.latest = read, name
        if len(self.triple) == len(NAMES):
            if fault := _first_fault(self.triple):
                self.triple_fault = fault
            else:
                self.plan = {name: item for name, item in self.triple.items() if isinstance(item, Item)}
            self.triple, self.latest = {}, ""
        return end

    def take_object(self, at: int) -> int:
        """Read the object that opens at `at`. Returns the position where the search continues."""
        if self.chars_left <= 0:
            return at + 1
        read, end = read_object(self.text, at, "the plan")
        self.chars_left -= end - at + _OBJECT_CHARS
        if isinstance(read, Item) and is_plan(read):
            self.plan = read
            return end
        if begins_plan(self.text, at):
            self.near_plan = read
        return at + 1

    def fault(self) -> Item | ParseError:
        of_lists = _first_fault(self.triple) or self.triple_fault
        first, second = (
            (self.near_plan, of_lists) if self.form == "structured" else (of_lists, self.near_plan)
        )
        return first or second or self._missing_plan()

    def _missing_plan(self) -> ParseError:
        where = " after the <think> block" if self.after_thought else ""
        if self.form == "structured" and not self.triple:
            seen = "a <think> block that is cut off" if self.thought_cut else "none"
            return ParseError(
                "missing_object", f'Expected an object with "thought" and "steps"{where}, found {seen}.'
            )
        if self.thought_cut:
            message = "Expected the lists model_id, subtasks and access_list, found a <think> block that is cut off."
            return ParseError("missing_list", message)
        missing = [name for name in NAMES if name not in self.triple]
        for name in missing:
            at = self.unlisted.get(name)
            if at is not None:
                here = (
                    quote_fragment(self.text[at:].split("\n", 1)[0])
                    if at < len(self.text)
                    else "the end of the text"
                )
                message = f"Expected a list in square brackets for {name}, found {here}."
                return ParseError("not_a_list", message, at)
            if misnamed := _MISNAMED[name].search(self.text):
                message = f"Expected a list called {name}, found {quote_fragment(misnamed[1])}."
                return ParseError("misnamed_list", message, misnamed.start())
        absent = " and ".join(f"no {name}" for name in missing) if self.triple else "none of them"
        message = f"Expected the lists model_id, subtasks and access_list{where}, found {absent}."
        return ParseError("missing_list", message)


def _first_fault(triple: dict[str, Item | ParseError]) -> ParseError | None:
    return next((read for read in triple.values() if isinstance(read, ParseError)), None)
