"""What documents show a reader: fenced blocks, the commands of shell blocks, and commands named within sentences.

Reads Markdown alone; runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
)
SHELL = ("sh", "bash", "console")
RUN = (*SHELL, "python")
"""Languages of blocks that are run."""
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_INDENTED = re.compile(r"(?:^    .*\n)+", re.MULTILINE)
_WITHIN_A_FILE = re.compile(r"(?:^|[\s=/])(podium [a-z].*)$", re.MULTILINE)
_OUTPUT = re.compile(r"podium(?:\.\w+)?: ")
_PROGRAMS = "podium|make|python3?|pytest|pip|hf|inspect|git|curl"
_COMMAND = re.compile(rf"(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(?:(?:{_PROGRAMS})(?= )|(?:runs|benchmarks)/\w)")


@dataclass(frozen=True, slots=True)
class Command:
    """One command as a document shows it, without its comment; lines that go on with a backslash are one."""

    text: str
    place: str
    """The document, with the line."""

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


@dataclass(frozen=True)
class Block:
    """What stands between two fences."""

    path: Path
    language: str
    text: str
    line: int
    """Of its first line in the document, from 1."""

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"

    @cached_property
    def commands(self) -> tuple[Command, ...]:
        """Of a shell block, in order."""
        name = self.path.relative_to(ROOT)
        return tuple(Command(text, f"{name}:{self.line + at}") for at, text in logical_lines(self.text))


def blocks(path: Path) -> list[Block]:
    """All fenced blocks of a document."""
    text = path.read_text(encoding="utf-8")
    return [
        Block(path, found[1], found[2], text.count("\n", 0, found.start(2)) + 1)
        for found in _FENCE.finditer(text)
    ]


def named(path: Path) -> Iterator[Command]:
    """Commands outside of shell blocks: named within a sentence, within a file that is shown, or loose."""
    text = _unfenced(path)
    for found in _SPAN.finditer(text):
        if _COMMAND.match(found[1]):
            yield _command(path, text, found.start(), found[1])
    whole = path.read_text(encoding="utf-8")
    for fence in _FENCE.finditer(whole):
        if fence[1] not in RUN:
            for found in _WITHIN_A_FILE.finditer(fence[2]):
                yield _command(path, whole, fence.start(2) + found.start(), found[1])
    yield from loose(path)


def loose(path: Path) -> Iterator[Command]:
    """Commands in blocks that are indented, or fenced as no language."""
    whole, text = path.read_text(encoding="utf-8"), _unfenced(path)
    shown = [(whole, fence.start(2), fence[2]) for fence in _FENCE.finditer(whole) if not fence[1]]
    shown += [
        (text, found.start(), re.sub(r"^    ", "", found[0], flags=re.MULTILINE))
        for found in _INDENTED.finditer(text)
    ]
    for within, start, block in shown:
        for at, line in logical_lines(block):
            if _COMMAND.search(line) and not _OUTPUT.match(line):
                place = f"{path.relative_to(ROOT)}:{within.count(chr(10), 0, start) + 1 + at}"
                yield Command(line, place)


def logical_lines(text: str) -> list[tuple[int, str]]:
    """Commands of a shell text, each with its line from 0: comments are gone, lines that belong together are one."""
    found: list[tuple[int, str]] = []
    words, quote, line, began = "", "", 0, 0
    position = 0
    while position < len(text):
        letter = text[position]
        line += letter == "\n"
        if letter == "\\" and quote != "'":
            following = text[position + 1 : position + 2]
            line += following == "\n"
            words += "" if following == "\n" else letter + following
            position += 2
            while following == "\n" and not quote and text[position : position + 1] == " ":
                position += 1
            continue
        if letter == "#" and not quote and (not words or words[-1].isspace()):
            position = text.find("\n", position) if "\n" in text[position:] else len(text)
            continue
        if letter in "'\"" and quote in ("", letter):
            quote = "" if quote else letter
        if letter == "\n" and not quote:
            if words.strip():
                found.append((began, words.strip()))
            words, began = "", line
        else:
            words += letter
        position += 1
    return [*found, (began, words.strip())] if words.strip() else found


def _unfenced(path: Path) -> str:
    """A document's text, with empty lines in place of its fenced blocks."""
    return _FENCE.sub(lambda found: "\n" * found[0].count("\n"), path.read_text(encoding="utf-8"))


def _command(path: Path, text: str, position: int, command: str) -> Command:
    return Command(command, f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, position) + 1}")
