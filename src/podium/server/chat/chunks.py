"""A chat completion in pieces: the events of one answer as chunks.

Progress is told as `reasoning_content`, which clients show or ignore, and for programs in the chunk's own `podium`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from podium.executor import StepText
from podium.orchestrator import Event
from podium.server.api_errors import changed
from podium.server.chat.reply import calls, counts
from podium.server.event_stream import event
from podium.server.given import Given, together
from podium.server.sent import Sent
from podium.server.summary import progress
from podium.types import Profile


class Chunks:
    """The chunks of one completion with one or several answers.

    Args:
        with_usage: whether the usage comes at the end.
        pool: the workers that plans number.
    """

    def __init__(
        self, id_: str, created: int, model: str, *, with_usage: bool, pool: Sequence[Profile]
    ) -> None:
        self._head = {"id": id_, "object": "chat.completion.chunk", "created": created, "model": model}
        # Most of a chunk is the same in all: it is written once.
        self._start = b"data: " + json.dumps(self._head, separators=(",", ":")).encode()[:-1]
        self._end = b',"usage":null}\n\n' if with_usage else b"}\n\n"
        self._with_usage = with_usage
        self._pool = pool
        self._sent: dict[int, Sent] = {}

    def told(self, choice: int, happened: Event) -> bytes:
        """The chunks for what happened to the answer of that number; its end has its own."""
        if isinstance(happened, StepText):
            text = self._sent_of(choice).take(happened.attempt, happened.text)
            return self._chunk(choice, {"content": text}) if text else b""
        known = progress(happened, self._pool)
        if known is None:
            return b""
        line, facts = known
        begun = b"" if choice in self._sent else self._begun(choice)
        return begun + self._chunk(choice, {"reasoning_content": f"{line}\n"}, podium=facts)

    def ended(self, choice: int, answer: Given, answers: Sequence[Given] = ()) -> bytes:
        """The rest of an answer, and why it ends.

        Args:
            answers: all of them, with the last one; they are summed up in the last chunk.

        Raises:
            APIError: the answer is another than what was sent.
        """
        begun = b"" if choice in self._sent else self._begun(choice)
        rest = self._sent_of(choice).end(answer.text)
        if rest is None:
            raise changed(answer.trace_id)
        content = self._chunk(choice, {"content": rest}) if rest else b""
        made = [{"index": number, **call} for number, call in enumerate(calls(answer))]
        called = self._chunk(choice, {"tool_calls": made}) if made else b""
        told = together(answers) if answers else None
        if told is None or not self._with_usage:
            return begun + content + called + self._chunk(choice, {}, finish=answer.finish, podium=told)
        finish = self._chunk(choice, {}, finish=answer.finish)
        # A chunk without choices is sent to those alone who asked for usage: others do not expect one.
        usage = event(self._head | {"choices": [], "usage": counts(answers), "podium": told})
        return begun + content + called + finish + usage

    def _begun(self, choice: int) -> bytes:
        self._sent_of(choice)
        return self._chunk(choice, {"role": "assistant", "content": ""})

    def _sent_of(self, choice: int) -> Sent:
        return self._sent.setdefault(choice, Sent())

    def _chunk(
        self,
        choice: int,
        delta: dict[str, Any],
        *,
        finish: str | None = None,
        podium: dict[str, Any] | None = None,
    ) -> bytes:
        told = {"choices": [{"index": choice, "delta": delta, "logprobs": None, "finish_reason": finish}]}
        if podium is not None:
            told["podium"] = podium  # type: ignore[assignment]
        return self._start + b"," + json.dumps(told, separators=(",", ":")).encode()[1:-1] + self._end
