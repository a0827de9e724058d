r"""Finds the three lists of a plan in the text that a planner wrote.

    text    = anything, with these in it: thought | named
    thought = "<think>" ... "</think>"        skipped; what comes before a lone "</think>" is skipped too
    named   = name format ( "=" | ":" | line break ) format list
    name    = "model_id" | "subtasks" | "access_list"      any case; "model id", "model-id", "model\_id"
    format  = spaces, quotation marks, backticks, asterisks, a type, a code fence, a remark in parentheses

A `<think>` that is never closed is ignored; if the text was cut off, it hides all that follows. The content of a list
is not searched for names. Three lists with the three names are a triple, in any order. A repeated name begins the next
triple, unless it replaces the list right before it, or one that cannot be read. The last readable triple counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from podium.workflow.fault import ParseFault, found
from podium.workflow.literal import Item, read_list

NAMES = ("model_id", "subtasks", "access_list")
PATIENCE = 8
"""After each of the first 8 unreadable lists, the search continues right after the list's name, so that an unfinished
draft does not hide the plan after it. After later ones it continues where reading stopped, so that the time stays
linear."""

_MARK = re.compile(
    r"""
    <(?P<ends>/?)think(?:ing)?>
  | (?<!\w) (?: (?P<model_id> model(?:\\?_|[ -])id ) | (?P<subtasks> subtasks )
              | (?P<access_list> access(?:\\?_|[ -])list ) ) (?!\w)
    ["'`*”’ \t]*+ (?>(?:\([^()\n]{0,60}\)["'`*”’ \t]*+)?)
    (?: \s*+ (?P<assigned> :[ ]*+(?:typing\.)?[Ll]ist\b[^=\n]{0,60}= | :=|==?|[:：＝] ) | \r?\n )
    [\s*`>]*+ (?> (?: (?<=`) (?:python|py|json|text)\s++ )? )
    (?P<open> \[ )?""",
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


def before_triple(text: str) -> str:
    """What stands before the lists that `find_triple` finds: the planner's line of thought. Empty if it finds none."""
    lists = find_triple(text)
    if isinstance(lists, ParseFault):
        return ""
    first = min(item.at for item in lists.values())
    starts = [mark.start() for mark in _MARK.finditer(text) if mark.start() <= first <= mark.end()]
    return text[: starts[-1]] if starts else ""


def find_triple(text: str, *, cut: bool = False) -> dict[str, Item] | ParseFault:
    """The lists of the last readable triple of `text`, by name; or the fault, if there is none.

    Args:
        cut: whether the text was cut off before its end.
    """
    search = _Search(text)
    position, thought_ends = 0, True
    while mark := _MARK.search(text, position):
        position = mark.end()
        if mark["ends"] is None:
            position = search.take(mark)
        elif mark["ends"]:
            search = _Search(text, after_thought=True, failures=search.failures)
        elif thought_ends:
            end = _THOUGHT_ENDS.search(text, position)
            if end:
                position, search.after_thought = end.end(), True
            elif cut:
                search.thought_cut = True
                break
            else:
                thought_ends = False
    return search.triple or search.fault()


@dataclass(slots=True)
class _Search:
    """The state of the search."""

    text: str
    after_thought: bool = False
    thought_cut: bool = False
    """Whether the text ends within a thought."""
    triple: dict[str, Item] | None = None
    group: dict[str, Item | ParseFault] = field(default_factory=dict)
    """The lists of the current, incomplete triple."""
    latest: str = ""
    """The name that was read last."""
    broken: ParseFault | None = None
    """The first fault of the last unreadable triple."""
    failures: int = 0
    unlisted: dict[str, int] = field(default_factory=dict)
    """Names that no list follows, each with the position of the text that follows instead."""

    def take(self, mark: re.Match[str]) -> int:
        """Read the list after a name; returns the position where the search goes on."""
        name = next(name for name in NAMES if mark[name])
        if not mark["open"]:
            if mark["assigned"]:
                self.unlisted[name] = mark.end()
            return mark.end()
        if name != self.latest and isinstance(self.group.get(name), Item):
            self.group = {}
        read, end = read_list(self.text, mark.end() - 1, name)
        if isinstance(read, ParseFault):
            self.failures += 1
            end = end if self.failures > PATIENCE else mark.end()
        self.group[name], self.latest = read, name
        if len(self.group) == len(NAMES):
            if fault := _first_fault(self.group):
                self.broken = fault
            else:
                self.triple = {name: item for name, item in self.group.items() if isinstance(item, Item)}
            self.group, self.latest = {}, ""
        return end

    def fault(self) -> ParseFault:
        """Why there is no triple."""
        return _first_fault(self.group) or self.broken or self._missing()

    def _missing(self) -> ParseFault:
        if self.thought_cut:
            message = "Expected the lists model_id, subtasks and access_list, found a <think> block that is cut off."
            return ParseFault("missing_list", message)
        missing = [name for name in NAMES if name not in self.group]
        for name in missing:
            at = self.unlisted.get(name)
            if at is not None:
                here = (
                    found(self.text[at:].split("\n", 1)[0]) if at < len(self.text) else "the end of the text"
                )
                message = f"Expected a list in square brackets for {name}, found {here}."
                return ParseFault("not_a_list", message, at)
            if misnamed := _MISNAMED[name].search(self.text):
                message = f"Expected a list called {name}, found {found(misnamed[1])}."
                return ParseFault("misnamed_list", message, misnamed.start())
        where = " after the <think> block" if self.after_thought else ""
        absent = " and ".join(f"no {name}" for name in missing) if self.group else "none of them"
        message = f"Expected the lists model_id, subtasks and access_list{where}, found {absent}."
        return ParseFault("missing_list", message)


def _first_fault(group: dict[str, Item | ParseFault]) -> ParseFault | None:
    return next((read for read in group.values() if isinstance(read, ParseFault)), None)
