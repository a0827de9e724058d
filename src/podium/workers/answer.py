"""The final answer of a response: found, then normalised for comparison.

For tools that compare workers' answers. Not a grader: it decides nothing about right and wrong.
"""

from __future__ import annotations

import re

_ANSWER = re.compile(
    r"^[^\w\n]*(?:the |my )?(?:final )?answer[^\w\n:]*:[ \t*_]*", re.IGNORECASE | re.MULTILINE
)
_BOXED = "\\boxed{"


def final_answer(text: str) -> str | None:
    """The answer that `text` ends with, as written; None when there is no text.

    The last `Answer: ...` line or `<answer>...</answer>`, whichever begins later, else the last `\\boxed{...}`,
    else the last line that is not empty.
    """
    start, stop, tagged = _in_tag(text)
    place, said = _after_word(text, start, stop)
    named = (said, tagged) if place > start else (tagged, said)
    for found in (*named, _in_box(text), _last_line(text)):
        answer = _bare(found or "")
        if answer:
            return answer
    return None


def normalise(answer: str) -> str:
    """What two answers that say the same have in common: case, outer space and a final dot do not count."""
    return " ".join(answer.casefold().split()).rstrip(". ")


def _after_word(text: str, start: int, stop: int) -> tuple[int, str | None]:
    """Where it begins, and what it says; a line from `start` to `stop` is part of a tagged answer."""
    last = None
    for match in _ANSWER.finditer(text):
        if not start < match.end() <= stop:
            last = match
    if last is None:
        return -1, None
    rest = text[last.end() :].lstrip()
    return last.start(), rest.partition("\n")[0]


def _in_tag(text: str) -> tuple[int, int, str | None]:
    """Where it begins and ends, and what it says."""
    folded = text.lower()
    stop = folded.rfind("</answer>")
    start = folded.rfind("<answer>", 0, max(stop, 0))
    if start < 0:
        return -1, -1, None
    return start, stop + len("</answer>"), text[start + len("<answer>") : stop]


def _in_box(text: str) -> str | None:
    start = text.rfind(_BOXED)
    if start < 0:
        return None
    start += len(_BOXED)
    depth = 1
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[start:i]
    return None


def _last_line(text: str) -> str | None:
    return text.rstrip().rpartition("\n")[2]


def _bare(answer: str) -> str:
    """Without the dress that models put round an answer: emphasis, backticks, a box."""
    bare = answer.strip()
    for mark in ("**", "*", "`", "$"):
        bare = bare.removeprefix(mark).removesuffix(mark).strip()
    if bare.startswith(_BOXED) and bare.endswith("}"):
        bare = bare[len(_BOXED) : -1].strip()
    return bare
