"""The texts of a file of any kind, each with its place: what questions are looked for in.

A table gives the texts of its rows, wherever in them they stand; any other file is text, and gives its paragraphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from podium.errors import UsageError
from podium.rows import Row, is_table, read_rows


def read_any(file: Path) -> Iterator[Row]:
    """The rows of a table, or the paragraphs of a text.

    Raises:
        UsageError: the file is missing, or is neither.
    """
    return read_rows(file) if is_table(file) else _paragraphs(file)


def texts_of(row: Row) -> list[str]:
    """The texts of a row: of each cell, in lists and objects too, and all of them in one."""
    texts: list[str] = []
    left: list[object] = [row.values]
    while left:
        value = left.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, Mapping | list):
            left += reversed(list(value.values()) if isinstance(value, Mapping) else value)
    return [*texts, "\n".join(texts)] if len(texts) > 1 else texts


def _paragraphs(file: Path) -> Iterator[Row]:
    lines: list[str] = []
    try:
        with file.open(encoding="utf-8-sig") as opened:
            for number, line in enumerate(opened, 1):
                if line.strip():
                    lines.append(line)
                elif lines:
                    yield _paragraph(file, number, lines)
                    lines = []
            if lines:
                yield _paragraph(file, number + 1, lines)
    except FileNotFoundError:
        raise UsageError(f"{file}: there is no such file; check the path.") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read as text: {error}.") from None


def _paragraph(file: Path, behind: int, lines: list[str]) -> Row:
    return Row(f"{file.name}, line {behind - len(lines)}", {"text": "".join(lines)})
