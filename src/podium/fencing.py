"""Fences texts that a prompt quotes: whatever such a text says, it cannot end its own fence.

A policy's prompt fences with tildes, which need no mark: it was trained on them, and equal prompts stay equal. Workers
and judges read blocks with a mark that the author of a text cannot know, and a label that says whose text it is.
"""

from __future__ import annotations

import re


def tilde_fence(text: str) -> str:
    """`text` between two lines of tildes, which are longer than any run of tildes in it."""
    longest = max((len(run) for run in re.findall(r"~+", text)), default=0)
    line = "~" * max(3, longest + 1)
    return f"{line}\n{text}\n{line}"


def marked_block(label: str, text: str, mark: str) -> str:
    """A line with label and mark, then `marked_text`."""
    return f"<<<{label} {mark}>>>\n{marked_text(text, mark)}"


def marked_text(text: str, mark: str) -> str:
    """`text` without the mark, then a line that ends it. Workers see the mark, so one of them could write it."""
    return f"{text.replace(mark, '-')}\n<<<end {mark}>>>"
