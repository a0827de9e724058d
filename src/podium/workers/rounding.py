"""Reads from a text how to write a number (significant figures, decimals, scientific notation), and writes it so.

Halves are rounded away from zero, as schools teach it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNT = rf"\b(\d{{1,3}}|{'|'.join(_WORDS)})"
_FIGURES = re.compile(rf"{_COUNT}[ \t]+sig(?:nificant|\.)?[ \t]+(?:digit|fig)", re.IGNORECASE)
_PLACES = re.compile(rf"{_COUNT}[ \t]+decimal(?:[ \t]+(?:place|digit)|s\b)", re.IGNORECASE)
_SCIENTIFIC = re.compile(r"\bscientific notation\b", re.IGNORECASE)
_MOST = 300
"""The most figures or decimals."""
_USUAL = 12
"""Figures in scientific notation, if the text names no number of them."""
_WIDE = Context(prec=10_000)


@dataclass(frozen=True, slots=True)
class Rounding:
    """How a text wants its answer written."""

    figures: int | None = None
    """Significant figures."""
    places: int | None = None
    """Decimals; `figures` wins over them."""
    scientific: bool = False
    """As in 1.23e+4."""

    def __bool__(self) -> bool:
        """Whether the text names any of these."""
        return self != Rounding()

    def write(self, value: Fraction) -> str:
        """The value, written so. Zeros at the end are kept only in scientific notation."""
        if self.scientific:
            figures = self.figures or _USUAL
            return f"{_to_figures(value, figures):.{figures - 1}e}"
        rounded = (
            _to_places(value, self.places or 0) if self.figures is None else _to_figures(value, self.figures)
        )
        plain = f"{rounded:f}"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain


def requested_rounding(text: str) -> Rounding:
    """The rounding that a text names; if it names several of one sort, the last."""
    figures = _last(_FIGURES, text)
    return Rounding(
        None if figures is None else max(1, figures),
        _last(_PLACES, text),
        _SCIENTIFIC.search(text) is not None,
    )


def _last(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.findall(text)
    if not found:
        return None
    return min(_MOST, int(found[-1]) if found[-1].isdigit() else _WORDS.index(found[-1].lower()))


def _to_figures(value: Fraction, figures: int) -> Decimal:
    if not value:  # Decimal writes a quotient of 0 as 0.00e+2.
        return Decimal(0).scaleb(1 - figures)
    context = Context(prec=figures, rounding=ROUND_HALF_UP)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _to_places(value: Fraction, places: int) -> Decimal:
    scaled = abs(value) * 10**places
    whole = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    return Decimal(-whole if value < 0 else whole).scaleb(-places, _WIDE)
