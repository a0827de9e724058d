"""How a text wants a number written: rounded to so many figures or decimals, in scientific notation.

Halves go up, away from zero, as schools teach it.
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
"""Figures in scientific notation where the text gives no number."""
_WIDE = Context(prec=10_000)


@dataclass(frozen=True, slots=True)
class Rounding:
    """What a text says of how its answer is to be written."""

    figures: int | None = None
    """Significant ones."""
    places: int | None = None
    """Behind the point; figures win over them."""
    scientific: bool = False
    """As in 1.23e+4."""

    def __bool__(self) -> bool:
        """Whether it says anything."""
        return self != Rounding()

    def write(self, value: Fraction) -> str:
        """A value so written. Zeros at the end are kept in scientific notation alone."""
        if self.scientific:
            figures = self.figures or _USUAL
            return f"{_to_figures(value, figures):.{figures - 1}e}"
        rounded = (
            _to_places(value, self.places or 0) if self.figures is None else _to_figures(value, self.figures)
        )
        plain = f"{rounded:f}"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain


def asked_rounding(text: str) -> Rounding:
    """What a text asks for; where it says several things of one sort, the last."""
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
    if not value:  # A quotient of 0 has no zeros behind its point, and is written as 0.00e+2.
        return Decimal(0).scaleb(1 - figures)
    context = Context(prec=figures, rounding=ROUND_HALF_UP)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _to_places(value: Fraction, places: int) -> Decimal:
    scaled = abs(value) * 10**places
    whole = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    return Decimal(-whole if value < 0 else whole).scaleb(-places, _WIDE)
