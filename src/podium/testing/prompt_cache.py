"""A provider's prompt cache: input that begins as an earlier request did is counted as read from the cache.

It only counts, as the `usage` of a provider does. Every answer is made anew.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from podium.testing.completion import Answer, AnswerFunction, AnswerLike, count_input, make_answer


class PromptCache:
    """An answer with the token counts of a prompt cache: `FaultServer(PromptCache(capable))`.

    Each model has a cache of its own, which forgets nothing. Requests share a prefix if they have the same tools and
    begin with the same messages.

    Args:
        answer: the answer itself, as a `FaultServer` takes it.
        least: tokens of the shortest prefix that is kept.
        counts_writes: whether the reply counts what was written into the cache, as for Anthropic's models.
    """

    def __init__(
        self, answer: AnswerLike | AnswerFunction, *, least: int = 1024, counts_writes: bool = False
    ) -> None:
        self._answer = answer
        self._least = least
        self._counts_writes = counts_writes
        self._kept: dict[str, int] = {}
        """Each prefix that was sent, as JSON, and its tokens."""

    async def __call__(self, messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
        """The answer. Its cached tokens are those of the longest prefix that an earlier request sent."""
        sent = {
            json.dumps([body["model"], body.get("tools"), messages[:length]]): count_input(messages[:length])
            for length in range(1, len(messages) + 1)
        }
        read = max((self._kept.get(prefix, 0) for prefix in sent), default=0)
        self._kept |= {prefix: tokens for prefix, tokens in sent.items() if tokens >= self._least}
        total = count_input(messages)
        written = total - read if self._counts_writes and total >= self._least else 0
        answer = await make_answer(self._answer, body)
        return replace(answer, cached_tokens=read, cache_write_tokens=written)
