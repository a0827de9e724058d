r"""Boxes: `\boxed{...}` and `\fbox{...}`, in which models and data sets put final answers."""

from __future__ import annotations

import re

_BOX = re.compile(r"\\(?:boxed|fbox)\s*")
_UNFRAMED = re.compile(r"\d+|[A-Za-z]")
_PERCENT = re.compile(r"[\s$})\]\\]*(?:%|percent|pct\b)", re.IGNORECASE)
_JOINT = re.compile(r"\b(?:and|or)\b|[,;]")
_NEAR, _FAR = 10, 70
"""Characters between boxes that are one answer; and between boxes of one sentence with a joint between them."""
_SENTENCE_BREAK = re.compile(r"[.!?]\s")


def boxed_answer(text: str, *, closed: bool = False) -> str | None:
    """The content of the last box; it may be empty. Unless the box must be `closed`, one that breaks off holds the rest
    of its line."""
    boxes = list(_BOX.finditer(text))
    framed = _framed(text, boxes[-1].end(), len(text), closed=closed) if boxes else None
    return framed[1] if framed else None


def last_boxes(text: str) -> tuple[int, str] | None:
    """The last run of boxes: where its last box begins, and the contents, joined by commas."""
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
    joined = ", ".join(content for content in reversed(contents) if content)
    return (begins, joined) if joined else None


def _one_answer(between: str, *, repeats: bool) -> bool:
    if repeats or _SENTENCE_BREAK.search(between):
        return len(between) < _NEAR
    return len(between) < _NEAR or (len(between) < _FAR and bool(_JOINT.search(between)))


def _framed(text: str, start: int, stop: int, *, closed: bool = False) -> tuple[int, str] | None:
    """The end and the content of the box whose brace opens at `start`, before `stop`. A box without braces holds the
    number or letter behind it."""
    if not text.startswith("{", start):
        sign = _UNFRAMED.match(text, start)
        return (sign.end(), sign.group()) if sign else None
    depth = 0
    for end in range(start, stop):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            return end + 1, text[start + 1 : end]
    breaks_off = stop == len(text) and not closed
    return (stop, text[start + 1 : stop].partition("\n")[0]) if breaks_off else None
