r"""Numbers inside LaTeX in one notation: `1{,}000` as 1000, `1.234,50` as 1234.50, `0.(3)` as `\\frac{1}{3}`.

Used by `latex`, which rewrites all else. For a text that is one number alone there is `podium.reading.numerals`.
"""

from __future__ import annotations

import re
from fractions import Fraction

_GROUPED = re.compile(
    r"(?<![\d.,])(?:"
    r"\d{1,3}(?:(?:\{,\}|,\\! ?|\\[,;:! ]|~|[ \u00a0\u2009\u202f])\d{3})+(?!\d)"
    r"|(?<![(\[{])[1-9]\d{0,2}(?>(?:,\d{3})+)(?!\d)|[1-9]\d{0,2}(?>(?:,\d{3})+)(?!\d|\s*[)\]}\\])"
    r")"
)
"""A number with digits in groups of three. In brackets that hold nothing else, commas separate numbers: (100,200)."""
_POINTED = re.compile(
    r"(?<![\d.,(\[{])(?:(\d{1,3}(?:\.\d{3})+),(\d{1,2})(?![\d.,])|(\d{1,3}(?:\.\d{3}){2,})(?![\d.,]\d|\d))"
)
"""A number with points between groups of digits: `1.234,50`, `1.234.567`."""
_REPEATED = (
    (re.compile(r"\\dot ?\{?(\d)\}?(\d{0,40})\\dot ?\{?(\d)\}?"), r"\\overline{\1\2\3}"),
    (re.compile(r"\\(?:dot|bar|overline) ?(?:\{(\d{1,40})\}|(\d))"), r"\\overline{\1\2}"),
    (re.compile(r"(?<!\d)(\d{0,40}\.\d{0,40})\((\d{1,40})\)(?![\w(^])"), r"\1\\overline{\2}"),
)
"""Other notations of `0.\\overline{3}`: `0.\\dot{3}`, `0.(3)`."""
_REPEATING = re.compile(r"(?<!\d)(\d{0,40})\.(\d{0,40})\\overline\{(\d{1,40})\}")
_IN_PERCENT = re.compile(r"(?<![\d.])(\d{1,9})? ?\\frac\{(\d{1,9})\}\{(\d{1,9})\}\\%")


def plain_numbers(text: str) -> str:
    """Write grouped numbers without their groups, decimals with a point, and decimals that repeat as fractions."""
    plain = _GROUPED.sub(lambda match: re.sub(r"\D", "", match.group()), text)
    plain = _POINTED.sub(_with_point, plain)
    for pattern, by in _REPEATED:
        plain = pattern.sub(by, plain)
    return _REPEATING.sub(_as_fraction, plain)


def decimal_percent(text: str) -> str:
    r"""Write `4\frac{1}{5}\%` as `4.2\%`; without the sign, if it has no end in decimals."""
    return _IN_PERCENT.sub(_in_percent, text)


def _with_point(match: re.Match[str]) -> str:
    whole, decimals, grouped = match.groups()
    return f"{whole.replace('.', '')}.{decimals}" if whole else grouped.replace(".", "")


def _in_percent(match: re.Match[str]) -> str:
    whole, above, below = (int(part or 0) for part in match.groups())
    value = Fraction(above + whole * below, below) if below else None
    if value is None or 10**9 % value.denominator:
        return match[0].removesuffix("\\%")
    return f"{float(value):.9f}".rstrip("0").rstrip(".") + "\\%"


def _as_fraction(match: re.Match[str]) -> str:
    """`0.1\\overline{6}` as `\\frac{1}{6}`."""
    whole, fixed, repeated = match.groups()
    value = Fraction(
        int(f"{whole}{fixed}{repeated}") - int(f"{whole}{fixed}" or 0),
        (10 ** len(repeated) - 1) * 10 ** len(fixed),
    )
    return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"
