r"""Extraction: finds the answer in a response. What is not found at the named place is no answer.

- `final`: the last `Answer: ...` line or `<answer>...</answer>`, whichever begins later; else the last `\boxed{...}`;
  else the last line that is not empty. Most of our prompts ask for this form.
- `stated`: the latest of a run of boxes, an `<answer>` tag, the `"answer"` of a JSON object and "final answer is ...".
  Without any of them: the last "answer: ..." or "answer is ..."; else the last line. For mathematics.
- `formula`: the same place, and in it the last formula between marks of LaTeX; numbers in prose do not count.
- `tag`: inside the last `<answer>...</answer>`.
- `boxed`: inside the last `\boxed{...}`.
- `field`: the value of the last `"answer": ...` of a JSON object.
- `hashes`: what follows the last `####` on its line, as in GSM8K.
- `line`: the last line that is not empty.
- `code`: inside the fenced block that holds the program (`podium.text.code_blocks`), else all of the response.
- `whole`: all of the response.

Nothing is parsed here; the work grows with the length of the response alone. Graders compare what is found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Literal

from podium.text.answer import ANSWER_LINE, final_answer, find_tagged, last_line, tagged_answer
from podium.text.boxes import boxed_answer, last_boxes
from podium.text.code_blocks import last_program
from podium.text.thoughts import without_thoughts

AnswerPlace = Literal[
    "final", "stated", "formula", "tag", "boxed", "field", "hashes", "line", "code", "whole"
]

_WINDOW = 8000
"""Characters that are read behind a mark, or at the end of a response."""


def extract(response: str, place: AnswerPlace) -> str | None:
    """Find the answer at a place, without outer space and thoughts. None if it is empty or missing."""
    return (_FINDERS[place](without_thoughts(response)) or "").strip() or None


def after_hashes(response: str) -> str | None:
    """The text behind the last `####`, to the end of the line."""
    _, mark, rest = response.rpartition("####")
    return rest.removeprefix(":").partition("\n")[0] if mark else None


# "The final answer is 5." and "Answer: 5"
_FINAL_ANSWER_MARK = re.compile(
    r"\bfinal\s+answer\b(?:[^\n:$\\=\d]{0,60}?(?::|=|\bis\b:?)|[^\S\n]*[*_#]*[^\S\n]*(?=\n))", re.IGNORECASE
)
_ANSWER_MARK = re.compile(
    r"\banswer\b[^\n:$\\=\d]{0,60}?(?::|=|\b(?:is|are|becomes|equals|(?:would|must|should|will) be)\b:?)"
    rf"|^[^\w\n]*+{ANSWER_LINE}",
    re.IGNORECASE | re.MULTILINE,
)


def stated_answer(text: str) -> str | None:
    """The stated answer as it is written, without the frame of boxes, or None if there is none."""
    response = text.strip()
    found = (
        last_boxes(response),
        _last_tagged_answer(response),
        _last_json_answer(response),
        _answer_after(_FINAL_ANSWER_MARK, response),
    )
    if any(found):
        return max(filter(None, found))[1]
    answer = _answer_after(_ANSWER_MARK, response)
    return answer[1] if answer else _answer_in_last_line(response)


# "it is $3$, $4$ and \(5\)" has the formulas 3, 4 and 5.
_FORMULA = re.compile(
    r"\$\$((?:[^$]|\\\$)+)\$\$|(?<!\\)\$((?:[^$\n\\]|\\.)+)\$|\\\[(.+?)\\\]|\\\(([^\n]+?)\\\)"
    r"|(\\begin\{.+\\end\{\w+\*?\})",
    re.DOTALL,
)
_SEPARATOR = re.compile(r"\s*(?:,?\s*(?:and|or)\b|[,;])?\s*")


def stated_formula(text: str) -> str | None:
    """The last formula of the stated answer, with those that are joined to it, without dollars; or its boxes."""
    response = text.strip()
    statement, boxes = stated_answer(response), last_boxes(response)
    if statement is None or (boxes and boxes[1] == statement):
        return statement
    contents: list[str] = []
    begins = 0
    for formula in reversed(list(_FORMULA.finditer(statement[-_WINDOW:]))):
        if contents and not _SEPARATOR.fullmatch(statement[-_WINDOW:], formula.end(), begins):
            break
        contents.append(formula[formula.lastindex or 0])
        begins = formula.start()
    return ", ".join(reversed(contents)) or None


def json_answer_field(text: str) -> str | None:
    """The value of the last `"answer": ...` of a JSON object, even if the object is incomplete."""
    return (_last_json_answer(text) or (0, None))[1]


def _last_tagged_answer(text: str) -> tuple[int, str] | None:
    start, _, content = find_tagged(text)
    return (start, content.strip()) if content and content.strip() else None


# {"answer_1": "5", "answer_2": "6"}
_ANSWER_MEMBER = re.compile(
    r'"(?:(?:other|second|alternative|alternate|possible)[_ ]?answers?|answer(?:[_ ]?\d|[_ ]alternative)?)"\s*:\s*',
    re.IGNORECASE,
)
_NEXT_OBJECT = re.compile(r"[^{}]*\}\s*,\s*\{[^{}]*")


def _last_json_answer(text: str) -> tuple[int, str] | None:
    """The last value, or all values of one object that names several answers."""
    found = None
    values: list[str] = []
    for member in reversed(list(_ANSWER_MEMBER.finditer(text))):
        if found and not _in_one_object(text[member.end() : found.start()]):
            break
        found = member
        value = _member_value(text[member.end() : member.end() + _WINDOW]).strip()
        values += [value] if value and value not in values else []
    return (found.start(), ", ".join(reversed(values))) if found and values else None


def _in_one_object(between: str) -> bool:
    """Whether what stands between two members leaves their object nowhere, but for the next object of a list."""
    if _NEXT_OBJECT.fullmatch(between):
        return True
    depth = 0
    for sign in between[:_WINDOW]:
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth < 0:
            return False
    return depth == 0 and len(between) < _WINDOW


# Behind "answer": come "\frac12", ["5", "6"], or 5, "unit": "m"}
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_VALUE_END = re.compile(r',\s*(?=["\n])|[}\n]')
_SPOILT_LATEX = {8: "\\b", 9: "\\t", 12: "\\f", 13: "\\r"}
"""Control characters that JSON makes of LaTeX commands whose backslash is not doubled."""


def _member_value(text: str) -> str:
    quoted = _QUOTED.match(text)
    if quoted:
        return _unescaped(quoted[1])
    if text.startswith("["):
        return text.partition("]")[0].replace('"', "") + "]"
    return _VALUE_END.split(text, maxsplit=1)[0]


def _unescaped(quoted: str) -> str:
    try:
        return str(json.loads(f'"{quoted}"', strict=False)).translate(_SPOILT_LATEX)
    except ValueError:  # LaTeX whose backslashes are not doubled
        return quoted.replace('\\"', '"').replace("\\\\", "\\")


# "The answer is 5 or the answer is **6**. The answer is correct."
_GAP = re.compile(r"[\s*_#:>\"]*")
_REMARK = re.compile(
    r"(?:\w+ )?(?:correct|right|wrong|verified|confirmed|reasonable|provided|given|shown)\b", re.IGNORECASE
)
"""Behind "the answer is": a remark about the answer, and not the answer itself."""
_BESIDE = re.compile(r"\w\W*\b(?:or|and|maybe|perhaps)\W+(?:(?:the|my|final|maybe)\W+)*$", re.IGNORECASE)
"""The end of a statement that the next one stands beside: "The answer is 5 or the answer is 6"."""


def _answer_after(mark: re.Pattern[str], text: str) -> tuple[int, str] | None:
    """The text behind the last mark, to the end of its sentence, formula or list."""
    marks = list(mark.finditer(text))
    for index, match in reversed(list(enumerate(marks))):
        gap = _GAP.match(text, match.end())
        start = gap.end() if gap else match.end()
        lines = [] if _REMARK.match(text, start) else _lines(text[start : start + _WINDOW])
        if lines:
            before = text[marks[index - 1].end() : match.start()] if index else ""
            beside = before if "\n" not in before and _BESIDE.search(before) else ""
            return match.start(), f"{beside}{_first_statement(lines)}"
    return None


_LINE = re.compile(r"(?:\\begin\{.*?\\end\{\w+\*?\}|\\\[.*?\\\]|\$\$.*?\$\$|[^\n])+", re.DOTALL)
"""A line; a displayed formula is part of one."""


def _lines(text: str) -> list[str]:
    return [line for line in _LINE.findall(text) if re.search(r"\w", line)]


def _first_statement(lines: list[str]) -> str:
    """The first sentence of the first line; or a list, if the first lines are bare values."""
    bare = _count_bare_lines(lines)
    first = _listed(lines[:bare]) if bare else _sentence(lines[0], last=False)
    taken_back = lines[bare or 1 : (bare or 1) + 1]
    return f"{first}. {taken_back[0]}" if taken_back and _TAKEN_BACK.match(taken_back[0]) else first


# "It is 5.\n\nHope this helps!", and "so it is at the" where the response was cut off
_FAREWELL = re.compile(
    r"\s*(?:(?:please )?(?:let me know|feel free)|(?:i )?hope (?:this|that)|if you (?:have|need|want)"
    r"|is there anything)\b",
    re.IGNORECASE,
)
"""A line behind the answer that a chat model says to the user."""
_UNFINISHED = re.compile(r"(?:[-+/=<>(,:]|\b(?:an?|and|are|by|for|if|in|is|of|or|that|the|to|we|with))\Z")
"""The end of a response that was cut off."""


def _answer_in_last_line(text: str) -> str | None:
    """The last sentence of the last line; or a list, if the last lines are bare values."""
    lines = _lines(text[-_WINDOW:])
    while len(lines) > 1 and _FAREWELL.match(lines[-1]):
        lines.pop()
    if not lines or _UNFINISHED.search(text[-20:]):
        return None
    bare = _count_bare_lines(lines[::-1])
    return _listed(lines[-bare:]) if bare else _sentence(lines[-1], last=True)


# "- 5", "(b) 6" and "7"
_BULLET = r"(?:[-*•]|\(?(?:\d{1,4}|[A-Za-z])[.)])[ \t]+"
_ENTRY = re.compile(rf"[ \t]*{_BULLET}")
_BARE_LINE = re.compile(rf"[ \t]*(?:{_BULLET})?[^\s=]{{1,40}}[ \t]*")
"""A line that is only a value, or an entry of a list."""


def _count_bare_lines(lines: list[str]) -> int:
    return next((index for index, line in enumerate(lines) if not _BARE_LINE.fullmatch(line)), len(lines))


def _listed(lines: list[str]) -> str:
    return lines[0] if len(lines) == 1 else ", ".join(_ENTRY.sub("", line, count=1).strip() for line in lines)


# "It is 5, since 2 + 3 = 5. Wait, that is wrong."
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z<])")
_HOPE = re.compile(r"\bI hope (?:it|this|that)\b")
_DIGIT_OR_FORMULA = re.compile(r"[\d\\$]")
_ASIDE = re.compile(r",? which\b|,? because\b|,? since\b|, as\b|,? when\b")
"""Begins an explanation, which is not part of the answer."""
_TAKEN_BACK = re.compile(
    r"\W*(?:(?:no|nope|wait|oops|sorry|correction|scratch that)\b\s*(?:[,.!?:;–—-]|$)"
    r"|(?:that|this|it)(?: is|'s) (?:wrong|incorrect|not (?:right|correct|true))\b"
    r"|(?:wrong|incorrect)\W*$|not (?:correct|right)\b)",
    re.IGNORECASE,
)
"""The beginning of a sentence that takes back the one before."""


def _sentence(line: str, *, last: bool) -> str:
    """The first or last sentence with a digit or a formula, if there is one; the first without its explanation. If the
    next sentence takes it back, the rest of the line belongs to it."""
    sentences = _SENTENCE_END.split(_HOPE.split(line)[0])
    valued = [index for index, sentence in enumerate(sentences) if _DIGIT_OR_FORMULA.search(sentence)]
    chosen = (valued or range(len(sentences)))[-1 if last else 0]
    sentence, rest = sentences[chosen], sentences[chosen + 1 :]
    asides = [] if last else [aside.start() for aside in _ASIDE.finditer(sentence)]
    stated = sentence[: next((end for end in asides if _DIGIT_OR_FORMULA.search(sentence, 0, end)), None)]
    return " ".join([sentence, *rest]) if rest and _TAKEN_BACK.match(rest[0]) else stated.rstrip("!")


_FINDERS: Mapping[AnswerPlace, Callable[[str], str | None]] = {
    "final": final_answer,
    "stated": stated_answer,
    "formula": stated_formula,
    "tag": tagged_answer,
    "boxed": boxed_answer,
    "field": json_answer_field,
    "hashes": after_hashes,
    "line": last_line,
    "code": lambda response: last_program(response) or response,
    "whole": lambda response: response,
}
