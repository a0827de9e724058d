"""The most input tokens that a call of one worker may be billed, from bytes and from what the worker was seen to count.

No tokenizer makes more tokens of a text than its UTF-8 has bytes. So a worker has one token for each byte, with
constants for what a provider adds: its template, tools, images. Its counts lower that for the kinds of text that it was
seen to count, and raise it where it counts more. `ledger` reserves the result, and settles what a call took.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from podium.types import AnswerOptions, Message, sent_tokens
from podium.workers.base import Worker
from podium.workers.traits import costly_workers

_PER_CALL, _PER_MESSAGE = 64, 16
"""Tokens of a template: a default system prompt, and the marks around each message."""
_FOR_TOOLS, _PER_TOOL = 512, 64
"""Tokens of the instructions that a provider adds where there are tools, and around each tool."""
_PER_IMAGE = 3_000
_MARGIN = 1.25
"""A kind of text may have this many times the tokens for each byte that the worker was seen to count at most."""
_AT_FIRST = 4
"""Tokens that a character may have until the worker has reported a count: what no tokenizer does, an endpoint may."""
_ENOUGH = 512
"""Bytes of one kind, half of the text at least, that show how many tokens it has: a template weighs little then."""
_WORDS = b"abcdefghijklmnopqrstuvwxyz \n"
_WIDTHS = (1, 1, 2, 2, 2, 2, 3, 3)
"""Bytes of a character of each kind that is learned: letters and blanks of ASCII, other ASCII, Greek, Cyrillic, Hebrew,
Arabic, Chinese and Japanese, Korean. All other text stays at a token for each byte: its scripts differ too much."""
_FIRST_BYTES = {
    2: (0xCD, 0xCF),
    3: (0xD0, 0xD3),
    4: (0xD6, 0xD7),
    5: (0xD8, 0xDB),
    6: (0xE3, 0xE9),
    7: (0xEA, 0xED),
}
"""The first bytes of the characters of each kind beyond ASCII."""
_NO_OTHERS = (0,) * (len(_WIDTHS) - 2)
_OTHER = 255


def _kind_of(byte: int) -> int:
    if byte < 0x80:
        return 0 if byte in _WORDS else 1
    return next((kind for kind, (low, high) in _FIRST_BYTES.items() if low <= byte <= high), _OTHER)


_KINDS = bytes(map(_kind_of, range(256)))
_CONTINUATION = bytes(range(0x80, 0xC0))


@dataclass(frozen=True, slots=True)
class InputSize:
    """The size of a call's input, in units that can be counted before the call."""

    text: int
    """Bytes of all text."""
    kinds: tuple[int, ...]
    """Bytes of each kind of text for which the bound learns a rate."""
    messages: int
    attached: int
    """Tokens of tools and images at most, without the text of the tools."""
    plain: int
    """A rough count, four characters a token."""
    wide: int
    """Bytes that are not ASCII."""
    characters: int

    @classmethod
    def of(cls, messages: tuple[Message, ...], options: AnswerOptions, added: str = "") -> InputSize:
        """The size of what is sent.

        Args:
            added: further text that the worker adds.
        """
        texts, images = [added], 0
        for message in messages:
            texts.append(message.content)
            for call in message.tool_calls:
                texts += (call.name, call.arguments)
            images += len(message.images)
        texts += (
            json.dumps(value, ensure_ascii=False)
            for value in (options.tools, options.response_format)
            if value
        )
        text = "".join(texts)
        length, kinds = _bytes_of(text)
        tools = _FOR_TOOLS + _PER_TOOL * len(options.tools) if options.tools else 0
        return cls(
            length,
            kinds,
            len(messages),
            tools + _PER_IMAGE * images,
            sent_tokens(messages, options),
            length - kinds[0] - kinds[1],
            len(text),
        )


class InputTokenBound:
    """The most tokens of input of one worker's calls. It learns from the worker's own counts, for as long as it lives.

    The calls of a scripted or recorded worker take what Podium counts itself, so its bound is that count.
    """

    def __init__(self, worker: Worker) -> None:
        self.proven = not costly_workers([worker])
        """Whether the worker's counts are known: it has reported some, or they are Podium's own."""
        self._own = self.proven
        self._identity = None if self._own else worker.identity
        self._more: str | None = None
        self._rates: dict[int, float] = {}
        """The most tokens for a byte that were seen, by kind of text."""
        self._template: int | None = None
        """The most tokens that were seen of one short message. None if none was seen."""
        self._extra = 0
        """The most tokens beyond the bound that were seen: a provider's own prompt, or images."""

    def size(self, messages: tuple[Message, ...], options: AnswerOptions) -> InputSize:
        """The size of a call's input, with the worker's own system prompt and further keys."""
        if self._more is None:
            added = self._identity or {}
            system = "".join(added.get("system") or ())  # A text, or a list of texts.
            self._more = system + json.dumps(added.get("extra") or "")
        return InputSize.of(messages, options, self._more)

    def upper(self, size: InputSize) -> int:
        """The most input tokens of a call of this size."""
        if self._own:
            return size.plain
        tokens = float(size.text)
        for kind, rate in self._rates.items():
            tokens += (max(min(1.0, _MARGIN * rate), rate) - 1.0) * size.kinds[kind]
        template = float(_PER_CALL + _PER_MESSAGE * size.messages)
        if self._template is not None:
            template = min(template, _MARGIN * self._template * size.messages)
        return math.ceil(tokens + template) + size.attached + self._extra

    def first_call_bound(self, size: InputSize) -> int:
        """The bound while the worker's counts are not known: `upper`, with at least `_AT_FIRST` tokens a character."""
        beyond_text = 0 if self.proven else _AT_FIRST * size.characters - size.text
        return self.upper(size) + max(0, beyond_text)

    def lower(self, size: InputSize) -> int:
        """A rough count of the same input where ASCII has four characters a token, and other text is at its bound."""
        return min(self.upper(size), size.plain + size.wide)

    def learn(self, size: InputSize, counted: int) -> None:
        """The worker counted so many input tokens for a call of this size."""
        self.proven = True
        if not size.attached:
            if size.messages == 1 and size.text < _ENOUGH:
                self._template = max(self._template or 0, counted)
            for kind, part in enumerate(size.kinds if size.text >= _ENOUGH else ()):
                if part >= max(_ENOUGH, size.text / 2):
                    self._rates[kind] = max(self._rates.get(kind, 0.0), counted / part)
        self._extra += max(0, counted - self.upper(size))


def _bytes_of(text: str) -> tuple[int, tuple[int, ...]]:
    """Bytes of the text, and of each kind in it that is learned."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) == len(text):
        words = len(data) - len(data.translate(None, _WORDS))
        return len(data), (words, len(data) - words, *_NO_OTHERS)
    first_bytes = data.translate(_KINDS, _CONTINUATION)
    return len(data), tuple([width * first_bytes.count(kind) for kind, width in enumerate(_WIDTHS)])
