"""Folds a conversation into the form that a strict chat template needs.

Many templates raise an error unless one system message comes first and users and assistants take turns after it; some
know no system role. Nothing that was said is left out. A conversation is folded only for an endpoint whose error says
that it needs this, with one exception: the system messages at the beginning always become one, since a template that
reads only the first would lose the others without a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Flag, auto

from podium.types import Message

_OPENING = "(The assistant begins.)"
"""The user's message that is put before a conversation that begins with an assistant."""
_GO_ON = "Please continue."
"""The user's message that is put after a conversation that ends with an assistant."""
_GAP = "\n\n"

_ENDS = re.compile(
    r"prefill|(?:must|should|has to) end with (?:a |the )?['\"`]?(?:user|tool)|expected last role"
    r"|(?:last|final) message (?:must|should|has to|cannot|role)"
)
_FORM = re.compile(
    r"alternat|consecutive (?:user|assistant|messages|roles)|2 or more assistant messages|unexpected (?:message )?role"
    r"|system (?:role|messages?|prompts?|instructions?)\b.{0,60}\b(?:beginning|first|start|once"
    r"|(?:not|n['’]t) (?:be )?(?:support|allow|enabl|accept|permit)|unsupported)"
    r"|(?:only one|multiple|more than one) system"
    r"|not support (?:a |the )?['\"`]?(?:system|developer)|developer instructions?\b.{0,20}not"
    r"|(?:unsupported|unknown|invalid) (?:message )?role|only ['\"`]?user|['\"`]system['\"`] is not"
    r"|first (?:message|turn|content|role)\b.{0,60}\buser|(?:start|begin)s? with (?:a |the )?['\"`]?user"
    r"|no user (?:query|message)|non-?empty|either content or tool_calls"
    r"|(?:content|messages?|text|parts)\b.{0,40}\b(?:empty|blank)\b|(?:empty|blank) (?:content|message|text)"
)
_TEMPLATE = re.compile(
    r"jinja|chat[_ ]template\b|template_?error|template (?:error|exception)|value is not callable: null"
)


class MessageForm(Flag):
    """The form of messages that a chat template needs, as far as it is known."""

    AS_WRITTEN = 0
    IN_TURNS = auto()
    """One system message at the beginning, then users and assistants in turns, a user first, and none empty."""
    WITHOUT_SYSTEM = auto()
    """No system message: its text begins the first message of a user."""
    ENDS_WITH_USER = auto()

    def fold(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The conversation in this form. Tool messages stay behind the calls that they answer."""
        leading = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
        if leading < 2 and not self:
            return tuple(messages)
        folded = [*_as_one(messages[:leading]), *messages[leading:]]
        if self.IN_TURNS in self:
            folded = _in_turns(folded)
        if self.WITHOUT_SYSTEM in self:
            folded = _without_system(folded)
        if (
            self.ENDS_WITH_USER in self
            and folded
            and folded[-1].role == "assistant"
            and not folded[-1].tool_calls
        ):
            folded.append(Message(role="user", content=_GO_ON))
        return tuple(folded)

    def after(self, said: str, messages: Sequence[Message]) -> MessageForm | None:
        """The form to try next after an endpoint said this of these messages, which are not folded. None if that is not
        about the form, or another form would change nothing."""
        said = said.lower()
        if _ENDS.search(said):
            steps = [self.ENDS_WITH_USER, self.IN_TURNS]
        elif _FORM.search(said) or _TEMPLATE.search(said):
            steps = [self.IN_TURNS, self.WITHOUT_SYSTEM, self.ENDS_WITH_USER]
        else:
            return None
        before, form = self.fold(messages), self
        for step in steps:
            form |= step
            if form.fold(messages) != before:
                return form
        return None


def _as_one(system: Iterable[Message]) -> list[Message]:
    given = list(system)
    if len(given) < 2:
        return given
    text = _GAP.join(message.content for message in given if message.content.strip())
    return [given[0].model_copy(update={"content": text, "name": None})]


def _in_turns(messages: Sequence[Message]) -> list[Message]:
    system = _as_one(message for message in messages if message.role == "system" and message.content.strip())
    others = [message for message in messages if message.role != "system"]
    spoken = [message for message in others if not _is_empty(message)]
    folded: list[Message] = []
    for message in spoken if spoken or system else others:
        if folded and message.role == folded[-1].role != "tool" and not folded[-1].tool_calls:
            folded[-1] = _merge_messages(folded[-1], message)
        else:
            folded.append(message)
    if not folded and system:
        return [system[0].model_copy(update={"role": "user"})]
    if folded and folded[0].role != "user":
        folded.insert(0, Message(role="user", content=_OPENING))
    return [*system, *folded]


def _is_empty(message: Message) -> bool:
    return not (message.content.strip() or message.images or message.tool_calls or message.role == "tool")


def _merge_messages(first: Message, second: Message) -> Message:
    """Two messages of one role as one. The rest of it is the second's, which alone may have tool calls."""
    texts = [first.content, second.content]
    if first.name != second.name:
        texts = [
            message.content if message.name is None else f"{message.name}: {message.content}"
            for message in (first, second)
        ]
    return second.model_copy(
        update={
            "content": _GAP.join(text for text in texts if text.strip()),
            "images": first.images + second.images,
            "name": first.name if first.name == second.name else None,
        }
    )


def _without_system(messages: Sequence[Message]) -> list[Message]:
    text = _GAP.join(message.content for message in messages if message.role == "system")
    others = [message for message in messages if message.role != "system"]
    if not text.strip():
        return others
    at = next((at for at, message in enumerate(others) if message.role == "user"), None)
    if at is None:
        return [Message(role="user", content=text), *others]
    first = others[at]
    others[at] = first.model_copy(update={"content": _GAP.join(filter(None, (text, first.content)))})
    return others
