"""Whether two answers are the same: the one notion that votes, self-consistency, early stopping and studies share.

Answers are the same if their keys are equal, so sameness is an equivalence, and no tolerance counts. It is what
graders ignore (`podium.tasks.graders`) as far as that needs neither the gold answer nor a parser for mathematics.
"""

from __future__ import annotations

import json
import re
import unicodedata

from podium.text.answer import normalise, to_nfkc
from podium.text.numerals import read_number

_MAX_ANSWER_CHARS = 1000
"""The most characters of an answer that is read. Of a longer one only case and spaces are ignored."""
_IN_MARKS = re.compile("""\\*(.+)\\*|`(.+)`|"(.+)"|'(.+)'|“(.+)”|‘(.+)’|(.+[^. ])[. ]+""", re.DOTALL)
"""An answer inside marks, or before dots: `**Lima**`, `"Lima"`, `Lima.` are `Lima`."""
_LETTER = re.compile(r"(?:(?:option|choice|letter|answer)\s+)?[(\[{]?([A-Za-z])[)\]}]?[.:]?", re.IGNORECASE)
"""A letter alone, perhaps with a word before it: `B`, `(b)`, `[B].`, `Option B:`."""
_OPTION = re.compile(
    r"""(?:(?:[Oo]ption|[Cc]hoice)\ )?(?:
      [(\[]([A-Za-z])[)\]][.:]?\s | ([A-Za-z])\)\s? | ([A-Z])(?::\s|\s[-–—]\s(?=.*[^\W\d_]{2}))
      | ([A-J])\.\s?(?=[A-Z\d$\\][^.\s]|(?:[^\W\d_]+\s+){2}\w)
    )(?P<text>(?![-+*/^=<>≤≥×÷·–—−]\s)\S.*)""",
    re.VERBOSE | re.DOTALL,
)
"""A letter and the text of its option: `B) Lima`, `(B) Lima`, `B: Lima`, `B - Lima`, `B. Lima`. In `E. coli` and
`J. R. R. Tolkien` the letter is an initial, and in `N - 2` and `(x) + 1` a variable."""
_SECOND_OPTION = re.compile(r"(?:^|[\s,;(\[/])[A-Z][).:\]]|\b(?:and|or)\s+[(\[]?[A-Z]\b")
"""A second option in the text of the first: `B) Lima, C) Quito`, `B) Lima or C`."""
_PROSE = re.compile(r"(?:[^\W_]|[\s.,;:'’‘\"“”?&%#@\u0300-\u036f]|(?<=[^\W\d_])[-‐‑–](?=[^\W\d_]))+")
"""Words without mathematics: `The well-known U.S.A., 45%`; not `x - 1` or `3+4`."""
_EXCLAMATION = re.compile(r"(?<=[^\W\d_]{2})!+$")
"""Exclamation marks after a word: `Lima!`; not the factorial `5!`."""
_LATEX = tuple(
    (re.compile(pattern), by)
    for pattern, by in (
        (r"\\(?:left|right|displaystyle)(?![a-z])|\\[()\[\],;:! ]|\$|~|\\q?quad(?![a-z])", " "),
        (r"\\[dtc]frac", r"\\frac"),
        (r"\\(?:text[a-z]*|mbox|mathrm)\s*\{([^{}]*)\}", r" \1 "),
        ("[−‒–]", "-"),
    )
)
"""LaTeX that changes no value: `\\left(`, `$x$`, `x\\,y`, `\\dfrac`, `\\text{cm}`, and other minus signs."""
_BESIDE_MARK = re.compile(r" ?([^\w\s]) ?")
"""A mark with its spaces: `x + 1` is `x+1`."""
_DASHES = re.compile("[\u2010-\u2015\u2212]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_MARK = re.compile(r"[^\w\s]|_")
_IN_NUMBER = re.compile(r"(?<![^\W\d_])[-.,:/*](?=\.?\d)")
"""A mark that belongs to the number after it: `-5`, `3.14`, `12:30`, `1/2`; not the hyphen of `covid-19`."""
_ACCENT = re.compile("[\u0300-\u0334\u0339-\u036f]")
"""Marks on letters, as in `é`. Strokes are left out: without its stroke, `≠` would be `=`."""
_ARTICLE = re.compile(r"^[\W_]*(?:a|an|the)\s+(?=\W*\w)")
"""An article before the first word: `the Andes` is `Andes`."""
_DROPPED_MARKS = frozenset(".!?'\"`‘’“”„´")
"""Marks that do not separate words: `U.S.A.` is `USA`."""
_KEPT_MARKS = frozenset("%#&@§‰\\")
"""Marks that have a meaning: `C#` is not `C`."""


def answer_key(answer: str) -> str:
    """A text that is equal for answers that say the same, and has no line break. Numbers are compared by value, without
    currency and unit (`1,000`, `1000` and `$1000.00`; `1/2` and `0.5`), options by their letter (`B`, `(B)` and `B)
    Lima`), prose by its words (`normalised_words`), JSON with its keys in any order, and all else by its characters."""
    answer = sorted_json(answer) or answer
    if len(answer) > _MAX_ANSWER_CHARS:
        return normalise(answer)
    value = read_number(answer)
    if value is not None:
        return str(value)
    plain = " ".join(to_nfkc(answer).split())
    while around := _IN_MARKS.fullmatch(plain):
        plain = next(filter(None, around.groups())).strip()
    plain = _EXCLAMATION.sub("", plain)
    letter = _LETTER.fullmatch(plain) or _OPTION.fullmatch(plain)
    if letter and not _SECOND_OPTION.search(letter.groupdict().get("text", "")):
        return str(next(filter(None, letter.groups()))).casefold()
    if _PROSE.fullmatch(plain):
        return normalised_words(plain).replace(",", " ") or normalise(plain)
    for pattern, by in _LATEX:
        plain = pattern.sub(by, plain)
    return _BESIDE_MARK.sub(r"\1", normalise(plain))


def sorted_json(text: str) -> str | None:
    """A JSON object or list with its keys in order, or None if the text is no such thing."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def normalised_words(text: str, *, accents: bool = False) -> str:
    """The words of a text, normalised: equal for texts that say the same. Empty if there are only marks. A dollar sign
    at either end is dropped, since it may be LaTeX's."""
    text = to_nfkc(text.strip().strip("$")).casefold()
    if not accents:
        text = _ACCENT.sub("", unicodedata.normalize("NFD", text))
    text = _THOUSANDS.sub("", _DASHES.sub("-", unicodedata.normalize("NFC", text)))
    return " ".join(_MARK.sub(_replace_mark, _ARTICLE.sub("", text)).split())


def _replace_mark(match: re.Match[str]) -> str:
    mark = match[0]
    if mark in _KEPT_MARKS or not unicodedata.category(mark).startswith("P"):
        return mark
    if _IN_NUMBER.match(match.string, match.start()):
        return mark
    return "" if mark in _DROPPED_MARKS else " "
