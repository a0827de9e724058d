"""Makes texts of models, users and files safe to print: no text can send commands to the terminal.

Control characters, and marks that reorder text, become symbols. Nothing here colours or wraps.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.executor.plan_estimate import Range

_JOINERS = "\u200c\u200d"  # They shape letters and emoji, and can do no harm.


def printable(text: str) -> str:
    """`text` with line breaks and tabs kept, and every other control character shown as a symbol."""
    return re.sub(r"[^\x20-\x7e\n\t]", _shown, text.replace("\r\n", "\n"))


def say(sentence: str, *, stderr: bool = False) -> None:
    """Print a sentence on one line, however wide the terminal is."""
    print(printable(sentence), file=sys.stderr if stderr else sys.stdout)


def shorten(text: str, limit: int) -> str:
    """`text` on one line, at most `limit` characters, printable."""
    line = " ".join(printable(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def dollars(amount: float) -> str:
    """Money with two significant digits, and cents from a dollar on: $0, $0.00012, $0.012, $3.20."""
    if amount <= 0:
        return "$0"
    decimals = 2
    while decimals < 9 and amount < 10 ** (1 - decimals):
        decimals += 1
    return f"${amount:,.{decimals}f}"


def ranged(shown: Callable[[float], str], amount: Range) -> str:
    """The likely amount, with the range in brackets if low and high differ."""
    low, high = shown(amount.low), shown(amount.high)
    return shown(amount.likely) + ("" if low == high else f" ({low} to {high})")


def priced(amount: float, unpriced: bool) -> str:
    """Dollars. What has no known price is never shown as free."""
    if not unpriced:
        return dollars(amount)
    return f"{dollars(amount)} and more, unpriced" if amount else "unpriced"


def seconds(duration: float) -> str:
    """A duration: 0.4 ms, 12 ms, 1.25 s, 83.0 s."""
    if duration < 0.001:
        return f"{duration * 1000:.1f} ms"
    if duration < 0.1:
        return f"{duration * 1000:.0f} ms"
    return f"{duration:.2f} s" if duration < 10 else f"{duration:.1f} s"


def counted(number: int, noun: str) -> str:
    """A number and its noun: 1 call, 1,203 tokens."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def print_columns(rows: Iterable[Sequence[str]]) -> None:
    """Print rows of equally many cells, each column as wide as its longest cell."""
    lines = [[printable(cell).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())


def _shown(match: re.Match[str]) -> str:
    letter = match[0]
    code = ord(letter)
    if code < 0x20:
        return chr(0x2400 + code)
    match unicodedata.category(letter):
        case "Zs":
            return " "
        case "Zl" | "Zp":
            return "\n"
        case "Cc" | "Cf" | "Cs" if letter not in _JOINERS:
            return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return letter
