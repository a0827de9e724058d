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

    The last `Answer: ...` line, else the last `<answer>...</answer>`, else the last `\\boxed{...}`, else the
    last line that is not empty.
    """
    for find in (_after_word, _in_tag, _in_box, _last_line):
        answer = _bare(find(text) or "")
        if answer:
            return answer
    return None


def normalise(answer: str) -> str:
    """What two answers that say the same have in common: case, outer space and a final dot do not count."""
    return " ".join(answer.casefold().split()).rstrip(". ")


def _after_word(text: str) -> str | None:
    last = None
    for last in _ANSWER.finditer(text):  # noqa: B007 - the last match is what is wanted
        pass
    if last is None:
        return None
    rest = text[last.end() :].lstrip()
    return rest.partition("\n")[0]


def _in_tag(text: str) -> str | None:
    folded = text.lower()
    stop = folded.rfind("</answer>")
    start = folded.rfind("<answer>", 0, max(stop, 0))
    return text[start + len("<answer>") : stop] if start >= 0 else None


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
