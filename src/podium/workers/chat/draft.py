"""What an endpoint has said of one reply: of a whole one at once, of a streamed one so far.

Takes what has the form of a reply and leaves the rest; whether it is one, and what is wrong, its reader says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.types import ToolCall

_THOUGHT = ("reasoning_content", "reasoning", "thinking")
"""Where vLLM and DeepSeek, OpenRouter, and others put what a model thinks aloud."""


class Draft:
    """Grows with each chunk of a stream; a whole reply is one chunk."""

    def __init__(self) -> None:
        self.choices = 0
        """How many had the form of one."""
        self.finish: str | None = None
        self.model: str | None = None
        self.usage: object = None
        """As it was said."""
        self.length = 0
        """Characters of all that was said."""
        self._text: list[str] = []
        self._thought: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        """By place: id, name and arguments so far."""

    @property
    def text(self) -> str:
        """The answer so far."""
        return encodable("".join(self._text))

    @property
    def thought(self) -> str:
        """What was thought aloud so far."""
        return encodable("".join(self._thought))

    @property
    def refusal(self) -> str:
        """Why the model will not answer, in its words."""
        return encodable("".join(self._refusal))

    @property
    def calls_tools(self) -> bool:
        """Whether a tool is called, however well."""
        return bool(self._calls)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Those that have a name; the id is made where an endpoint gives none."""
        return tuple(
            ToolCall(
                id=encodable(call["id"]) or f"call_{place}",
                name=encodable(call["name"]),
                arguments=encodable(call["arguments"]) or "{}",
            )
            for place, call in sorted(self._calls.items())
            if call["name"]
        )

    def add(self, chunk: Mapping[str, Any]) -> str:
        """Take a whole reply, or the next chunk of a stream; gives the text that is new."""
        if isinstance(model := chunk.get("model"), str) and model:
            self.model = encodable(model)
        if chunk.get("usage") is not None:
            self.usage = chunk["usage"]
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            return ""
        # Of several, which only `extra` can ask for, the first counts.
        return "".join(self._take(choice) for choice in choices if _is_first(choice))

    def _take(self, choice: Mapping[str, Any]) -> str:
        if isinstance(finish := choice.get("finish_reason"), str) and finish:
            self.finish = encodable(finish)
        said = next((s for name in ("delta", "message") if isinstance(s := choice.get(name), dict)), None)
        if said is None:
            return ""
        self.choices += 1
        self._call(said.get("tool_calls"))
        thought = next((t for name in _THOUGHT if isinstance(t := said.get(name), str) and t), "")
        text = _joined(said.get("content"))
        refusal = r if isinstance(r := said.get("refusal"), str) else ""
        for pieces, piece in ((self._thought, thought), (self._text, text), (self._refusal, refusal)):
            if piece:
                pieces.append(piece)
                self.length += len(piece)
        return text

    def _call(self, pieces: object) -> None:
        """Take calls of tools: whole ones, or pieces that name their place."""
        for place, piece in enumerate(pieces if isinstance(pieces, list) else ()):
            if not isinstance(piece, dict):
                continue
            at = index if isinstance(index := piece.get("index"), int) else place
            call = self._calls.setdefault(at, {"id": "", "name": "", "arguments": ""})
            function = f if isinstance(f := piece.get("function"), dict) else {}
            for key, said in (
                ("id", piece.get("id")),
                ("name", function.get("name")),
                ("arguments", function.get("arguments")),
            ):
                if isinstance(said, str):
                    call[key] = call[key] + said if key == "arguments" else call[key] or said
                    self.length += len(said)


def _is_first(choice: object) -> bool:
    return isinstance(choice, dict) and not choice.get("index")


def _joined(content: object) -> str:
    """The text of a message, which may come in parts; those of thought are left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def encodable(text: str) -> str:
    """JSON can say half of a character, which no file and no wire takes; two halves make a whole one."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
