r"""The mathematics in a statement, in one LaTeX notation that a parser can read.

`expression` takes the last formula or number of a statement, or a whole list; `normalise_latex` rewrites it, keeping
its value: `½`, `\dfrac12` and `\frac{1}{2}` become one, as do `1 000` and `1{,}000`, `sqrt(2)` and `√2`,
`0.\overline{3}` and `\frac{1}{3}`; degrees and a modulus behind a number are dropped.

Values joined by a comma, "and" or "or" are one list, so a response that names several values has not named one of them.
Words separate values: of "3 boxes of 4, so 12 apples" 12 is left. A statement without mathematics is compared as words.
This module stands between `extraction`, which finds the statement, and `math_graders`, which compares. It evaluates
nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from podium.text.answer import to_nfkc
from podium.text.math_words import SCALES, changes_value, joins_numbers, words_to_math
from podium.text.numerals import decimal_percent, latex_fraction, plain_numbers, sign_value

_MAX_STATEMENT_CHARS = 4000
_TEXT = re.compile(
    r"\\(?:text[a-z]*|mbox|math(?:rm|bf|it|sf|cal)|operatorname)\s*\{([^{}]*)\}(?:\^\{?[23]\}?)?"
)
_UNITS = "cm|mm|km|nm|ml|cl|dl|kg|mg|lb|oz|ft|yd|mi|hr|pm|am|kb|mb|gb|tb|hz|kw|mw|cc"
_SHORT = f"as|at|be|by|do|he|if|in|is|it|me|my|no|of|on|so|to|up|us|we|{_UNITS}"
_PIECE = re.compile(
    # A word before a bracket is a function, or a command that lost its backslash.
    r"(?P<environment>\\begin\{.*?\\end\{\w+\*?\})|(?P<break>[.?](?=\s)|(?<=[a-z]{2})!(?=\s)|\\therefore)|(?P<command>\\[A-Za-z]+|\\.)|(?P<brace>[{}])|(?P<word>(?:"
    rf"(?<![A-Za-z\d_^])(?!(?:and|n?or|vs)\b)(?:[A-Za-z]{{3,}}+|(?i:{_SHORT})(?![A-Za-z]))(?>(?:['-]?[A-Za-z\d])*)(?![{{(])"
    rf"|(?<=\d)(?:[A-Za-z]{{4,}}|(?i:{_UNITS})s?)(?![A-Za-z])"
    r")(?:\^\{?[23]\}?)?)|(?P<other>.)",
    re.DOTALL,
)
_MARKED = re.compile(r"\$([^$\n]+)\$|\*\*([^*\n]+)\*\*|\\text\{([^{}]*)\}")
_MARKUP = re.compile(r"\\[A-Za-z]+|[^\w\s+'-]")
_VALUE = re.compile(r"\d|\\(?!cdot|times|div|approx|%)[A-Za-z]")
_LETTER = re.compile(r"[A-Za-z]")
_JOINT = re.compile(r"[\s\"'*_(]*(?:[,;&|]|\b(?:and|n?or|vs)\b)")
_AND = re.compile(r"\s*,?\s*(?<![A-Za-z\\])(?:and|n?or|vs\.?)(?![a-z])\s*")
_OPERATOR = re.compile(r"\s*(?:[+*/^]|\\cdot|\\times|\\div)")
_OPEN_ENDED = re.compile(r"(?:[-+*^=<>]|\\cdot|\\times|\\div|\\[gl]eq?) ?$")
_LEADING = re.compile(r"[\s,;:.!?=*_`\"'&#]+|\\approx|\\sim|(?:and|or)\b|-\s")
_TRAILING = re.compile(r"(?:\\approx|\b(?:and|or)|\\)$")
_ARTICLE = re.compile(r" a\W{0,9}$")
_HEDGE = re.compile(
    r"\b(?:maybe|perhaps|possibly|alternatively|either|(?:might|could|may) be)\b", re.IGNORECASE
)
_NAMED_TWICE = re.compile(r"(?<![A-Za-z\\])([A-Za-z])\s?=[^,;]*[^,;=]\s\1\s?=")
"""`x = 1 x = 2`: two values, not a chain of equations."""
_SYMBOL = r"(?:\\mu ?)?[mgshdlLCFKNJWVA](?:\^\{?-?[23]\}?)?"
_UNIT = re.compile(
    rf"(.*[\d)}}])\s*(?:{_SYMBOL}(?:\s*(?:/|\\cdot)\s*{_SYMBOL})?|(?:\\mu ?|[kM])?\\Omega)", re.DOTALL
)
_VARIABLE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]")
_JOINED_WORDS = 3
"""The most words between two values that a comma or "and" joins, as in "5 hours and 30 minutes"."""


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
        **{sign: latex_fraction(sign_value(sign)) for sign in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"},
        "’": "'",
        "“": '"',
        "”": '"',
        "→": r"\to ",
        "⇒": r"\to ",
        "…": r"\dots ",
    }
)
_SUBSCRIPT, _SUPERSCRIPT = re.compile("[₀-₉]+"), re.compile("[⁰¹²³⁴-⁹⁺⁻ⁿ]+")
_DIGITS = str.maketrans("₀₁₂₃₄₅₆₇₈₉⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "01234567890123456789+-n")
_FUNCTIONS = "sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|sinh|cosh|tanh|log|ln|exp|gcd|lcm|det|pi"
_ALONE = r"(?<![\\A-Za-z])(?:{})(?![A-Za-z])"
_REWRITES = tuple(
    (re.compile(pattern, re.DOTALL), by)
    for pattern, by in (
        (r"(?<=\d) ?[xX] ?(?=10 ?\^)", r"\\times "),
        (r"\\(?:boxed|fbox|displaystyle|limits|nolimits)(?![a-z])", ""),
        (r"\\(?:left|right|[bB]igg?[lr]?)(?![a-z])\s*\.?", ""),
        (r"\\(?=[\"'])", ""),
        (r"-\s*(?:\\?\$|[€£¥₹₽])\s*(?=[\d.])", "-"),
        (r"(?<!\\)\\[\[\]()]|\\?\$|[€£¥₹₽]", " "),
        (r"\\[dtc]frac", r"\\frac"),
        (r"\\langle\b", "("),
        (r"\\rangle\b", ")"),
        (r"\\begin\{cases\}(.*?)(?:\\\\)?\s*\\end\{cases\}", lambda match: match[1].replace("\\\\", ", ")),
        (r"\\(?:[Ll]ong)?[Rr]ightarrow\b|\\(?:implies|therefore|to)\b|=>|->", r" \\therefore "),
        (r"\\p?mod\s*(?:\{[^{}]*\}|\d+)|\(\s*\\bmod[^()]*\)", ""),
        (r"\\equiv\b", "="),
        (r"\bvs\.", "vs"),
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
        (r"\\\{ ?\\\}", r"\\emptyset "),
        (
            r"[,;:]? ?\(?(?:\\(?:forall|quad) ?|where |for |with )*([k-n])(?:, ?(?!\1)[k-n])? ?\\in ?"
            r"(?:\\mathbb ?\{?[ZN]\}?|[ZN])(?:_\S*)?\)?[ .$]*$",
            "",
        ),
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


@dataclass(frozen=True, slots=True)
class Expression:
    """The mathematics or the words of a statement, ready to be compared."""

    text: str
    """LaTeX without dollars; or words."""
    words: bool = False
    """Whether it holds words and no mathematics."""

    def without_unit(self, gold: Expression) -> Expression:
        """Without a final letter that may be a unit (5 m, 1.5 L), if the gold answer has no letters."""
        unit = None if _VARIABLE.search(gold.text) else _UNIT.fullmatch(self.text)
        return Expression(unit[1]) if unit else self


class _Part(NamedTuple):
    before: str
    """The words between it and the part before, in small letters; a dot is the end of a sentence."""
    text: str
    after: str
    """The words between it and the part behind."""

    @property
    def distance(self) -> int:
        """Words between it and the part before. The end of a sentence counts as more than `_JOINED_WORDS`."""
        return len(self.before.split()) + _JOINED_WORDS * self.before.count(".")

    @property
    def next_word(self) -> str:
        return self.after.partition(" ")[0].rstrip(".")


def expression(statement: str) -> Expression | None:
    """The mathematics or the words of a statement. None if it has neither, or leaves open which value is meant."""
    if len(statement) > _MAX_STATEMENT_CHARS:
        return None
    alone = _TEXT.fullmatch(statement.strip(" $.\n"))
    if alone and not re.search(r"\d", alone[1]):
        return _words(alone[1])
    text = words_to_math(normalise_latex(_without_text(statement)))
    parts = _parts(text)
    chosen = _chosen_index(parts)
    if chosen is None:
        return _marked_words(statement, text)
    if _HEDGE.search(statement) and sum(bool(_VALUE.search(part.text)) for part in parts) > 1:
        return None
    value = _joined_value(text, parts, chosen)
    formula = _AND.sub(", ", _trimmed(_balanced(_trimmed(value)))) if value else ""
    return Expression(formula) if formula and not _NAMED_TWICE.search(formula) else None


def normalised_phrase(text: str) -> str:
    """Words without case, markup and punctuation; a letter in parentheses is the letter."""
    return " ".join(_MARKUP.sub(" ", text).casefold().split())


def _marked_words(statement: str, text: str) -> Expression | None:
    """The words of a statement. If it marks words in exactly one place: those words, or None if it denies them."""
    marked = list(_MARKED.finditer(statement))
    if len(marked) != 1:
        return _words(text)
    denied = changes_value(normalised_phrase(statement[: marked[0].start()]), "", "")
    return None if denied else _words(marked[0][marked[0].lastindex or 0])


def _words(text: str) -> Expression | None:
    return Expression(text.strip(), words=True) if normalised_phrase(text) else None


def _without_text(text: str) -> str:
    """Replace each text command by its content, with a space on both sides, but not inside braces or an environment, or
    if the content is a single character."""

    def prose(match: re.Match[str]) -> str:
        content = match[1].strip()
        before = text[: match.start()]
        inside = before.count("{") > before.count("}") or before.count("\\begin") > before.count("\\end")
        if inside or len(content) == 1:
            return content
        return f" {content} "

    return _TEXT.sub(prose, text)


def _parts(text: str) -> list[_Part]:
    """The pieces of mathematics between words. Inside braces nothing counts as a word, since an index may be one."""
    texts: list[str] = []
    gaps: list[list[str]] = [[]]  # the words before each text, and those behind the last
    made = ""
    depth = 0
    for piece in _PIECE.finditer(text):
        depth += {"{": 1, "}": -1}.get(piece.group(), 0)
        if depth > 0 or piece.lastgroup not in ("word", "break"):
            made += piece.group()
            continue
        if made.strip():
            texts.append(made)
            gaps.append([])
        made = ""
        gaps[-1].append(piece["word"].casefold() if piece["word"] else ".")
    if made.strip():
        texts.append(made)
        gaps.append([])
    words = [" ".join(gap) for gap in gaps]
    return [_Part(*part) for part in zip(words, texts, words[1:], strict=False)]


def _chosen_index(parts: list[_Part]) -> int | None:
    """Index of the last part with a value; else of the last part, if it has a letter and ends the sentence."""
    for index in reversed(range(len(parts))):
        if _VALUE.search(parts[index].text):
            return index
    return len(parts) - 1 if parts and not parts[-1].next_word and _LETTER.search(parts[-1].text) else None


def _joined_value(text: str, parts: list[_Part], chosen: int) -> str | None:
    """The chosen part and those that are joined to it, as one list, times a scale word such as "million" behind it.
    None if a word beside one of them changes its value (`math_words`)."""
    part = parts[chosen]
    begins_open = part.before and _OPERATOR.match(part.text)
    ends_open = part.next_word and _OPEN_ENDED.search(part.text)
    if begins_open or ends_open:
        return text  # the words are names inside a formula
    joined = _ARTICLE.sub("", part.text) if part.before or part.next_word else part.text
    scale = SCALES.get(part.next_word.removesuffix("s"))
    if scale:
        joined = f"{joined.rstrip()} \\cdot {scale}"
    while chosen and _JOINT.match(parts[chosen].text) and parts[chosen].distance <= _JOINED_WORDS:
        if changes_value(*parts[chosen]):
            return None
        chosen -= 1
        joined = f"{parts[chosen].text.strip()}, {_trimmed(joined)}"
    related = chosen and _VALUE.search(parts[chosen - 1].text) and _relates(parts[chosen - 1], parts[chosen])
    return None if related or changes_value(*parts[chosen]) else joined


def _relates(first: _Part, second: _Part) -> bool:
    """Whether the words between two parts make one value of them. "From 3 to 5" are two."""
    return joins_numbers(second.before) and not first.before.endswith("from")


def _trimmed(text: str) -> str:
    start = 0
    while lead := _LEADING.match(text, start):
        start = lead.end()
    bare = text[start:]
    while (shorter := _TRAILING.sub("", bare.rstrip(" ,;:.?=*_`\"'/&-"))) != bare:
        bare = shorter
    return bare


def _balanced(text: str) -> str:
    """The text without unmatched brackets at its ends; an interval may open and close with different ones."""
    start, stop = 0, len(text)
    unclosed = sum((sign in "([") - (sign in ")]") for sign in text)
    while start < stop:
        first, last = text[start], text[stop - 1]
        if first in ")]" or (unclosed > 0 and first in "(["):
            start, unclosed = start + 1, unclosed + (1 if first in ")]" else -1)
        elif last in "([" or (unclosed < 0 and last in ")]"):
            stop, unclosed = stop - 1, unclosed + (1 if last in ")]" else -1)
        elif first.isspace():
            start += 1
        else:
            break
    return text[start:stop]


def normalise_latex(text: str) -> str:
    """Rewrite mathematics in one notation, keeping its value. Units and words stay."""
    plain = to_nfkc(text).strip().translate(_SIGNS)
    for sign, digits in (("_", _SUBSCRIPT), ("^", _SUPERSCRIPT)):
        plain = digits.sub(lambda match, sign=sign: f"{sign}{{{match[0].translate(_DIGITS)}}}", plain)  # type: ignore[misc]
    if "\\begin" not in plain:
        plain = plain.replace("\\\\", "\\")
    plain = plain_numbers(plain)
    for pattern, by in _REWRITES:
        plain = pattern.sub(by, plain)
    for mark, opening, closing in _CALLS:
        plain = _change_brackets(plain, mark, opening, closing)
    plain = decimal_percent(plain)
    enclosed = _ENCLOSED.fullmatch(plain.strip(" ."))
    return enclosed[1] if enclosed else plain.strip()


def _change_brackets(text: str, mark: re.Pattern[str], opening: str, closing: str) -> str:
    """Replace the parentheses behind a mark by other brackets, from the right, so that inner ones come first."""
    for match in reversed(list(mark.finditer(text))):
        end = _closing_index(text, match.end())
        if end is not None:
            text = f"{text[: match.start()]}{opening}{text[match.end() : end]}{closing}{text[end + 1 :]}"
    return text


def _closing_index(text: str, start: int) -> int | None:
    depth = 1
    for index in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return index
    return None
