r"""Boxes, `\boxed{...}` or `\fbox{...}`, in which responses put their answers.

Stands below `statement`. A box without brackets holds the number or the letter behind it; one that the text breaks off
holds the rest of its line.
"""

from __future__ import annotations

import re

_BOX = re.compile(r"\\(?:boxed|fbox)\s*")
_UNFRAMED = re.compile(r"\d+|[A-Za-z]")
_PERCENT = re.compile(r"[\s$})\]\\]*(?:%|percent|pct\b)", re.IGNORECASE)
_JOINT = re.compile(r"\b(?:and|or)\b|[,;]")
_NEAR, _FAR = 10, 70
"""Boxes are one answer that stand closer than the first; or than the second, with a joint between, in one sentence."""
_SENTENCE_END = re.compile(r"[.!?]\s")


def boxed(text: str) -> str | None:
    """What stands in the last box; it may be empty."""
    boxes = list(_BOX.finditer(text))
    framed = _framed(text, boxes[-1].end(), len(text)) if boxes else None
    return framed[1] if framed else None


def last_boxes(text: str) -> tuple[int, str] | None:
    """The last run of boxes: where the last of them begins, and their contents, as a list."""
    contents: list[str] = []
    begins = following = len(text)
    for box in reversed(list(_BOX.finditer(text))):
        framed = _framed(text, box.end(), following)
        if framed is None and not contents:
            continue
        if framed is None:
            break
        end, content = framed[0], framed[1].strip()
        if not contents:
            begins = box.start()
            content += "\\%" if content and _PERCENT.match(text, end) else ""
        elif not _one_answer(text[end:following], repeats=content == contents[-1]):
            break
        if content not in contents[-1:]:
            contents.append(content)
        following = box.start()
    said = ", ".join(content for content in reversed(contents) if content)
    return (begins, said) if said else None


def _one_answer(between: str, *, repeats: bool) -> bool:
    if repeats or _SENTENCE_END.search(between):
        return len(between) < _NEAR
    return len(between) < _NEAR or (len(between) < _FAR and bool(_JOINT.search(between)))


def _framed(text: str, start: int, stop: int) -> tuple[int, str] | None:
    """Where the box ends whose bracket opens at `start`, before `stop`, and what is in it."""
    if not text.startswith("{", start):
        sign = _UNFRAMED.match(text, start)
        return (sign.end(), sign.group()) if sign else None
    depth = 0
    for at in range(start, stop):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1, text[start + 1 : at]
    return (stop, text[start + 1 : stop].partition("\n")[0]) if stop == len(text) else None
