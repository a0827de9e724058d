"""`vote`: a tool that returns the most common final answer among the responses it is shown.

Deterministic and free. It compares normalised text; it does not know that 0.5 and 1/2 are one number.
"""

from __future__ import annotations

from collections import Counter

from podium.types import Limits, Profile, Usage
from podium.workers.answer import final_answer, normalise
from podium.workers.base import Reply, Request
from podium.workers.view import read_view

DESCRIPTION = "A tool: returns the most common final answer among the responses it is shown. Free."


class VoteWorker:
    """Counts answers; of equally common ones the earliest shown wins."""

    def __init__(
        self,
        name: str = "vote",
        *,
        profile: Profile | None = None,
        limits: Limits | None = None,
        fallback: str | None = None,
    ) -> None:
        self.profile = profile or Profile(name=name, description=DESCRIPTION, skills=("vote",))
        self.limits = limits or Limits()
        self.fallback = fallback

    async def answer(self, request: Request) -> Reply:
        """The winner as `Answer: X`; without anything to count, a sentence that says so."""
        view = read_view(request.messages)
        responses = [view.previous] if view.previous is not None else []
        responses += [shown.response for shown in view.shown]
        answers = [answer for text in responses if (answer := final_answer(text)) is not None]
        if not answers:
            return Reply("There is nothing to vote on: no earlier response is shown.", Usage(), latency_s=0.0)
        votes = Counter(normalise(answer) for answer in answers)
        # Counter keeps the order in which keys were first seen, and most_common is stable.
        winner, count = votes.most_common(1)[0]
        written = next(answer for answer in answers if normalise(answer) == winner)
        text = f"{count} of {len(answers)} responses agree.\nAnswer: {written}"
        return Reply(text, Usage(), latency_s=0.0)

    async def close(self) -> None:
        """Nothing to give back."""
