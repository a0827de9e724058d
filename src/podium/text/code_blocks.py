"""Fenced blocks of Markdown, and which of them holds the program. Tools and graders find code with it.

Blocks are read as CommonMark says (spec 0.31, section 4.5), with two liberties that models take: tags such as
`<answer>` may stand on a fence's line, and a block of Python that cannot be parsed because a fence stands in its text
goes on to a later fence. The plan language has a reader of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection
from typing import NamedTuple

from podium.text.syntax import parse_program

PYTHON = frozenset({"python", "python2", "python3", "py", "py2", "py3", "ipython", "ipython3"})
"""Languages that a fence names for Python, in small letters."""
_OPENING = re.compile(
    r"(?P<item>(?:(?:[-*+]|\d{1,9}[.)])[ ]+)*)(?:</?[A-Za-z]\w*>[ ]*)*(?P<fence>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)"
)
_CLOSING = re.compile(r"(?P<fence>`{3,}|~{3,})\s*(?:</[A-Za-z]\w*>\s*)*")
_ITEM = re.compile(r"(?:(?:[-*+]|\d{1,9}[.)])(?:[ ]+|$))+")
_DOING = (ast.Call, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_EXTRA_INDENT = 3
"""Spaces by which a fence may be indented further than what it stands in."""
_MAX_INNER_FENCES = 20
"""Fences inside a program that are tried as its end."""


class FencedBlock(NamedTuple):
    """One fenced block of a text."""

    language: str
    """The first word behind the opening fence, in small letters, or ""."""
    content: str
    """The lines between the fences, without the indentation of the opening one."""


def fenced_blocks(text: str) -> list[FencedBlock]:
    """The fenced blocks of a text, in order, without those that are blank. A block that is not closed ends with it."""
    lines = text.splitlines(keepends=True)
    blocks: list[FencedBlock] = []
    index = offset = 0
    while index < len(lines):
        bare, indent = _unindented(lines[index])
        opening = _OPENING.fullmatch(bare) if indent <= offset + _EXTRA_INDENT else None
        item = _ITEM.match(bare)
        if item and indent <= offset + _EXTRA_INDENT:
            offset = indent + len(item[0])
        elif indent == 0 and bare:
            offset = 0
        index += 1
        if opening:
            language = _language(opening["info"])
            end = _end(lines, index, opening["fence"], language, indent + len(opening["item"]))
            content = _content(lines[index:end], indent + len(opening["item"]))
            blocks += [FencedBlock(language, content)] if content.strip() else []
            index = end + 1
    return blocks


def last_block(
    text: str, languages: Collection[str] = (), reads: Callable[[str], bool] = lambda content: True
) -> str | None:
    """The content of the last block in one of these languages; else of the last that `reads` accepts; else of the last.
    None if the text has no block that is not blank."""
    blocks = fenced_blocks(text)
    tagged = (block.content for block in reversed(blocks) if block.language in languages)
    accepted = (block.content for block in reversed(blocks) if reads(block.content))
    return next(tagged, None) or next(accepted, None) or (blocks[-1].content if blocks else None)


def last_program(text: str) -> str | None:
    """The content of the block that holds the program: the last tagged as Python, else the last that parses, else the
    last. None if the text has no block."""
    return last_block(text, PYTHON, is_program)


def is_program(text: str) -> bool:
    """Whether a text is Python that defines or calls something. Words and values alone are Python, too."""
    tree = _parse(text)
    return tree is not None and any(isinstance(node, _DOING) for node in ast.walk(tree))


def _parse(text: str) -> ast.Module | None:
    try:
        return parse_program(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _unindented(line: str) -> tuple[str, int]:
    """A line without its indentation and its end, and the columns of the indentation."""
    bare = line.strip()
    return bare, len(line[: len(line) - len(line.lstrip())].expandtabs(4)) if bare else 0


def _language(info: str) -> str:
    """The language that a fence names: `python`, `{.python}`, `python title="a.py"`, `Python3`."""
    return re.split(r"[\s,;:{}]", info.strip().lstrip("{. ").casefold(), maxsplit=1)[0]


def _content(lines: list[str], indent: int) -> str:
    return "".join(re.sub(rf"^[ \t]{{0,{indent}}}", "", line) for line in lines) if indent else "".join(lines)


def _end(lines: list[str], start: int, fence: str, language: str, indent: int) -> int:
    first = None
    tries = 0
    for index in range(start, len(lines)):
        bare, columns = _unindented(lines[index])
        if not bare.startswith(fence[0] * 3) or columns > indent + _EXTRA_INDENT:
            continue
        closing = _CLOSING.fullmatch(bare)
        if first is not None and not closing:
            return first  # another block opens
        if not closing or closing["fence"][0] != fence[0] or len(closing["fence"]) < len(fence):
            continue
        if language not in PYTHON or _parse(_content(lines[start:index], indent)) is not None:
            return index
        first = index if first is None else first
        tries += 1
        if tries == _MAX_INNER_FENCES:
            break
    return len(lines) if first is None else first
