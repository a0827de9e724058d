r"""One way of writing mathematics: LaTeX without dress, whatever signs, spaces and shorthands it came in.

Stands below `expression`. Rewriting keeps the value: `½`, `\dfrac12` and `\frac{1}{2}` become one, as do `1 000` and
`1{,}000`, `sqrt(2)` and `√2`, `0.\overline{3}` and `\frac{1}{3}`. Degrees and a modulus behind a number are dropped.
Units and words are not its matter.
"""

from __future__ import annotations

import re
from fractions import Fraction

_SIGNS = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "×": r"\times ",
        "·": r"\cdot ",
        "⋅": r"\cdot ",
        "÷": "/",
        "⁄": "/",
        "π": r"\pi ",
        "∞": r"\infty ",
        "≤": r"\le ",
        "≥": r"\ge ",
        "≠": r"\ne ",
        "≈": r"\approx ",
        "∪": r"\cup ",
        "∩": r"\cap ",
        "∈": r"\in ",
        "±": r"\pm ",
        "∅": r"\emptyset ",
        "√": "sqrt",
        "°": r"^\circ ",
        "²": "^2",
        "³": "^3",
        "½": r"\frac{1}{2}",
        "¼": r"\frac{1}{4}",
        "¾": r"\frac{3}{4}",
        "’": "'",
        "“": '"',
        "”": '"',
        "→": r"\to ",
        "⇒": r"\to ",
        "…": r"\dots ",
    }
)
_SUBSCRIPT = re.compile("[₀-₉]+")
_DIGITS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_FUNCTIONS = "sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|sinh|cosh|tanh|log|ln|exp|gcd|lcm|det|pi"
_ALONE = r"(?<![\\A-Za-z])(?:{})(?![A-Za-z])"
_GROUPED = re.compile(
    r"(?<![\d.,])(?:"
    r"\d{1,3}(?:(?:\{,\}|,\\! ?|\\[,;:! ]|~|[ \u00a0\u2009\u202f])\d{3})+(?!\d)"
    r"|(?<![(\[{])[1-9]\d{0,2}(?>(?:,\d{3})+)(?!\d)|[1-9]\d{0,2}(?>(?:,\d{3})+)(?!\d|\s*[)\]}\\])"
    r")"
)
"""A number whose digits stand in groups of three; but commas part numbers that fill their brackets: (100,200)."""
_REPEATING = re.compile(r"(?<!\d)(\d{0,40})\.(\d{0,40})\\overline\{(\d{1,40})\}")
_REWRITES = tuple(
    (re.compile(pattern, re.DOTALL), by)
    for pattern, by in (
        (r"\\(?:boxed|fbox|displaystyle|limits|nolimits)(?![a-z])", ""),
        (r"\\(?:left|right|[bB]igg?[lr]?)(?![a-z])\s*\.?", ""),
        (r"\\(?=[\"'])", ""),
        (r"-\s*(?:\\?\$|[€£¥₹₽])\s*(?=[\d.])", "-"),
        (r"(?<!\\)\\[\[\]()]|\\?\$|[€£¥₹₽]", " "),
        (r"\\[dtc]frac", r"\\frac"),
        (r"\\langle\b", "("),
        (r"\\rangle\b", ")"),
        (r"\\begin\{cases\}(.*?)(?:\\\\)?\s*\\end\{cases\}", lambda found: found[1].replace("\\\\", ", ")),
        (r"\\(?:[Ll]ong)?[Rr]ightarrow\b|\\(?:implies|therefore|to)\b|=>|->", r" \\therefore "),
        (r"\\p?mod\s*(?:\{[^{}]*\}|\d+)|\(\s*\\bmod[^()]*\)", ""),
        (r"\\equiv\b", "="),
        (r"\\varnothing\b", r"\\emptyset"),
        (r"\\[lc]?dots\b|\.\.\.", " "),
        (r"\^\s*\{?\s*\\circ\s*\}?(?:\s*[CF](?![A-Za-z]))?|\\degree\b", " "),
        (r"(?:\\q?quad\b|(?<!\\)\\[,;:!> ]|~|\s)+", " "),
        (r" (?=[,;])", ""),
        (r"(?<!\d)\.(?=\d)", "0."),
        (r"(?<![\w)}])\*\*|\*\*(?![\w(\\-])", ""),
        (r"\*\*", "^"),
        (r"(?<=\d)[eE]([-+]?\d{1,3})(?![\dA-Za-z])", r"\\cdot 10^{\1}"),
        (r"(?<![\d/.,])(\d{1,9}) (\d{1,9}) ?/ ?(\d{1,9})(?![\d/.])", r"\1\\frac{\2}{\3}"),
        (r"(?<=\d)(?:st|nd|rd|th)\b", ""),
        (_ALONE.format("[Ii]nfinity|inf|oo"), r"\\infty "),
        (_ALONE.format(f"({_FUNCTIONS})"), r"\\\1 "),
        (r"(?<![\\A-Za-z])sqrt ?(\d+(?:\.\d+)?|[A-Za-z](?![A-Za-z]))", r"\\sqrt{\1}"),
        (r" ?(?:\\?%|\b(?:percentage|percent|pct)\b)", r"\\%"),
    )
)
_CALLS = (
    (re.compile(r"\\?sqrt ?\("), "\\sqrt{", "}"),
    (re.compile(r"\^ ?\("), "^{", "}"),
    (re.compile(r"\bfloor ?\("), "\\lfloor ", "\\rfloor "),
    (re.compile(r"\bceil ?\("), "\\lceil ", "\\rceil "),
    (re.compile(r"\babs ?\("), "|", "|"),
)
_ENCLOSED = re.compile(r"\{([^{}]*)\}")


def plain_latex(text: str) -> str:
    """The same mathematics without dress."""
    plain = _SUBSCRIPT.sub(
        lambda found: f"_{{{found.group().translate(_DIGITS)}}}", text.strip().translate(_SIGNS)
    )
    if "\\begin" not in plain:
        plain = plain.replace("\\\\", "\\")
    plain = _GROUPED.sub(lambda found: re.sub(r"\D", "", found.group()), plain)
    plain = _REPEATING.sub(_as_fraction, plain)
    for pattern, by in _REWRITES:
        plain = pattern.sub(by, plain)
    for mark, opening, closing in _CALLS:
        plain = _called(plain, mark, opening, closing)
    enclosed = _ENCLOSED.fullmatch(plain.strip(" ."))
    return enclosed[1] if enclosed else plain.strip()


def _as_fraction(found: re.Match[str]) -> str:
    """`0.1\\overline{6}` as `\\frac{1}{6}`."""
    whole, fixed, repeated = found.groups()
    value = Fraction(
        int(f"{whole}{fixed}{repeated}") - int(f"{whole}{fixed}" or 0),
        (10 ** len(repeated) - 1) * 10 ** len(fixed),
    )
    return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"


def _called(text: str, mark: re.Pattern[str], opening: str, closing: str) -> str:
    """With other brackets for the parentheses behind a mark; from the right, so that inner ones come first."""
    for found in reversed(list(mark.finditer(text))):
        end = _closing(text, found.end())
        if end is not None:
            text = f"{text[: found.start()]}{opening}{text[found.end() : end]}{closing}{text[end + 1 :]}"
    return text


def _closing(text: str, start: int) -> int | None:
    """Where the parenthesis closes that opened just before `start`."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return None
