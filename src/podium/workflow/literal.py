r"""Reads one list or object in the notation of Python or JSON from any position of a text. It evaluates nothing.

    list   = "[" [ item { "," item } [ "," ] ] "]"             nested at most 4 deep
    object = "{" [ field { "," field } [ "," ] ] "}"           only where objects are read; counts as nesting
    field  = ( string | word ) ":" item                        of a key that repeats, the last counts
    item   = list | object | string | number | word
    string = "..." | '...' | either of them tripled | “...” | ‘...’ | `...`
    number = [ "+" | "-" ] digit { digit }                     at most 9 digits
    word   = anything else up to a space, comma, bracket or quotation mark; in an object also up to a brace or colon

Between tokens: spaces, line breaks, `# ...` and `// ...` comments, a bullet at the start of a line.
Strings may contain line breaks and the escapes of Python and JSON; any other backslash is an ordinary character. In
'...' and ‘...’ a quotation mark before a letter or digit is an apostrophe. The time is linear in the length read.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from podium.workflow.parse_error import ParseError, quote_fragment

MAX_NESTING = 4


class Item(NamedTuple):
    """One value, with its position."""

    value: list[Item] | dict[str, Item] | str | int
    at: int
    """The position of the value's first character in the text."""
    bare: bool = False
    """Whether the value is a word without quotation marks, such as `all` or `None`."""


_GAP = r"(?>(?:\n[ \t]*+[-*+•>](?=[ \t])|[\s\u200b\ufeff]|\#[^\n]*+|//[^\n]*+)*)"


def _tokens(braces: str, stops: str) -> re.Pattern[str]:
    """The pattern of one token. `braces` are alternatives that only objects have, and `stops` characters that end a
    number or a word only in an object."""
    return re.compile(
        rf"""{_GAP}(?:
      (?P<open> \[ ) | (?P<close> \] ) | (?P<comma> [,，] ) {braces}
    | (?P<string3> \"""(?> (?: [^"\\]++ | \\. | "(?!"") )* ) \""" | '''(?> (?: [^'\\]++ | \\. | '(?!'') )* ) ''' )
    | (?P<string>
          "(?!"") [^"\\]*+ (?> (?: \\. [^"\\]*+ )* ) "
        | '(?!'') (?> (?: [^'\\]++ | \\. | '(?=\w) )* ) '
        | [“”„] [^“”\\]*+ (?> (?: \\. [^“”\\]*+ )* ) [“”]
        | ‘ (?> (?: [^’\\]++ | \\. | ’(?=\w) )* ) ’
        | `[^`\n]++` )
    | (?P<number> [+-]?[0-9]{{1,9}} (?= [\s,，\]\#{stops}] ) )
    | (?P<word> [^\s,，\[\]"'“”„‘’`{stops}]++ ) )""",
        re.VERBOSE | re.DOTALL,
    )


_TOKEN = _tokens("", "")
_OBJECT_TOKEN = _tokens(r"| (?P<open_object> \{ ) | (?P<close_object> \} ) | (?P<colon> [:：] )", "{}:：")
_GAP_ALONE = re.compile(_GAP)
_STRETCH = re.compile(r"""[“”„‘’"'`,，\[\]]|[^\s,，\[\]]{1,40}""")
_QUOTES = "\"'“”„‘`"
_CLOSING = {"“": "”", "”": "”", "„": "“", "‘": "’", "[": "]", "{": "}"}

_ESCAPE = re.compile(
    r"""\\(?: ([\\"'“”‘’/abfnrtv\n]) | x([0-9a-fA-F]{2}) | u([0-9a-fA-F]{4})
        | U(000[0-9a-fA-F]{5} | 0010[0-9a-fA-F]{4}) )""",
    re.VERBOSE,
)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": ""}
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def read_list(text: str, at: int, name: str) -> tuple[Item | ParseError, int]:
    """Read the list that opens at `text[at]`. Returns the list or its fault, and the position where reading stopped.
    `name` is the list's name in messages."""
    return _read(text, at, name, _TOKEN)


def read_object(text: str, at: int, name: str) -> tuple[Item | ParseError, int]:
    """Read the object that opens at `text[at]`, as `read_list` reads a list."""
    return _read(text, at, name, _OBJECT_TOKEN)


def _read(text: str, at: int, name: str, tokens: re.Pattern[str]) -> tuple[Item | ParseError, int]:
    outermost = _empty_item(text, at)
    reader, position = _Reader(text, name, outermost), at + 1
    while token := tokens.match(text, position):
        kind, position = token.lastgroup or "", token.end()
        fault = reader.take(kind, token[kind], token.start(kind))
        if fault is not None or not reader.open:
            return fault or outermost, position
    return reader.unclosed(position), len(text)


class _Reader:
    """Takes the tokens after the opening bracket of `outermost`, one by one, until its closing bracket."""

    def __init__(self, text: str, name: str, outermost: Item) -> None:
        self._text = text
        self._name = name
        self.open = [outermost]
        self._last = outermost
        self._key: Item | None = None
        """The key whose colon or value comes next. None if no key is waiting."""
        self._expects: Literal["item", "key", "colon", "comma"] = self._first(outermost)

    def take(self, kind: str, written: str, at: int) -> ParseError | None:
        """Take one token of `kind`. Returns a fault if the token must not be here."""
        if self._expects == "colon":
            self._expects = "item"
            return None if kind == "colon" else self._misplaced_mark(at, "':' after a key")
        if kind.startswith("close"):
            return self._close(written, at)
        if self._expects == "comma":
            self._expects = self._first(self.open[-1])
            return None if kind == "comma" else self._missing_comma(at)
        if kind == "comma":
            return ParseError("misplaced_comma", f"Expected an entry of {self._name}, found ','.", at)
        if self._expects == "key":
            self._key, self._expects = _item(kind, written, at), "colon"
            is_key = kind in ("string", "string3", "word")
            return None if is_key else self._misplaced_mark(at, "a key in quotation marks")
        return self._take_item(kind, written, at)

    def _take_item(self, kind: str, written: str, at: int) -> ParseError | None:
        opens = kind.startswith("open")
        if opens and len(self.open) == MAX_NESTING:
            expected = f"Expected brackets at most {MAX_NESTING} deep in {self._name}"
            return ParseError("too_deep", f"{expected}, found another '{written}'.", at)
        self._last = _empty_item(self._text, at) if opens else _item(kind, written, at)
        around = self.open[-1].value
        if isinstance(around, dict) and self._key is not None:
            around[str(self._key.value)], self._key = self._last, None
        elif isinstance(around, list):
            around.append(self._last)
        if opens:
            self.open.append(self._last)
        self._expects = self._first(self._last) if opens else "comma"
        return None

    def _close(self, written: str, at: int) -> ParseError | None:
        closing = self._closing
        if written != closing or self._key is not None:
            return self._misplaced_mark(at, "a value after the key" if self._key else f"'{closing}'")
        self._last, self._expects = self.open.pop(), "comma"
        return None

    @staticmethod
    def _first(item: Item) -> Literal["item", "key"]:
        return "key" if isinstance(item.value, dict) else "item"

    @property
    def _closing(self) -> str:
        return _CLOSING[self._text[self.open[-1].at]]

    def _quote_at(self, at: int) -> str:
        stretch = _STRETCH.match(self._text, at)
        return quote_fragment(stretch[0] if stretch else self._text[at])

    def _misplaced_mark(self, at: int, expected: str) -> ParseError:
        message = f"Expected {expected} in {self._name}, found {self._quote_at(at)}."
        return ParseError("misplaced_mark", message, at)

    def _missing_comma(self, at: int) -> ParseError:
        before, either = self._last, f"',' or '{self._closing}'"
        if before.bare:
            word = quote_fragment(str(before.value))
            message = (
                f"Expected {either} after {word} in {self._name}, found {self._quote_at(at)}: "
                "put text in quotation marks."
            )
            return ParseError("unquoted_text", message, before.at)
        way_out = ""
        if isinstance(before.value, str) and self._text[at] in _QUOTES:
            way_out = ": put a comma between two texts"
        elif isinstance(before.value, str):
            way_out = r""": write \" for a quotation mark inside a text"""
        message = f"Expected {either} after an entry of {self._name}, found {self._quote_at(at)}{way_out}."
        return ParseError("missing_comma", message, at)

    def unclosed(self, position: int) -> ParseError:
        """The fault of a text that ends at `position`, before the item or a string in it is closed."""
        text, name = self._text, self._name
        gap = _GAP_ALONE.match(text, position)
        start = gap.end() if gap else position
        fence = text.startswith("```", start)
        if fence or start == len(text):
            closing, end = self._closing, "fence" if fence else "text"
            message = f"Expected '{closing}' at the end of {name}, found the end of the {end}."
            return ParseError("unclosed_list" if closing == "]" else "unclosed_object", message, position)
        quote = text[start : start + 3] if text[start : start + 3] in ('"""', "'''") else text[start]
        closing = _CLOSING.get(quote, quote)
        message = f"Expected a closing {closing} for a text of {name}, found the end of the text."
        return ParseError("unclosed_text", message, start)


def _empty_item(text: str, at: int) -> Item:
    return Item([] if text[at] == "[" else {}, at)


def _item(kind: str, written: str, at: int) -> Item:
    if kind in ("word", "colon"):
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
