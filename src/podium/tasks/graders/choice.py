"""The grader for multiple choice: accepts exactly one letter, in any of the forms that models write."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from podium.tasks.graders.base import PureGrader
from podium.tasks.graders.extraction import AnswerPlace, extract
from podium.tasks.task import Grade
from podium.text.answer import ANSWER_LINE, ANSWER_WORD, to_nfkc
from podium.text.same_answer import normalised_words
from podium.text.thoughts import without_thoughts

_MAX_CLAIM_CHARS = 500
_MAX_OPTIONS = 200
"""The most claims or lines that are read, counted from the end of the response."""
_READ = _MAX_CLAIM_CHARS * _MAX_OPTIONS
"""The most characters that are read, counted from the end of the response."""
_MARKUP = re.compile(r"\\(?:text|math)(?:bf|it|rm|sf|tt)?\b|\\(?:bf|rm|left|right)\b|\\[()\[\]]|[*_`~$#]")
_ANSWER_MARK = re.compile(
    r"<answer>|\\f?boxed\s*\{|^[^\w\n]*(?:the |my )?(?:final |correct |best )?answer[ \t]*:"
    rf"|^[^\w\n]*+{ANSWER_LINE}|\"(?:final|correct|best)?\s?(?:answer|choice|option|letter)\"\s*:\s*\"?",
    re.IGNORECASE | re.MULTILINE,
)
_SAID = re.compile(
    r"""\b(?:answer|option|choice)(?:\ (?:choice|option|letter))?
    (?: : | \ (?:is|would\ be|must\ be|should\ be)(?:\ therefore|\ thus)?\b:? )"""
    rf"""|(?:{ANSWER_WORD})(?:[\ ][^\W\d_]+){{0,2}}?
    (?: \ ?: | \ (?:ist|lautet|est|es|é|è|adalah|[-–—])\ ?:? | (?:是|为|為|应该是|選|选|は|은|는)\ ?:? )"""
    r"""|(?:^|[.;!?]\ |\b(?:option|choice|answer|so|thus|therefore|hence|that),?\ )
    (?=[(\[]?(?-i:[A-Z])[)\]]?\ is\ the\ (?:only\ )?(?:correct|right|best)\ (?:answer|option|choice)\b(?!\?))
    |\b(?:option|choice|answer)\ (?=[(\[]?(?-i:[A-Z])[)\]]?\ is\ (?:correct|right)\b(?!\?))""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_LETTER = re.compile(
    r"""[\s"'“‘{]*(?i:(?:option|choice|letter)\s+)?
    (?: [(\[] \s* ([A-Za-z]) \s* [)\]]                          # (C), [c]
      | ([A-Z]) (?= \s*(?:$ | [.,:;)}\]"”!(/&+|。、] | [-–—]\s)     # C  C.  C) ...  C - ...
                  | \s+(?i:because|since|as|which|and|or|nor|rather\sthan|instead\sof)\b
                  | \s+(?i:is\s(?:the\s)?(?:only\s)?(?:correct|right|best))\b ) )""",
    re.VERBOSE,
)
_ALONE = re.compile(r"""[\s"'“‘({\[]*(?i:(?:option|choice|letter)\s+)?([A-Za-z])[\s"'”’)}\].:!。]*""")
_OPTION = re.compile(r"[(\[]?[A-Z][)\].:](?:\s|$)")
_ANOTHER = (
    r"(?:(?:or|and|nor|also|maybe|perhaps|possibly|alternatively|otherwise|else|even|then|plus|unless|if\ not|though"
    r"|as\ well\ as|it\ (?:is|may\ be)|option|choice|letter)\b[\s,;:]*)"
)
"""A word that leads to another letter."""
_MORE = re.compile(
    rf"""["'”’)}}\].:]* \s* \(? (?:(?i:and|or|nor)\b | [/&+|])          # C or ...  C/...
      | [\s"'”’)}}\].,:;(–—-]* (?i:{_ANOTHER})+ [("'“‘\[]* [A-Z]\b           # C, maybe D   C (also D)
      | ["'”’)}}\]]* \s* [,;、] \s* ["(\[]? [A-Z] [")\]]?
            (?= \s*(?:$ | [.,;:/&)\]。、] | (?i:and|or|are|both)\b) )     # C, D ...
      | ([)\].:]+) \s* [(\[]? [A-Z] \1                                # C. D. ...
      | [\s,;.:()\[\]"'“”‘’–—-]* [A-Z] \W* $                              # C. D""",
    re.VERBOSE,
)
_LISTED = re.compile(
    rf"""(?:[,;] | \b(?:and|or)\b) \s* (?i:{_ANOTHER})* [("'“‘\[]* [A-Z] ["'”’)\]]? \s* (?:[.:)(] | [-–—]\s)""",
    re.VERBOSE,
)
"""A further letter that is followed by an option's text: `B - Lima, C - Rome`."""
_NEXT_LINE = re.compile(rf"\W*(?i:{_ANOTHER})+[A-Z]\W*$", re.VERBOSE)
"""A line that names another letter than the line before: `or C`."""
_TOGETHER = re.compile(
    r"[\s({]*([A-Za-z])[^\w\n]*?(?:</answer>)?[^\w\n]*(?:(?:or|and|also)\b[^\w\n]*)*(?:<|\\)?", re.IGNORECASE
)
"""The text between two answer marks that belong together: `\\boxed{B} or \\boxed{C}`."""
_REASON = re.compile(r"\b(?:as|because|but|instead|not|rather|since|whereas|which|while)\b", re.IGNORECASE)
_DENIED = re.compile(
    r"""[\s.;,(–—-]* (?i:(?:options?|choices?|answers?|letters?)\s+)? [(\[]?[A-Z][)\]]?
    (?: \s*(?:,|,?\s*\b(?i:and|or|nor)\b)\s* [(\[]?[A-Z][)\]]? )*
    \s+(?: (?i:is|are|was|were)\s+(?i:(?:both|all|also|clearly|simply)\s+)*
            (?i:incorrect|wrong|false|not\s+(?:correct|right|true))\b
        | (?i:ignores?|fails?|omits?|lacks?|contradicts?|violates?|overlooks?|misses|cannot|(?:does|do|is|are)n't
            |(?:does|do)\s+not)\b )""",
    re.VERBOSE,
)
"""A sentence or an aside that says why another option is wrong: `. A and C are wrong`, `(option A ignores it)`."""
_ALL_OF = re.compile(r"[\s.):]*(?i:all|none|both|neither|some)\s+of\s+(?i:the|these|those|them)\b")
"""The text of an option that names the others: `D. All of the above (A, B and C)`."""
_BRACKETED = re.compile(r"(?:\b|[(\[])[A-Z][)\]]")
_DOTTED = re.compile(r"\b([A-Z])[.:]")


class Choice(PureGrader):
    """1 if the response chooses the gold letter.

    The last claim in the response counts: an `<answer>` tag, a `\\boxed{...}`, a line `Answer: ...`, or a sentence
    with `answer is`, `option is` or `choice is` before the letter. A claim reads `C`, `(C)`, `C.`, `C) text`, `Option
    C`, `C because ...`, bold or in LaTeX. Without a claim, the only letter on a line of its own counts, else the only
    letter that begins a line as an option does. Not accepted: two letters (`A, C`, `(A) and (C)`, `A or C`, `A/C`), a
    letter inside prose, and the last capital letter of a text, which MMLU-Pro's own script accepts as a last resort.

    The gold answer is a letter, or JSON: `{"letter": "C", "options": ["Oslo", "Lima", "Rome"]}`. With JSON, a claim
    that is the text of exactly one option, compared as `normalised` does, counts as its letter.
    """

    kind: Literal["choice"] = "choice"
    answer: AnswerPlace = "final"
    """Where the answer stands in the response. "final": as above. Any other place: all its text is the claim."""

    def gold_problem(self, gold: str) -> str | None:
        return None if _key(gold) is not None else f"the gold answer {gold!r} is no letter of an option"

    def judge(self, response: str, gold: str) -> Grade:
        key = _key(gold)
        if self.answer == "final":
            claim = _last_claim(response, key)
        else:
            answer = extract(response, self.answer)
            claim = None if answer is None else _marked_claim(_without_markup(answer), key)
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
    """The letter that is claimed; empty if the claim names none, or several."""


def _key(gold: str) -> _Key | None:
    try:
        value: Any = json.loads(gold)
    except (ValueError, RecursionError):
        value = {"letter": gold.strip()}
    if not isinstance(value, dict) or not value.keys() <= {"letter", "options"}:
        return None
    letter, options = value.get("letter"), value.get("options", [])
    if not isinstance(letter, str) or not re.fullmatch("[A-Z]", letter) or not isinstance(options, list):
        return None
    if not all(isinstance(option, str) for option in options) or 0 < len(options) <= ord(letter) - ord("A"):
        return None
    return _Key(letter, tuple(map(normalised_words, options)))


def _last_claim(response: str, key: _Key | None) -> _Claim | None:
    text = _without_markup(without_thoughts(response))
    marks = list(_ANSWER_MARK.finditer(text))
    marked = {mark.end() for mark in marks}
    stated = {match.end() for match in _SAID.finditer(text)}
    for start in sorted(marked | stated, reverse=True)[:_MAX_OPTIONS]:
        read = _marked_claim if start in marked else _leading_claim
        claim = read(text[start : start + _MAX_CLAIM_CHARS].partition("</answer>")[0], key)
        if claim is not None:
            return _Claim(claim.text, "") if _beside_another(text, marks, start, claim) else claim
    return _in_lines(
        [line[:_MAX_CLAIM_CHARS].strip() for line in re.findall(r"\S.*", text)[-_MAX_OPTIONS:]], key
    )


def _beside_another(text: str, marks: list[re.Match[str]], start: int, claim: _Claim) -> bool:
    """Whether the answer mark right before the claim's mark has another letter."""
    for first, second in pairwise(marks):
        if second.end() == start and (other := _TOGETHER.fullmatch(text, first.end(), second.start())):
            return other[1].upper() != claim.letter
    return False


def _without_markup(text: str) -> str:
    """The end of a text in Unicode's form NFKC (`to_nfkc`), without emphasis and LaTeX's fonts."""
    # Cut on both sides of NFKC, which makes 18 characters of one.
    return _MARKUP.sub("", to_nfkc(text[-_READ:])[-_READ:])


def _marked_claim(text: str, key: _Key | None) -> _Claim:
    """The claim in a place that is marked as the answer. A claim that is not a letter is a wrong answer."""
    return _leading_claim(text, key) or _Claim(text.strip(), "")


def _leading_claim(text: str, key: _Key | None) -> _Claim | None:
    """The claim at the beginning of a text, or None if the text begins with something else."""
    line, _, after = text.strip().partition("\n")
    alone = _ALONE.fullmatch(line)
    begun = alone or _LETTER.match(line)
    if begun is None:
        return _option_claim(line, key)
    letter = next(filter(None, begun.groups())).upper()
    rest = line[begun.end() :]
    if key and rest.strip() and _option_claim(rest, key) == _Claim(rest, letter):
        return _Claim(line, letter)  # the option's own text may name letters
    follows = _ALONE.fullmatch if alone else _OPTION.match
    next_line = (after.lstrip() if alone else after).partition("\n")[0]
    several = follows(next_line) or _NEXT_LINE.match(next_line) or _goes_on(letter, rest)
    return _Claim(line, "" if several else letter)


def _option_claim(text: str, key: _Key | None) -> _Claim | None:
    options = key.options if key else ()
    if len(text) > 100 + 4 * max(map(len, options), default=0):
        return None  # no option is so long
    words = normalised_words(text)
    indices = [index for index, option in enumerate(options) if option == words]
    return _Claim(text, chr(ord("A") + indices[0])) if len(indices) == 1 else None


def _goes_on(letter: str, rest: str) -> bool:
    """Whether the text behind a letter lists further letters. Letters in a reason are not listed."""
    if _ALL_OF.match(rest):
        return False
    rest = _DENIED.split(rest, maxsplit=1)[0]
    listed = _REASON.split(rest, maxsplit=1)[0]
    following = chr(ord(letter) + 1) + chr(ord(letter) + 2)
    # Names have dots, too, as in "C. Franklin D. Roosevelt", so only consecutive letters are a list.
    in_a_row = following in "".join(_DOTTED.findall(listed))
    return in_a_row or bool(_MORE.match(rest) or _BRACKETED.search(listed) or _LISTED.search(listed))


def _in_lines(lines: list[str], key: _Key | None) -> _Claim | None:
    if len(lines) <= 1:
        return _marked_claim(lines[0], key) if lines else None
    alone = {line for line in lines if _ALONE.fullmatch(line)}
    begun = {line for line in lines if _OPTION.match(line)}
    for chosen in (alone, begun, {lines[-1]}):
        claims = {claim.letter for line in chosen if (claim := _leading_claim(line, key))}
        if claims:
            return _Claim(lines[-1], claims.pop() if len(claims) == 1 else "")
    return None
