"""The grader of multiple choice: one letter, in the forms in which models write it; several letters are none."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Any, Literal

from podium.tasks.graders.base import PureGrader
from podium.tasks.graders.extraction import AnswerPlace, extract
from podium.tasks.graders.text_graders import normalised_words
from podium.tasks.task import Grade

_LONGEST = 500
"""Characters of a claim that are read."""
_DRESS = re.compile(r"\\(?:text|math)(?:bf|it|rm|sf|tt)?\b|\\(?:bf|rm|left|right)\b|\\[()\[\]]|[*_`~$#]")
_FIRM = re.compile(
    r"<answer>|\\f?boxed\s*\{|^[^\w\n]*(?:the |my )?(?:final |correct |best )?answer[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)
_SAID = re.compile(
    r"""\b(?:answer|option|choice)(?:\ (?:choice|option|letter))?
    (?: : | \ (?:is|would\ be|must\ be|should\ be)(?:\ therefore|\ thus)?\b:? )""",
    re.IGNORECASE | re.VERBOSE,
)
_LETTER = re.compile(
    r"""[\s"'“‘{]*(?i:(?:option|choice|letter)\s+)?
    (?: [(\[] \s* ([A-Za-z]) \s* [)\]]                          # (C), [c]
      | ([A-Z]) (?= \s*(?:$ | [.,:;)}\]"”!(/&+|] | [-–—]\s)     # C  C.  C) ...  C - ...
                  | \s+(?i:because|since|as|which|and|or|nor)\b ) )""",
    re.VERBOSE,
)
_ALONE = re.compile(r"""[\s"'“‘({\[]*(?i:(?:option|choice|letter)\s+)?([A-Za-z])[\s"'”’)}\].:!]*""")
_OPTION = re.compile(r"[(\[]?[A-Z][)\].:](?:\s|$)")
_MORE = re.compile(
    r"""["'”’)}\].:]* \s* \(? (?:(?i:and|or|nor)\b | [/&+|])          # C or ...  C/...
      | ["'”’)}\]]* \s* [,;] \s* (?:(?i:and|or)\s+)? [(\[]? [A-Z] [)\]]?
            (?= \s*(?:$ | [.,;:/&)\]] | (?i:and|or|are|both)\b) )     # C, D ...
      | ([)\].:]+) \s* [(\[]? [A-Z] \1                                # C. D. ...
      | [\s,;.:()\[\]–—-]* [A-Z] \W* $                                # C. D""",
    re.VERBOSE,
)
_REASON = re.compile(r"\b(?:as|because|but|instead|not|rather|since|whereas|which|while)\b", re.IGNORECASE)
_BRACKETED = re.compile(r"(?:\b|[(\[])[A-Z][)\]]")
_DOTTED = re.compile(r"\b([A-Z])[.:]")


class Choice(PureGrader):
    """1 when the response settles on the gold letter.

    What counts is the last claim in the response: an `<answer>` tag, a `\\boxed{...}`, a line `Answer: ...`, or a
    sentence with `answer is`, `option is` or `choice is` before the letter. A claim reads `C`, `(C)`, `C.`, `C) text`,
    `Option C`, `C because ...`, bold or in LaTeX. Without a claim: the only letter that has a line to itself, else the
    only one that begins a line as an option does. Not accepted: two letters (`A, C`, `(A) and (C)`, `A or C`, `A/C`),
    a letter inside prose, and the last capital letter of a text, which MMLU-Pro's own script takes in the end.

    The gold answer is a letter. Or it is JSON, `{"letter": "C", "options": ["Oslo", "Lima", "Rome"]}`: then a claim
    that is one option's text and no other's, compared as `normalised` does, counts as its letter.
    """

    kind: Literal["choice"] = "choice"
    answer: AnswerPlace = "final"
    """Where the answer stands in the response; "final": as above, elsewhere it is all that stands there."""

    def gold_problem(self, gold: str) -> str | None:
        return None if _key(gold) is not None else f"the gold answer {gold!r} is no letter of an option"

    def judge(self, response: str, gold: str) -> Grade:
        key = _key(gold)
        if self.answer == "final":
            claim = _last_claim(response, key)
        else:
            found = extract(response, self.answer)
            claim = None if found is None else _firm(_undressed(found), key)
        if claim is None:
            return Grade(0.0)
        return Grade(float(key is not None and claim.letter == key.letter), claim.letter or claim.text)


@dataclass(frozen=True, slots=True)
class _Key:
    letter: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Claim:
    text: str
    letter: str
    """Empty: it is none, or several."""


def _key(gold: str) -> _Key | None:
    """What a gold answer says; None: nothing that can be graded by."""
    try:
        said: Any = json.loads(gold)
    except (ValueError, RecursionError):
        said = {"letter": gold.strip()}
    if not isinstance(said, dict) or not said.keys() <= {"letter", "options"}:
        return None
    letter, options = said.get("letter"), said.get("options", [])
    if not isinstance(letter, str) or not re.fullmatch("[A-Z]", letter) or not isinstance(options, list):
        return None
    if not all(isinstance(option, str) for option in options) or 0 < len(options) <= ord(letter) - ord("A"):
        return None
    return _Key(letter, tuple(map(normalised_words, options)))


def _last_claim(response: str, key: _Key | None) -> _Claim | None:
    text = _undressed(response)
    firm = {match.end() for match in _FIRM.finditer(text)}
    for place in sorted(firm | {match.end() for match in _SAID.finditer(text)}, reverse=True):
        read = _firm if place in firm else _soft
        claim = read(text[place : place + _LONGEST].partition("</answer>")[0], key)
        if claim is not None:
            return claim
    return _in_lines([line.strip() for line in text.splitlines() if line.strip()], key)


def _undressed(text: str) -> str:
    """Without emphasis and LaTeX's fonts, in plain letters."""
    return _DRESS.sub("", unicodedata.normalize("NFKC", text))


def _firm(text: str, key: _Key | None) -> _Claim:
    """The claim in a place for answers: if it is not a letter, it is a wrong answer."""
    return _soft(text, key) or _Claim(text.strip(), "")


def _soft(text: str, key: _Key | None) -> _Claim | None:
    """The claim that a text begins with; None: it begins with something else."""
    said, _, behind = text.strip().partition("\n")
    alone = _ALONE.fullmatch(said)
    begun = alone or _LETTER.match(said)
    if begun is None:
        return _named(said, key)
    letter = next(filter(None, begun.groups())).upper()
    follows = _ALONE.fullmatch if alone else _OPTION.match
    several = follows(behind.partition("\n")[0]) or _goes_on(letter, said[begun.end() :])
    return _Claim(said, "" if several else letter)


def _named(said: str, key: _Key | None) -> _Claim | None:
    """The claim that gives an option's text."""
    named = [
        place for place, option in enumerate(key.options if key else ()) if option == normalised_words(said)
    ]
    return _Claim(said, chr(ord("A") + named[0])) if len(named) == 1 else None


def _goes_on(letter: str, rest: str) -> bool:
    """Whether what stands behind a letter lists further ones; those that a reason mentions are not listed."""
    listed = _REASON.split(rest, maxsplit=1)[0]
    following = chr(ord(letter) + 1) + chr(ord(letter) + 2)
    # A name has dots too, as in "C. Franklin D. Roosevelt": so only a row of letters is a list.
    in_a_row = following in "".join(_DOTTED.findall(listed))
    return in_a_row or bool(_MORE.match(rest) or _BRACKETED.search(listed))


def _in_lines(lines: list[str], key: _Key | None) -> _Claim | None:
    """What lines say where nothing is called the answer."""
    if len(lines) <= 1:
        return _firm(lines[0], key) if lines else None
    alone = {line for line in lines if _ALONE.fullmatch(line)}
    begun = {line for line in lines if _OPTION.match(line)}
    for chosen in (alone, begun, {lines[-1]}):
        claims = {claim.letter for line in chosen if (claim := _soft(line, key))}
        if claims:
            return _Claim(lines[-1], claims.pop() if len(claims) == 1 else "")
    return None
