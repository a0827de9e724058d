"""What a worker is shown, as data: for tools and simulated workers.

The executor hands it over with its messages (`Request.structured`). `read_view` reads it out of messages that arrive
without it: the question of a team is the text that another executor wrote (design §5). It trusts only fences that carry
the token of the message's last fence, so that text which imitates a fence stays text. It never raises: messages of
another form are one question without earlier work.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podium.types import Message

_END = "\n<<<end "
_CHAT_QUESTION = "Question:\n"
_CHAT_PREVIOUS = "The answer of the round before"
_CHAT_SUBTASK = "\n\nYour subtask:\n"


@dataclass(frozen=True, slots=True)
class EarlierStep:
    """One earlier step that is shown."""

    position: int | None
    """Position of its step, from 0; None where it was read out of messages of the chat style, which lack it."""
    subtask: str
    response: str


@dataclass(frozen=True, slots=True)
class View:
    """What a worker is shown."""

    question: str
    subtask: str
    earlier: tuple[EarlierStep, ...] = ()
    """In the order shown. Read out of messages of the chat style, older exchanges of the chat look the same."""
    previous: str | None = None
    """The final response of the round before, if it is shown."""


def read_view(messages: Sequence[Message]) -> View:
    """Read `messages` as the executor wrote them; else the last user message is question and subtask."""
    last = max((i for i, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        return View(question="", subtask="")
    text = messages[last].content
    view = _read_packed(text)
    if view is None:
        view = _read_chat(text, messages[:last])
    return view or View(question=text, subtask=text)


def _read_packed(text: str) -> View | None:
    # The subtask's block is the last of the message, so the last end line is never forged: what stands
    # inside a block is followed by that block's own end.
    start = text.rfind(_END)
    stop = text.find(">>>", start)
    if start < 0 or stop < 0:
        return None
    token = text[start + len(_END) : stop]
    question = subtask = previous = None
    subtasks: dict[int, str] = {}
    shown: list[EarlierStep] = []
    for label, body in _blocks(text, token):
        if label == "question":
            question = body
        elif label == "your subtask":
            subtask = body
        elif label == "previous response":
            previous = body
        else:
            word, _, rest = label.partition(" ")
            number, _, part = rest.partition(" ")
            if word == "step" and number.isdecimal():
                if part == "subtask":
                    subtasks[int(number)] = body
                elif part == "response":
                    shown.append(EarlierStep(int(number), subtasks.get(int(number), ""), body))
    if subtask is None:
        return None
    return View(subtask if question is None else question, subtask, tuple(shown), previous)


def _blocks(text: str, token: str) -> Iterator[tuple[str, str]]:
    """Label and content of every block fenced with `token`, in order."""
    opening, closing = f" {token}>>>\n", f"{_END}{token}>>>"
    place = 0
    while (stop := text.find(opening, place)) >= 0:
        start = text.rfind("<<<", place, stop)
        body = stop + len(opening)
        # From one before: the line break of an empty block is also the one before its end.
        end = text.find(closing, body - 1)
        if end < 0:
            return
        if start >= 0:
            yield text[start + 3 : stop], text[body:end]
        place = end + len(closing)


def _read_chat(text: str, earlier: Sequence[Message]) -> View | None:
    question, found, subtask = text.rpartition(_CHAT_SUBTASK)
    if not found or not question.startswith(_CHAT_QUESTION):
        return None
    shown: list[EarlierStep] = []
    previous = None
    for asked, answered in itertools.pairwise(earlier):
        if asked.role == "user" and answered.role == "assistant":
            if asked.content == _CHAT_PREVIOUS:
                previous = answered.content
            else:
                shown.append(EarlierStep(None, asked.content, answered.content))
    return View(question[len(_CHAT_QUESTION) :], subtask, tuple(shown), previous)
