r"""Reads one list in the notation of Python or JSON from any position of a text. It evaluates nothing.

    list   = "[" [ item { "," item } [ "," ] ] "]"             nested at most 4 deep
    item   = list | string | number | word
    string = "..." | '...' | either of them tripled | “...” | ‘...’ | `...`
    number = [ "+" | "-" ] digit { digit }                     at most 9 digits
    word   = anything else up to a space, comma, bracket or quotation mark

Between tokens: spaces, line breaks, `# ...` and `// ...` comments, a bullet at the start of a line.
Strings may contain line breaks and the escapes of Python and JSON; any other backslash is an ordinary character. In
'...' and ‘...’ a quotation mark before a letter or digit is an apostrophe. The time is linear in the length read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from podium.workflow.fault import ParseFault, found

MAX_NESTING = 4


class Item(NamedTuple):
    """One value, with its position."""

    value: list[Item] | str | int
    at: int
    """Position of its first character in the text."""
    bare: bool = False
    """A word without quotation marks, such as `all` or `None`."""


_GAP = r"(?>(?:\n[ \t]*+[-*+•>](?=[ \t])|[\s\u200b\ufeff]|\#[^\n]*+|//[^\n]*+)*)"
_TOKEN = re.compile(
    rf"""{_GAP}(?:
      (?P<open> \[ ) | (?P<close> \] ) | (?P<comma> [,，] )
    | (?P<string3> \"""(?> (?: [^"\\]++ | \\. | "(?!"") )* ) \""" | '''(?> (?: [^'\\]++ | \\. | '(?!'') )* ) ''' )
    | (?P<string>
          "(?!"") [^"\\]*+ (?> (?: \\. [^"\\]*+ )* ) "
        | '(?!'') (?> (?: [^'\\]++ | \\. | '(?=\w) )* ) '
        | [“”„] [^“”\\]*+ (?> (?: \\. [^“”\\]*+ )* ) [“”]
        | ‘ (?> (?: [^’\\]++ | \\. | ’(?=\w) )* ) ’
        | `[^`\n]++` )
    | (?P<number> [+-]?[0-9]{{1,9}} (?= [\s,，\]\#] ) )
    | (?P<word> [^\s,，\[\]"'“”„‘’`]++ ) )""",
    re.VERBOSE | re.DOTALL,
)
_GAP_ALONE = re.compile(_GAP)
_STRETCH = re.compile(r"""[“”„‘’"'`,，\[\]]|[^\s,，\[\]]+""")
_QUOTES = "\"'“”„‘`"
_CLOSING = {"“": "”", "”": "”", "„": "“", "‘": "’"}

_ESCAPE = re.compile(
    r"""\\(?: ([\\"'“”‘’/abfnrtv\n]) | x([0-9a-fA-F]{2}) | u([0-9a-fA-F]{4})
        | U(000[0-9a-fA-F]{5} | 0010[0-9a-fA-F]{4}) )""",
    re.VERBOSE,
)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""}
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def read_list(text: str, at: int, name: str) -> tuple[Item | ParseFault, int]:
    """Read the list that opens at `text[at]`: the list or the fault in it, and the position where reading stopped.

    Args:
        name: of the list, for messages.
    """
    items: list[Item] = []
    outermost = Item(items, at)
    outer: list[list[Item]] = []  # the open lists that contain `items`
    position, fresh = at + 1, True  # fresh: an item may come next
    while token := _TOKEN.match(text, position):
        kind = token.lastgroup
        position = token.end()
        start = token.start(kind or 0)
        if kind == "comma":
            if fresh:
                return ParseFault(
                    "misplaced_comma", f"Expected an entry of {name}, found ','.", start
                ), position
            fresh = True
        elif kind == "close":
            if not outer:
                return outermost, position
            items, fresh = outer.pop(), False
        elif not fresh:
            return _missing_comma(text, start, name, items[-1]), position
        elif kind == "open":
            if len(outer) + 1 == MAX_NESTING:
                message = f"Expected brackets at most {MAX_NESTING} deep in {name}, found another '['."
                return ParseFault("too_deep", message, start), position
            inner: list[Item] = []
            items.append(Item(inner, start))
            outer.append(items)
            items = inner
        else:
            items.append(_item(kind or "", token[kind or 0], start))
            fresh = False
    return _unclosed(text, position, name), len(text)


def _item(kind: str, written: str, at: int) -> Item:
    if kind == "word":
        return Item(written, at, bare=True)
    if kind == "number":
        return Item(int(written), at)
    quotes = 3 if kind == "string3" else 1
    return Item(_unescape(written[quotes:-quotes]), at)


def _unescape(written: str) -> str:
    if "\\" not in written:
        return written
    plain = _ESCAPE.sub(_character, written)
    return _SURROGATE_PAIR.sub(_join, plain)


def _character(escape: re.Match[str]) -> str:
    if letter := escape[1]:
        return _ESCAPED.get(letter, letter)
    return chr(int(escape[escape.lastindex or 0], 16))


def _join(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")


def _missing_comma(text: str, at: int, name: str, before: Item) -> ParseFault:
    stretch = _STRETCH.match(text, at)
    here = found(stretch[0] if stretch else text[at])
    if before.bare:
        word = found(str(before.value))
        message = f"Expected ',' or ']' after {word} in {name}, found {here}: put text in quotation marks."
        return ParseFault("unquoted_text", message, before.at)
    way_out = ""
    if isinstance(before.value, str) and text[at] in _QUOTES:
        way_out = ": put a comma between two texts"
    elif isinstance(before.value, str):
        way_out = r""": write \" for a quotation mark inside a text"""
    return ParseFault(
        "missing_comma", f"Expected ',' or ']' after an entry of {name}, found {here}{way_out}.", at
    )


def _unclosed(text: str, position: int, name: str) -> ParseFault:
    gap = _GAP_ALONE.match(text, position)
    start = gap.end() if gap else position
    fence = text.startswith("```", start)
    if fence or start == len(text):
        message = f"Expected ']' at the end of {name}, found the end of the {'fence' if fence else 'text'}."
        return ParseFault("unclosed_list", message, position)
    quote = text[start : start + 3] if text[start : start + 3] in ('"""', "'''") else text[start]
    closing = _CLOSING.get(quote, quote)
    message = f"Expected a closing {closing} for a text of {name}, found the end of the text."
    return ParseFault("unclosed_text", message, start)
