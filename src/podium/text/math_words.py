r"""Words beside a number that change its value: "negative 5", "half of 10", "5 squared", "not 5".

A few of these words are read as mathematics. Any other makes the number unreadable, because without the word the number
would have another value. Units, fillers and the other words of a sentence ("half of 10 is 5") change nothing. Used by
`latex` and `math_graders`.
"""

from __future__ import annotations

import re

SCALES = {
    "dozen": "12",
    "hundred": "10^{2}",
    "thousand": "10^{3}",
    "million": "10^{6}",
    "billion": "10^{9}",
    "trillion": "10^{12}",
}
"""Words after a number that multiply it."""
_READ = tuple(
    (re.compile(pattern, re.IGNORECASE), by)
    for pattern, by in (
        (r"(?<![\w-])(?:negative|minus) (?=[\d(\\]|[a-z]\b)", "-"),
        (r"((?<![a-z])[a-z]|[\d)}]) squared\b", r"\1^2"),
        (r"((?<![a-z])[a-z]|[\d)}]) cubed\b", r"\1^3"),
        (r"(?<=\d) and a half\b", r"\\frac{1}{2}"),
    )
)
_NTHS = "(?:third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|hundredth|thousandth|millionth|billionth)s"
_FRACTION = f"(?:half|halves|quarters?|{_NTHS}?)"
_VERB = (
    r"(?:is|are|was|were|would|will|must|has|have|had|equals?(?!\ to)|gives?|makes?|leaves?|gets?|yields?|so|then|but"
    "|it|there)"
)
_FILLER = rf"(?:\ (?!{_VERB}\b)[\w'-]+)"
_BEFORE = re.compile(
    rf"""(?<![\w'-])(?:
      (?:not|never|neither|cannot|\w+n't|except|excluding|without|negative|minus|half|twice|thrice|double|triple
        |quadruple){_FILLER}{{0,2}}
    | (?:opposite|reciprocal|inverse|negation|roots?|square|cube|log|logarithm|factorial|power|out|instead|{_FRACTION})
        \ of{_FILLER}?
    | (?:than|unlike|(?:anything|everything|all)(?:\ \w+)?\ but){_FILLER}?
    | over|under|above|below|beyond|exceeds|less|plus|times|(?:divided|multiplied)\ by|(?:zero|one)\ point
    )$""",
    re.VERBOSE,
)
_AFTER = re.compile(
    rf"""(?:squared|cubed|factorial|inverse|halves|{_NTHS}|lakhs?|crores?|[bm]n|isn't|wasn't)\b
    | (?:is|was)\ (?:wrong|incorrect|false|not\ (?:correct|right|true|valid|possible|equal|it|the))\b
    | (?:\w+\ ){{0,2}}below(?:\ zero\b|$)
    | to\ the\ (?:power|{_FRACTION})\b""",
    re.VERBOSE,
)
_OPEN_END = re.compile(
    rf"\b(?:or|and)(?: an?| one| two| three)? (?:more|less|fewer|greater|above|below|under|over|{_FRACTION})\b"
)
_RELATION = re.compile(
    "(?:of|out of|to|by|times|mod|modulo|into|less|choose|point|to the power(?: of)?)(?: the)?"
)
_DETACHED = re.compile(r"\s*[,;:.!?]|.*=", re.DOTALL)
"""If a number begins like this, the words before it do not belong to it: "half of 10 = 5"."""
_NO_UNIT = re.compile(
    rf"""\b(?:and|or|to|than|plus|minus|times|over|less|more|not|wrong|incorrect|false|{_FRACTION}
    |(?:{"|".join(SCALES)})s?)\b
    |^(?:of|a\.?m|p\.?m|bce?|ad|ce|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?
       |sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b""",
    re.VERBOSE,
)
"""Words after a number that are no unit: some change its value, others make a time or a date of it."""


def words_to_math(text: str) -> str:
    """Rewrite the words that can be read as mathematics: "negative 5" as "-5", "x squared" as "x^2"."""
    for pattern, by in _READ:
        text = pattern.sub(by, text)
    return text


def changes_value(before: str, number: str, after: str) -> bool:
    """Whether the words before or after a number change its value. `before` and `after` are the words right beside it,
    the first in small letters; the number as written may end with "or" or "and"."""
    if _AFTER.match(after) or _OPEN_END.search(f"{number.rstrip()} {after}"):
        return True
    return not _DETACHED.match(number) and bool(_BEFORE.search(before))


def joins_numbers(words: str) -> bool:
    """Whether `words`, all that stands between two numbers, make one value of both: "3 out of 10", "5 to 6"."""
    return bool(_RELATION.fullmatch(words))


def is_unit(words: str) -> bool:
    """Whether the words after a number may be its unit: none of them changes the number's value."""
    text = words.strip().casefold()
    return not (_AFTER.match(text) or _NO_UNIT.search(text))
