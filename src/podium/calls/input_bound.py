"""Bounds the input tokens that a call of one worker may be billed, from bytes and from the worker's earlier counts.

No tokenizer makes more tokens of a text than its UTF-8 has bytes. So the bound starts at one token per byte, with
constants for what a provider adds: a template, tools, images. The counts that the worker reports lower the bound for
the kinds of text that they cover, and raise it where the worker counts more. A ledger reserves the bound before a call.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from podium.types import AnswerOptions, Message, sent_tokens
from podium.workers.base import Worker

_PER_CALL, _PER_MESSAGE = 64, 16
"""Tokens of a template: a default system prompt, and the marks around each message."""
_FOR_TOOLS, _PER_TOOL = 512, 64
"""Tokens that a provider adds: for instructions if there are tools, and around each tool."""
_PER_IMAGE = 3_000
_MARGIN = 1.25
"""How much the tokens per byte of a kind of text may exceed the most that the worker has counted."""
_FIRST_TOKENS_PER_CHAR = 4
"""Tokens that a character may have until the worker has reported a count. An endpoint may bill more than any
tokenizer."""
_MIN_BYTES_TO_LEARN = 512
"""How many bytes of one kind, at least half of the text, show the tokens per byte of that kind. In longer text a
template hardly counts."""
_WORDS = b"abcdefghijklmnopqrstuvwxyz \n"
_WIDTHS = (1, 1, 2, 2, 2, 2, 3, 3)
"""Bytes of a character of each kind whose rate is learned: letters and blanks of ASCII, other ASCII, Greek, Cyrillic,
Hebrew, Arabic, Chinese and Japanese, Korean. All other text stays at one token per byte, since its scripts differ too
much."""
_FIRST_BYTES = ((0xCD, 0xCF), (0xD0, 0xD3), (0xD6, 0xD7), (0xD8, 0xDB), (0xE3, 0xE9), (0xEA, 0xED))
"""The first and the last of the first bytes of the characters of each kind beyond ASCII."""
_NO_NON_ASCII = (0,) * (len(_WIDTHS) - 2)
_OTHER = 255


def _byte_kind(byte: int) -> int:
    if byte < 0x80:
        return 0 if byte in _WORDS else 1
    return next((kind for kind, (low, high) in enumerate(_FIRST_BYTES, 2) if low <= byte <= high), _OTHER)


_KINDS = bytes(map(_byte_kind, range(256)))
_CONTINUATION = bytes(range(0x80, 0xC0))


@dataclass(frozen=True, slots=True)
class InputSize:
    """The size of a call's input, in units that can be counted before the call."""

    text_bytes: int
    bytes_by_kind: tuple[int, ...]
    """Bytes of each kind of text for which the bound learns a rate."""
    messages: int
    attached_tokens: int
    """The most tokens of tools and images, without the text of the tools."""
    estimated_tokens: int
    """A rough count, four characters a token."""
    non_ascii_bytes: int
    characters: int


class InputTokenBound:
    """The most input tokens of one worker's calls. It learns from the worker's own counts. Podium itself counts for a
    scripted or recorded worker, so that worker's bound is Podium's count."""

    def __init__(self, worker: Worker) -> None:
        self.is_calibrated = not worker.is_costly
        """Whether the worker has reported a count, or Podium itself counts."""
        self._podium_counts = self.is_calibrated
        self._worker = worker.profile.name
        self._identity = None if self._podium_counts else worker.identity
        self._added_text: str | None = None
        self._rates: dict[int, float] = {}
        """The most tokens per byte that the worker has counted, by kind of text."""
        self._template: int | None = None
        """The most tokens that the worker has counted for one short message. None if it has counted none."""
        self._extra = 0
        """The most tokens that the worker has counted beyond the bound, such as a provider's own prompt."""

    def size(self, messages: tuple[Message, ...], options: AnswerOptions) -> InputSize:
        """The size of a call's input, with the worker's own system prompt and further keys."""
        if self._added_text is None:
            added = self._identity or {}
            system = "".join(added.get("system") or ())  # The value is a text or a list of texts.
            self._added_text = system + json.dumps(added.get("extra") or "")
        texts, images = [self._added_text], 0
        for message in messages:
            texts.append(message.content)
            state = message.provider_state
            # A worker is sent the provider state of its own messages alone.
            own = None if state is None or state.worker != self._worker else state
            texts += [] if own is None else [own.fields]
            for call in message.tool_calls:
                texts += (call.name, call.arguments, "" if own is None else call.provider_state)
            images += len(message.images)
        texts += (
            json.dumps(value, ensure_ascii=False)
            for value in (options.tools, options.response_format, options.extra)
            if value
        )
        text = "".join(texts)
        length, kinds = _count_bytes(text)
        tools = _FOR_TOOLS + _PER_TOOL * len(options.tools) if options.tools else 0
        return InputSize(
            text_bytes=length,
            bytes_by_kind=kinds,
            messages=len(messages),
            attached_tokens=tools + _PER_IMAGE * images,
            estimated_tokens=sent_tokens(messages, options),
            non_ascii_bytes=length - kinds[0] - kinds[1],
            characters=len(text),
        )

    def upper(self, size: InputSize) -> int:
        """The most input tokens of a call of this size."""
        if self._podium_counts:
            return size.estimated_tokens
        tokens = float(size.text_bytes)
        for kind, rate in self._rates.items():
            tokens += (max(min(1.0, _MARGIN * rate), rate) - 1.0) * size.bytes_by_kind[kind]
        template = float(_PER_CALL + _PER_MESSAGE * size.messages)
        if self._template is not None:
            template = min(template, _MARGIN * self._template * size.messages)
        return math.ceil(tokens + template) + size.attached_tokens + self._extra

    def first_call_bound(self, size: InputSize) -> int:
        """The bound until the worker has reported a count: `upper`, but at least some tokens for each character."""
        beyond_text = 0 if self.is_calibrated else _FIRST_TOKENS_PER_CHAR * size.characters - size.text_bytes
        return self.upper(size) + max(0, beyond_text)

    def lower(self, size: InputSize) -> int:
        """A rough count of the input, at most `upper`: four characters per token in ASCII, one token per byte in other
        text."""
        return min(self.upper(size), size.estimated_tokens + size.non_ascii_bytes)

    def learn(self, size: InputSize, counted: int) -> None:
        """Learn that the worker counted `counted` input tokens for a call of this size."""
        self.is_calibrated = True
        if not size.attached_tokens:
            if size.messages == 1 and size.text_bytes < _MIN_BYTES_TO_LEARN:
                self._template = max(self._template or 0, counted)
            for kind, part in enumerate(size.bytes_by_kind if size.text_bytes >= _MIN_BYTES_TO_LEARN else ()):
                if part >= max(_MIN_BYTES_TO_LEARN, size.text_bytes / 2):
                    self._rates[kind] = max(self._rates.get(kind, 0.0), counted / part)
        self._extra += max(0, counted - self.upper(size))


def _count_bytes(text: str) -> tuple[int, tuple[int, ...]]:
    """Bytes of the text, and bytes of each kind whose rate is learned."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) == len(text):
        words = len(data) - len(data.translate(None, _WORDS))
        return len(data), (words, len(data) - words, *_NO_NON_ASCII)
    first_bytes = data.translate(_KINDS, _CONTINUATION)
    return len(data), tuple([width * first_bytes.count(kind) for kind, width in enumerate(_WIDTHS)])
