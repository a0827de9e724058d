r"""Notations of numbers: the number that a short text states, and the numbers inside LaTeX in one notation.

`read_number` reads `1,234.50`, `1.234,50`, `$12`, `45 %`, `3 apples`, `3 1/2`, `\frac{7}{2}`. Graders and votes use it.
It computes nothing but the value of a fraction or a periodic decimal; for formulas there is the grader `math`, which
has `plain_numbers` rewrite theirs.
"""

from __future__ import annotations

import re
from fractions import Fraction
from unicodedata import numeric

from podium.text.answer import to_nfkc
from podium.text.math_words import is_unit

_MAX_TEXT_CHARS = 200
_DIGIT, _MARK = re.compile("[\\d¼-¾⅐-⅞]"), re.compile(r"[^\w\s.,%/+=-]|_|[^\x00-\x7f]")
_QUOTES = " \t\n*`\"'“”"
_EMPHASIS = re.compile(r"(\*\*|__|[*_`$])([-+−]?(?:[$€£]\s?)?\d[\d.,/]*\s?%?)\1(?!\w)")
"""A number alone in emphasis or in LaTeX: `**63**`, `$63$`."""
_PLAIN = tuple(
    (re.compile(pattern), by)
    for pattern, by in (
        ("[−‒–]", "-"),
        ("²", "^2"),
        ("³", "^3"),
        (r"([¼½¾⅐-⅞])", r" \1"),
        (r"(?<!\\)\$([^$]*)(?<!\\)\$", r" \1 "),
        (r"\\(?:text[a-z]*|mbox|math(?:rm|bf|it|sf)|operatorname|boxed|fbox)\s*\{([^{}]*)\}", r" \1 "),
        (r"\\[()\[\]]|\\(?:left|right)(?![a-z])\.?", " "),
        (r"\{,\}|,\\!", ","),
        (r"\s+\^", "^"),
        (r"\\[,;:! ]|~|\\q?quad(?![a-z])", " "),
        (r"\\([%$€£])", r"\1"),
        (r"\^?\s*\{?\s*\\circ\s*\}?|\\degree(?![a-z])", "°"),
        (r"\\[dtc]?frac\s*(\d)\s*(\d)(?!\d)", r" \1/\2"),
        (r"\\[dtc]?frac\s*\{\s*(-?\d{1,50})\s*\}\s*\{\s*(\d{1,50})\s*\}", r" \1/\2"),
        (r"\\overline\s*\{(\d{1,40})\}|\\(?:dot|bar)\s*\{?(\d)\}?", r"(\1\2)"),
        (
            r"\s*(?:\\times|\\cdot|[×*·⋅]|(?<=\d)\s?[xX])\s*10\s*\^\s*\{?\s*([-+]?\d{1,3})\s*\}?(?=\s|$)",
            r"e\1",
        ),
    )
)
_EQUATION = re.compile(r"^(?!.*(?:\bor\b|\band\b|[;|]|,\s)).*=\s*")
"""Everything up to the last equals sign, unless the text has several results."""
_CURRENCY = re.compile(
    r"^([-+]?)\s*(?:(?:US|CA|AU|HK)?\$|[€£¥₹₽₩]|(?:EUR|USD|GBP|CHF|Rs\.?)(?=\s))\s*(?=[-+.\d])"
)
_UNIT = re.compile(
    r"""(?<=[\d)⅞¼½¾⅐-⅝])(?:
        \s*(?:[%$€£¥₹₽₩]|°\s?[CFK]?|\\?(?:Omega|mu\s?[A-Za-z])|\([A-Za-z\s-]+\)
            |(?:[kcdmnµμ]m|[kcm]g|[cdm]l|lbs?|oz|mph|km/h|kph|hrs?|min|secs?|ms|[kMG]Hz|[kMGT]B|k[WJ])(?:\^[23])?)
      | \s+[mgshdlLFKNJWV](?:\^[23])?
      | \s+[A-Za-zΩ°µμ][A-Za-zΩ°µμ³/.'-]+(?:\^[23])?(?:\s[A-Za-z°/.'-]+(?:\^[23])?){0,3}
    )$""",
    re.VERBOSE,
)
"""A per cent sign, a currency, or one to four words, after the number."""
_NOTATIONS = tuple(
    (re.compile(pattern), separators, point)
    for pattern, separators, point in (
        (r"\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?", ",", "."),  # 1,234.5 and 12,34,567
        (r"\d{1,3}(?:[ ']\d{3})+(?:\.\d+)?", " '", "."),
        (r"\d{1,3}(?:[ '.]\d{3})+,\d+", " '.", ","),
        (r"\d{1,3}(?:\.\d{3}){2,}", ".", ","),
        (r"\d+,\d+", "", ","),
    )
)
"""Notations of numbers, the marks between their groups of digits, and the mark before their decimals."""
_DECIMAL = re.compile(r"(\d{0,60})(?:\.(\d{0,60})(?:\((\d{1,40})\))?)?(?:[eE]([-+]?\d{1,3}))?")
_FRACTION = re.compile(r"(?:(\d{1,50}) )?(\d{1,50}) ?[/\u2044] ?(\d{1,50})|(\d{1,50})? ?([¼½¾⅐-⅞])")

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


def read_number(text: str, *, fractions: bool = True) -> Fraction | None:
    """The number that a text states, or None if it states no number or several. `1/2` is a number with `fractions`.

    Quotes, a currency, a per cent sign and a unit of at most four words count for nothing, unless a word changes the
    value: not "3 dozen". A comma separates thousands (`1,234`) if three digits follow it, and else the decimals.
    """
    if len(text) > _MAX_TEXT_CHARS or not _DIGIT.search(text):
        return None
    plain = without_emphasis(to_nfkc(text))
    if _MARK.search(plain):
        for pattern, by in _PLAIN:
            plain = pattern.sub(by, plain)
    plain = " ".join(plain.split()).strip(_QUOTES).rstrip(".,;:" + _QUOTES)
    if plain.startswith("{") and plain.endswith("}"):
        plain = plain[1:-1].strip()
    plain = _CURRENCY.sub(r"\1", _EQUATION.sub("", plain))
    unit = _UNIT.search(plain)
    if unit and is_unit(unit[0]):
        plain = plain[: unit.start()].rstrip()
    value = _unsigned(plain.lstrip("+-").lstrip() if plain[:2] not in {"--", "+-", "-+"} else "", fractions)
    return -value if value is not None and plain.startswith("-") else value


def without_emphasis(text: str) -> str:
    """The text in which numbers stand without emphasis and dollar signs around them: `**63** apples` is `63 apples`."""
    return _EMPHASIS.sub(r"\2", text)


def plain_numbers(text: str) -> str:
    """Write grouped numbers without their groups, decimals with a point, and decimals that repeat as fractions."""
    plain = _GROUPED.sub(lambda match: re.sub(r"\D", "", match.group()), text)
    plain = _POINTED.sub(_with_point, plain)
    for pattern, by in _REPEATED:
        plain = pattern.sub(by, plain)
    return _REPEATING.sub(lambda match: latex_fraction(_decimal(*match.groups())), plain)


def decimal_percent(text: str) -> str:
    r"""Write `4\frac{1}{5}\%` as `4.2\%`; without the sign, if it has no end in decimals."""
    return _IN_PERCENT.sub(_in_percent, text)


def latex_fraction(value: Fraction) -> str:
    """A value as `\\frac{1}{6}`."""
    return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"


def sign_value(sign: str) -> Fraction:
    """The value of a fraction that is one character, such as `½`."""
    return Fraction(numeric(sign)).limit_denominator(10)


def _unsigned(text: str, fractions: bool) -> Fraction | None:
    fraction = _FRACTION.fullmatch(text) if fractions else None
    if fraction:
        whole, above, below, before, sign = fraction.groups()
        if sign:
            return int(before or 0) + sign_value(sign)
        return int(whole or 0) + Fraction(int(above), int(below)) if int(below) else None
    for pattern, separators, point in _NOTATIONS:
        if pattern.fullmatch(text) and not text.startswith("0,"):
            text = text.translate(dict.fromkeys(map(ord, separators))).replace(point, ".")
            break
    decimal = _DECIMAL.fullmatch(text.replace(",", ".") if text.startswith("0,") else text)
    if decimal is None or not (decimal[1] or decimal[2]):
        return None
    whole, fixed, repeated, power = (part or "" for part in decimal.groups())
    return _decimal(whole, fixed, repeated) * Fraction(10) ** int(power or 0)


def _decimal(whole: str, fixed: str, repeated: str) -> Fraction:
    """`whole.fixed`, with digits behind it that repeat for ever: 0.1(6) is 1/6."""
    value = Fraction(int(f"{whole}{fixed}" or 0), 10 ** len(fixed))
    nines = (10 ** len(repeated) - 1) * 10 ** len(fixed)
    return value + Fraction(int(repeated), nines) if repeated else value


def _with_point(match: re.Match[str]) -> str:
    whole, decimals, grouped = match.groups()
    return f"{whole.replace('.', '')}.{decimals}" if whole else grouped.replace(".", "")


def _in_percent(match: re.Match[str]) -> str:
    whole, above, below = (int(part or 0) for part in match.groups())
    value = Fraction(above + whole * below, below) if below else None
    if value is None or 10**9 % value.denominator:
        return match[0].removesuffix("\\%")
    return f"{float(value):.9f}".rstrip("0").rstrip(".") + "\\%"
