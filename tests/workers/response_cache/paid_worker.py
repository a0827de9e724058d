"""A worker whose answers cost something, and so are worth keeping."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.trace import Reply
from podium.types import Message, Price, Profile, Usage
from podium.workers.base import Request
from podium.workers.scripted import ScriptedWorker

IDENTITY = {"kind": "openai", "url": "http://here/v1", "model": "big", "extra": {"top_p": 0.9}}


class Paid(ScriptedWorker):
    """Answers "reply 0", "reply 1", ...; or what it is told, for ever."""

    def __init__(
        self, name: str = "big", *, says: str | None = None, delay: float = 0.0, **identity: Any
    ) -> None:
        replies: Any = {"": says} if says is not None else [f"reply {number}" for number in range(1000)]
        profile = Profile(name=name, price=Price(input=1.0, output=2.0))
        super().__init__(name, replies, delay=delay, profile=profile)
        self.identity: Mapping[str, Any] | None = IDENTITY | identity  # type: ignore[assignment]

    @property
    def asked(self) -> int:
        """How often it was."""
        return len(self.requests)


def request(text: str = "What is 6 x 7?", **more: Any) -> Request:
    """A request of one message."""
    return Request((Message(role="user", content=text),), **({"seed": "s"} | more))


def reply(text: str = "42", **more: Any) -> Reply:
    """A reply of 10 and 5 tokens."""
    return Reply(text, Usage(input_tokens=10, output_tokens=5), **more)
