"""Whether a statement settles on an answer. Who names two values, or takes one back, has not answered.

Used by `math` and `set`. Values in a list are no business of this module: a list is compared as a whole.
"""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import pairwise

from podium.text.math_words import changes_value

_ELLIPSIS = r"(?:\.{3,}|…|\\[lc]?dots(?![a-z]))"
_GOES_ON = re.compile(
    rf"""[,;]\s*(?:and\s)?\s*{_ELLIPSIS}(?!\s*[,;.]?\s*(?!and\b|or\b|to\b)[A-Za-z]{{2}})      # 1, 2, ...
      | (?<!\d){_ELLIPSIS}\s*[,;](?!\s*(?!and\b|or\b|to\b)[A-Za-z]{{2}})                       # ..., 2
      | [,;]\s*[^\s,;.]+\s*{_ELLIPSIS}\W*$                                                     # 1, 2 ...
      | \b(?:etc|et\ cetera|and\ so\ (?:on|forth)|and\ (?:many\ )?(?:others|more))\b\W*$""",
    re.VERBOSE | re.IGNORECASE,
)
_RETRACTED = re.compile(
    r"""\?\W*$                                                                                 # 5?
      | \?[\s"'”*)]*(?:no|nope|not|wait|hmm+)\b\D*$                                            # 5? No.
      | [,.;!?:(–—-]\s*(?:no(?=\s*(?:[,.;!?–—)-]|wait|that|$))|nope|wait(?=\W)|oops|scratch\ that)\D*$
      | [\d}%°$](?:\s?[A-Za-z]{1,12})?[\s(]+(?:no|nope|not|nah|nein|false|wrong|incorrect|untrue)\W*$   # 5 kg No
      | [.;!]\s+(?:wrong|incorrect)\W*$
      | [,.;!?(–—-]\s*(?:which|that|this|it)(?:\ is|\ was|'s|\ isn't)\s(?:wrong|incorrect|false|not\b|right\?)\D*$""",
    re.VERBOSE | re.IGNORECASE,
)
_RANGE = re.compile(
    r"""\W*[-+]?\d[\d.,]*\s*(?:%|°|["'”’]?(?:\s?(?!(?:or|and|to)\b)[A-Za-z]{2,15}\.?){1,2})["'”’]?
        \s*(?:[-–—/|~?]|\b(?:to|through|till|until)\b)\s*
        ["'“‘]?[-+$€£]?\d[\d.,]*\s*[A-Za-z%°\s.]*\W*""",
    re.VERBOSE,
)
"""Nothing but two numbers, each with a unit: "11 seconds - 95 minutes"."""
_BESIDE = re.compile(
    r"\d[\d.,]*\W{0,3}(?:[A-Za-z]{1,15}\W{1,3})?(?:as well as|or else|versus|or rather|or maybe|if not)\W{1,3}\d",
    re.IGNORECASE,
)
"""Two numbers with words between them that name both: "5 as well as 6"."""
_VALUE_LINE = re.compile(
    r"""(?:(?:or|and|or\ else|maybe|perhaps)\b\s*)?
        (?:["'“‘]?[-+$€£]?\d[\d.,]*\s?[A-Za-z%°]{0,15}["'”’]?[,.;?]?)?
        (?:\s*\b(?:or|and))?""",
    re.VERBOSE | re.IGNORECASE,
)
_MAX_STATEMENT_CHARS = 4000
_LINE_END = re.compile(r"[\r\n]+|<br ?/?>|(?<=[A-Za-z\d][.?])\s+")
_EQUATED = re.compile(r"(?:[A-Za-z] ?= ?)?[-+]?\d{1,40}(?:\.\d{1,40})?(?: ?= ?[-+]?\d{1,40}(?:\.\d{1,40})?)+")
_APPLIED = re.compile(r"\b(?:(?<!instead )(?<!out )of(?: the)?|twice|thrice|double|triple|quadruple) $")
"""Ends the words of an operation on the number behind them: "half of 10 = 5" is true."""


def states_one_answer(statement: str, gold: str) -> bool:
    """Whether a statement gives one answer and keeps to it. What the gold answer does itself is no hedge."""
    if len(statement) > _MAX_STATEMENT_CHARS:
        return True
    return not any(
        mark.search(statement) and not mark.search(gold) for mark in (_GOES_ON, _RETRACTED, _BESIDE)
    ) and not (_RANGE.fullmatch(statement) and not _RANGE.fullmatch(gold))


def lists_values(response: str) -> bool:
    """Whether a response is nothing but different values, each on a line or in a sentence of its own."""
    if len(response) > _MAX_STATEMENT_CHARS:
        return False
    lines = [line.strip() for line in _LINE_END.split(response) if re.search(r"\d", line)]
    values = {re.sub(r"[^\d.]", "", line).strip(".") for line in lines}
    return len(values) > 1 and all(map(_VALUE_LINE.fullmatch, _LINE_END.split(response.strip())))


def is_false(equation: str, statement: str) -> bool:
    """Whether an equation, with all numbers of its statement, equates different ones: `4 = 5`, not `1.667 = 1.67`."""
    if not _EQUATED.fullmatch(equation) or re.sub(r"\D", "", equation) != re.sub(r"\D", "", statement):
        return False
    before = re.split(r"[-+]?\d", " ".join(statement.casefold().split()), maxsplit=1)[0]
    if _APPLIED.search(before) and changes_value(before.strip(), "", ""):
        return False
    numbers = [Decimal(side) for side in map(str.strip, equation.split("=")) if not side.isalpha()]
    return any(not _rounds(one, other) for one, other in pairwise(numbers))


def _rounds(one: Decimal, other: Decimal) -> bool:
    exponent = max(int(one.as_tuple().exponent), int(other.as_tuple().exponent))
    return abs(one - other) < Decimal(10) ** exponent if exponent < 0 else one == other
