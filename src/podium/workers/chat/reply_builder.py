"""Collects one reply from a whole body or from the chunks of a stream.

It tells thoughts from the answer, and ignores everything that is not part of a reply. `response_reader` decides whether
the reply is complete, `failures` turns faults into errors, and `usage` reads the token counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from podium.text.thoughts import ThoughtSplitter, split_thoughts
from podium.types import ToolCall
from podium.workers.chat.provider_state import StateCollector
from podium.workers.chat.text_tool_calls import TextToolCallParser
from podium.workers.chat.tool_calls import ToolCallCollector

_THOUGHT_PARTS = ("thinking", "redacted_thinking", "reasoning")
"""Types of content parts that are no part of the answer."""
_OPENED = (
    "okay|ok,|ok so|alright|all right|hmm|well,|right,|got it|now,|wait|maybe|oh,|let me|let's|let us|"
    "looking at|thinking|here's a thinking|here is my thought|here's my thought|here are my reasoning|"
    "the user|user asks|user wants|user says|user:|they ask|they want|the question|the problem|the task|"
    "the prompt|the request|this is a|this question|this problem|we need|we have|we are|we must|"
    "we should|we can|we're|i need|i should|i have to|i'm asked|i am asked|i'm being asked|i must|"
    "i want to|i'll|i will|my task|need to|just answer|first,|first i|so,|so i|so the|so we|to solve|"
    "to answer|to find|to determine|given |analy|**analy|1. **analy|1.  **analy|# thought|**thought|"
    "**thinking|problem:|simple|easy|嗯|好|首先|用户|让我|我们|我需要|这个|这是|题目|问题|まず|ユーザー|사용자|먼저|"
    "der nutzer|zuerst|"
    "also,|l'utilisateur|d'accord|bon,|el usuario|bien,|o usuário|пользователь|хорошо|сначала|итак"
)
"""How the thoughts of DeepSeek-R1, Qwen3, gpt-oss, GLM, Kimi, MiniMax and others begin."""
_OPENINGS = tuple(_OPENED.split("|"))
_USAGE_KEYS = ("timings", "usageMetadata", "usage")
"""The fields in which llama.cpp, Gemini and all others put token counts; the last one wins."""
_FINISH_WORDS = {
    "stop": "stop end end_turn stop_sequence stop_token eos eos_token end_of_text end_of_turn complete completed "
    "finish finished done normal pause_turn",
    "length": "length max_tokens max_length model_length max_output_tokens max_completion_tokens max_new_tokens "
    "max_tokens_reached token_limit output_limit model_context_window_exceeded context_length_exceeded incomplete",
    "tool_calls": "tool_calls tool_call tool_use function_call function_calls",
    "content_filter": "content_filter content_filtered content_policy content_policy_violation safety image_safety "
    "refusal refused prohibited_content recitation blocklist blocked spii sensitive moderation guardrail_intervened "
    "error_toxic",
    "error": "error network_error server_error malformed_function_call malformed_response unexpected_tool_call "
    "insufficient_system_resource engine_overloaded abort aborted cancelled canceled failed",
}
"""Providers' words for why a reply ended, by the five that Podium knows, from OpenAI, Anthropic, Google, Mistral,
Cohere, Bedrock, DeepSeek, Zhipu, TGI and vLLM."""
_FINISH_MEANING = {word: meaning for meaning, words in _FINISH_WORDS.items() for word in words.split()}
_UNFINISHED = frozenset({"", "null", "none", "unspecified"})
"""What some servers write while a reply goes on."""


def read_finish(written: object) -> str | None:
    """Podium's word for a provider's finish_reason, in any case, or None if the reply goes on.

    A word that is none of any provider's stays as it is.
    """
    if not isinstance(written, str):
        return None
    # A gateway may write "content_filter: SAFETY".
    word = written.partition(":")[0].strip().lower().replace("-", "_").replace(" ", "_")
    word = word.removeprefix("finish_reason_")
    return None if word in _UNFINISHED else _FINISH_MEANING.get(word, written)


class ReplyBuilder:
    """Collects the chunks of a stream; a whole reply is one chunk.

    Args:
        hold: whether the pieces of the answer wait for the end, since the model begins inside a thought. None if that
            is not known, so they wait where the text begins as thoughts do.
        call_parser: finds the calls of tools that the model writes as text. Without it, no text is a call.
    """

    def __init__(self, *, hold: bool | None = False, call_parser: TextToolCallParser | None = None) -> None:
        self.choices = 0
        """Well-formed choices received so far."""
        self.finish: str | None = None
        """Why the reply ended, in the words of `read_finish`. None if it goes on."""
        self.finish_word: str | None = None
        """The finish_reason as the provider wrote it."""
        self.went_on = False
        """Whether more came after a finish_reason, so that the provider's finish_reason means nothing before the end of
        the stream."""
        self.model: str | None = None
        self.fingerprint: str | None = None
        self.usage: dict[str, Any] = {}
        """The usage as the provider wrote it, for `usage.read_usage`. Empty: it wrote none."""
        self.calls = ToolCallCollector()
        self.state = StateCollector()
        self._length = 0
        self._logprobs: dict[str, Any] | None = None
        self._hold = hold
        self._parser = call_parser or TextToolCallParser(frozenset())
        self._splitter: ThoughtSplitter | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._divided: tuple[str, str] | None = None
        """What `split` returned last. None once more came."""

    @property
    def length(self) -> int:
        """Characters of text, reasoning, refusal and tool calls, with some added for each tool call."""
        return self._length + self.calls.length + self.state.length

    @property
    def text(self) -> str:
        """The answer so far, without thoughts."""
        return self.split()[1]

    @property
    def reasoning(self) -> str:
        """The visible reasoning so far: what its own field has, then the thoughts in the text."""
        return self.split()[0]

    def split(self) -> tuple[str, str]:
        """The visible reasoning so far, and the answer."""
        if self._divided is None:
            thoughts, answer = split_thoughts("".join(self._text))
            reasoning = "\n\n".join(filter(None, ("".join(self._reasoning), thoughts)))
            self._divided = encodable(reasoning), encodable(answer)
        return self._divided

    def read_calls(self) -> tuple[tuple[ToolCall, ...], str]:
        """The tool calls, and the answer beside them. Without calls of their own, those that the text consists of,
        which are whole also if the reply was cut off behind them: small models go on with empty lines."""
        calls, text = self.calls.read(), self.text
        if not calls and (calls := self._parser.read(text)):
            text = ""
        return tuple(_with_own_ids(calls)), text

    @property
    def opened_by_template(self) -> bool:
        """Whether the chat template opened the thought, so that the text began inside it."""
        return self._splitter is not None and self._splitter.opened_by_template

    @property
    def refusal(self) -> str:
        """The model's message of refusal, so far."""
        return encodable("".join(self._refusal))

    @property
    def logprobs(self) -> dict[str, Any] | None:
        """The log-probabilities of all tokens of the answer. None if there are none, or some are of thoughts."""
        return None if self._logprobs is None or split_thoughts("".join(self._text))[0] else self._logprobs

    def add(self, chunk: Mapping[str, Any]) -> tuple[str, str]:
        """Add a whole reply, or the next chunk of a stream; returns the new text and the new reasoning."""
        if isinstance(model := chunk.get("model"), str) and model:
            self.model = encodable(model)
        if isinstance(fingerprint := chunk.get("system_fingerprint"), str) and fingerprint:
            self.fingerprint = encodable(fingerprint)
        self.add_usage(chunk)
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            return "", ""
        # Of several choices, which only `extra` can request, the first counts.
        first = [choice for choice in choices if isinstance(choice, dict) and not choice.get("index")]
        pieces = [self._take(choice) for choice in first]
        return self._parser.add("".join(text for text, _ in pieces)), "".join(piece for _, piece in pieces)

    def end(self) -> tuple[str, str]:
        """The rest of the text and of the reasoning: no chunk follows."""
        thoughts, answer = ("", "") if self._splitter is None else self._splitter.end()
        return self._parser.add(answer) + self._parser.end(), thoughts

    def add_usage(self, chunk: Mapping[str, Any]) -> None:
        """Add the token counts of a reply, a chunk, a choice (Moonshot) or an error. Later counts replace earlier ones
        of the same name."""
        for name in _USAGE_KEYS:
            if isinstance(counts := chunk.get(name), dict):
                self.usage |= {key: count for key, count in counts.items() if count is not None}

    def _take(self, choice: Mapping[str, Any]) -> tuple[str, str]:
        self.add_usage(choice)
        message = next((m for name in ("delta", "message") if isinstance(m := choice.get(name), dict)), None)
        before = self.length
        pieces = ("", "") if message is None else self._add_message(message, whole="message" in choice)
        if self.finish is not None and self.length > before:
            self.finish, self.went_on = None, True
        if (finish := read_finish(choice.get("finish_reason"))) is not None:
            self.finish, self.finish_word = encodable(finish), encodable(choice["finish_reason"])
        if message is not None:
            self._add_logprobs(choice.get("logprobs"))
        return pieces

    def _add_message(self, message: Mapping[str, Any], *, whole: bool) -> tuple[str, str]:
        self.choices += 1
        self._divided = None
        self.calls.add(message, whole=whole)
        content = message.get("content")
        reasoning = self.state.add(message) or "".join(_thoughts_in(content))
        text = _content_text(content)
        refusal = r if isinstance(r := message.get("refusal"), str) else ""
        for pieces, piece in ((self._reasoning, reasoning), (self._text, text), (self._refusal, refusal)):
            if piece:
                pieces.append(piece)
                self._length += len(piece)
        if not text or (whole and not split_thoughts(text)[0]):
            return text, reasoning
        if self._splitter is None:
            # A server that parses the thoughts of its model sends none inside the text.
            self._splitter = ThoughtSplitter(hold=self._hold is not False and not self._reasoning)
        thoughts, answer = self._splitter.add(text)
        if self._hold is None:
            self._hold = _begins_as_thought("".join(self._text))
            if self._hold is False:
                answer += self._splitter.release()
        return answer, reasoning + thoughts

    def _add_logprobs(self, logprobs: object) -> None:
        tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
        if isinstance(tokens, list):
            if self._logprobs is None:
                self._logprobs = {"content": [], "refusal": None}
            self._logprobs["content"] += tokens


def _with_own_ids(calls: Iterable[ToolCall]) -> Iterator[ToolCall]:
    taken: set[str] = set()
    for index, call in enumerate(calls):
        id_ = encodable(call.id)
        while not id_ or id_ in taken:
            id_ = f"{id_ or 'call'}_{index}"
        taken.add(id_)
        texts = {"name": encodable(call.name), "arguments": encodable(call.arguments)}
        yield call.model_copy(update={"id": id_, **texts})


def _begins_as_thought(text: str) -> bool | None:
    """Whether the text begins as the thoughts of models do, or None if it is too short to tell."""
    begun = text.lstrip().lower()
    if begun.startswith(_OPENINGS):
        return True
    return None if any(opening.startswith(begun) for opening in _OPENINGS) else False


def _content_text(content: object) -> str:
    """The text of a message, which may come in parts; parts with thoughts are left out."""
    if isinstance(content, str):
        return content
    return "".join(
        text
        for part in _parts(content)
        if part.get("type") not in _THOUGHT_PARTS and isinstance(text := part.get("text"), str)
    )


def _thoughts_in(content: object) -> Iterator[str]:
    """The thoughts in the parts of a message; Mistral's have parts of their own."""
    for part in _parts(content):
        if part.get("type") in _THOUGHT_PARTS:
            for name in ("thinking", "text", "summary"):
                yield part[name] if isinstance(part.get(name), str) else _content_text(part.get(name))


def _parts(content: object) -> list[dict[str, Any]]:
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


_HALF = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    """`text` with halves of surrogate pairs joined or replaced, since JSON can contain them and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # The JSON codec joins pairs. An error handler of `encode` would be called for each half, which takes a second
        # for a million halves.
        return _HALF.sub("\ufffd", json.loads(json.dumps(text)))
    return text
