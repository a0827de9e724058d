"""A response in pieces: the events that OpenAI's client puts together again.

Progress is the summary of a reasoning item, which stands first; the text is a message after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.errors import APIError
from podium.executor import StepText
from podium.orchestrator import Event
from podium.server.api_errors import changed
from podium.server.event_stream import event
from podium.server.given import Given
from podium.server.responses.reply import Frame, calls, message, text_part
from podium.server.sent import Sent
from podium.server.summary import progress
from podium.types import Profile


class Happenings:
    """The events of one response.

    Args:
        pool: the workers that plans number.
    """

    def __init__(self, frame: Frame, pool: Sequence[Profile]) -> None:
        self._frame = frame
        self._pool = pool
        self._number = 0
        self._sent = Sent()
        self._lines: list[str] = []
        self._reasons = self._speaks = False
        """Whether the item of progress, and that of the message, has begun."""
        self._output: list[dict[str, Any]] = []

    def begun(self) -> bytes:
        """The first events."""
        response = self._frame.response("in_progress")
        return self._event("created", response=response) + self._event("in_progress", response=response)

    def told(self, happened: Event) -> bytes:
        """The events for what happened; its end has its own."""
        if isinstance(happened, StepText):
            text = self._sent.take(happened.attempt, happened.text)
            return self._delta(text) if text else b""
        known = progress(happened, self._pool)
        if known is None:
            return b""
        line, facts = known
        begun = b"" if self._reasons else self._reasoning_begun()
        self._lines.append(f"{line}\n")
        return begun + self._event(
            "reasoning_summary_text.delta", **self._reasoning_place, delta=f"{line}\n", podium=facts
        )

    def ended(self, answer: Given) -> bytes:
        """The last events.

        Raises:
            APIError: the answer is another than what was sent.
        """
        rest = self._sent.end(answer.text)
        if rest is None:
            raise changed(answer.trace_id)
        pieces = [self._delta(rest)] if rest or not (answer.tool_calls or self._speaks) else []
        if self._reasons:
            pieces.insert(0, self._reasoning_ended())
        if self._speaks:
            pieces.append(self._message_ended())
        pieces += [self._call(call) for call in calls(answer)]
        response = self._frame.ended(answer, self._output)
        return b"".join([*pieces, self._event(response["status"], response=response)])

    def failed(self, complaint: APIError) -> bytes:
        """The last event of a response without an answer."""
        error = {"code": complaint.code or complaint.type, "message": complaint.message}
        podium = {"trace_id": self._frame.trace_id, "status": "failed"}
        return self._event("failed", response=self._frame.response("failed", error=error, podium=podium))

    @property
    def _reasoning_place(self) -> dict[str, Any]:
        return {"item_id": f"rs_{self._frame.trace_id}", "output_index": 0, "summary_index": 0}

    @property
    def _message_place(self) -> dict[str, Any]:
        return {
            "item_id": f"msg_{self._frame.trace_id}",
            "output_index": int(self._reasons),
            "content_index": 0,
        }

    def _reasoning_begun(self) -> bytes:
        self._reasons = True
        item = {"id": f"rs_{self._frame.trace_id}", "type": "reasoning", "summary": []}
        return self._event("output_item.added", output_index=0, item=item) + self._event(
            "reasoning_summary_part.added", **self._reasoning_place, part={"type": "summary_text", "text": ""}
        )

    def _reasoning_ended(self) -> bytes:
        text = "".join(self._lines)
        part = {"type": "summary_text", "text": text}
        item = {"id": f"rs_{self._frame.trace_id}", "type": "reasoning", "summary": [part]}
        self._output.insert(0, item)
        return (
            self._event("reasoning_summary_text.done", **self._reasoning_place, text=text)
            + self._event("reasoning_summary_part.done", **self._reasoning_place, part=part)
            + self._event("output_item.done", output_index=0, item=item)
        )

    def _delta(self, text: str) -> bytes:
        begun = b"" if self._speaks else self._message_begun()
        if not text:
            return begun
        return begun + self._event("output_text.delta", **self._message_place, delta=text, logprobs=[])

    def _message_begun(self) -> bytes:
        self._speaks = True
        place = self._message_place
        item = message(self._frame.trace_id, "", "in_progress")
        return self._event("output_item.added", output_index=place["output_index"], item=item) + self._event(
            "content_part.added", **place, part=text_part("")
        )

    def _message_ended(self) -> bytes:
        place = self._message_place
        text = self._sent.text
        item = message(self._frame.trace_id, text)
        self._output.append(item)
        return (
            self._event("output_text.done", **place, text=text, logprobs=[])
            + self._event("content_part.done", **place, part=text_part(text))
            + self._event("output_item.done", output_index=place["output_index"], item=item)
        )

    def _call(self, call: Mapping[str, Any]) -> bytes:
        index = len(self._output)
        self._output.append(dict(call))
        begun = {**call, "status": "in_progress", "arguments": ""}
        place = {"item_id": call["id"], "output_index": index}
        return (
            self._event("output_item.added", output_index=index, item=begun)
            + self._event("function_call_arguments.delta", **place, delta=call["arguments"])
            + self._event(
                "function_call_arguments.done", **place, name=call["name"], arguments=call["arguments"]
            )
            + self._event("output_item.done", output_index=index, item=call)
        )

    def _event(self, kind: str, **told: Any) -> bytes:
        name = f"response.{kind}"
        number, self._number = self._number, self._number + 1
        return event({"type": name, "sequence_number": number, **told}, name)
