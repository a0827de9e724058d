"""The content of a request as data, for tools and scripted workers.

The executor sends this content with the messages (`Request.executor_view`). `read_view` parses messages that come
without it, such as the question of a nested team, which another executor wrote. `read_view` trusts only fences with the
random mark of the message's last fence, so text that imitates a fence stays text. It never raises: a message of any
other form is a question without earlier steps.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podium.types import ANSWER_WHOLE_QUESTION, Message

OWN_SUBTASK = "your subtask"
"""The label of the last block of a packed message. The next two constants are labels of the blocks before it."""
SUBTASK = "subtask"
PREVIOUS_RESPONSE = "previous response"
CHAT_QUESTION = "Question:\n"
"""The beginning of the last message of the chat layout. The next two constants separate its parts and name the round
before."""
CHAT_SUBTASK = "\n\nYour subtask:\n"
CHAT_PREVIOUS = "The answer of the round before"
_NUMBER = re.compile(r"^\d\. ")
_END = "\n<<<end "
_RESPONSE = re.compile(r"(?:round (?P<round>\d{1,9}) )?step (?P<position>\d{1,9}) response", re.ASCII)


@dataclass(frozen=True, slots=True)
class EarlierStep:
    """One earlier step that a worker sees."""

    position: int | None
    """The step's position, from 0. None in messages of the chat layout, which lack it."""
    subtask: str
    response: str
    round: int | None = None
    """The earlier round of the step, from 0. None for the same round, and for messages of the chat layout."""

    @property
    def label(self) -> str:
        """The label of the block that has the step's response."""
        label = f"step {self.position} response"
        return label if self.round is None else f"round {self.round} {label}"


@dataclass(frozen=True, slots=True)
class WorkerView:
    """The content of a request: the question, earlier work and the subtask."""

    question: str
    subtask: str
    earlier: tuple[EarlierStep, ...] = ()
    """The earlier steps, in the order of the messages. In the chat layout, turns of the chat history look like steps
    too."""
    previous: str | None = None
    """The final response of the previous round. None if the worker does not see it."""

    @property
    def shows_others_work(self) -> bool:
        """Whether the view has responses of earlier steps or rounds."""
        return bool(self.earlier) or self.previous is not None

    @property
    def is_bare(self) -> bool:
        """Whether the view has no earlier responses, and the subtask asks for the whole question."""
        return not self.shows_others_work and requests_whole_question(self.subtask, self.question)


def requests_whole_question(subtask: str, question: str) -> bool:
    """Whether a subtask asks for an answer to the whole question, not to a part or a rewording of it.

    A number in front ("1. ") makes no difference, since small policies number their subtasks.
    """
    return any(
        text.strip() in (ANSWER_WHOLE_QUESTION, question.strip())
        for text in (subtask, _NUMBER.sub("", subtask))
    )


def read_view(messages: Sequence[Message]) -> WorkerView:
    """Parse messages of the executor. If others wrote them, the last user message is both question and subtask."""
    last = max((i for i, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        return WorkerView(question="", subtask="")
    text = messages[last].content
    view = _read_packed(text) or _read_chat(text, messages[:last])
    return view or WorkerView(question=text, subtask=text)


def _read_packed(text: str) -> WorkerView | None:
    # The worker's own subtask is the last block of the message, so the last end line is never forged: any text inside a
    # block is followed by that block's own end line.
    start = text.rfind(_END)
    stop = text.find(">>>", start)
    if start < 0 or text[stop:] != ">>>":
        return None
    mark = text[start + len(_END) : stop]
    question, _, blocks = text.partition(text[start : stop + len(">>>")])
    subtask = previous = None
    shown: list[EarlierStep] = []
    for label, body in _blocks(blocks, mark):
        if label == OWN_SUBTASK:
            return WorkerView(question, body, tuple(shown), previous)
        if label == SUBTASK:
            subtask = body
        elif label == PREVIOUS_RESPONSE:
            previous = body
        elif (step := _RESPONSE.fullmatch(label)) is not None:
            round = None if step["round"] is None else int(step["round"])
            shown.append(EarlierStep(int(step["position"]), subtask or "", body, round))
            subtask = None
    return None


def _blocks(text: str, mark: str) -> Iterator[tuple[str, str]]:
    opening, closing = f" {mark}>>>\n", f"{_END}{mark}>>>"
    position = 0
    while (stop := text.find(opening, position)) >= 0:
        start = text.rfind("<<<", position, stop)
        body = stop + len(opening)
        # Search from one character back, since an empty block has only one line break.
        end = text.find(closing, body - 1)
        if end < 0:
            return
        if start >= 0:
            yield text[start + 3 : stop], text[body:end]
        position = end + len(closing)


def _read_chat(text: str, earlier: Sequence[Message]) -> WorkerView | None:
    question, between, subtask = text.rpartition(CHAT_SUBTASK)
    if not between or not question.startswith(CHAT_QUESTION):
        return None
    shown: list[EarlierStep] = []
    previous = None
    for user, assistant in itertools.pairwise(earlier):
        if user.role == "user" and assistant.role == "assistant":
            if user.content == CHAT_PREVIOUS:
                previous = assistant.content
            else:
                shown.append(EarlierStep(None, user.content, assistant.content))
    return WorkerView(question[len(CHAT_QUESTION) :], subtask, tuple(shown), previous)
