"""`vote`: a tool that returns the most common final answer among the responses it is shown.

Deterministic and free. It compares normalised text; it does not know that 0.5 and 1/2 are one number.
A subtask that names weights, as in "Vote with the weights 2, 1, 1.5.", gives each response shown, in order, so many
votes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from podium.types import Limits, Profile
from podium.workers import tool
from podium.workers.answer import final_answer, normalise
from podium.workers.base import Reply, Request
from podium.workers.view import read_view

DESCRIPTION = "A tool: returns the most common final answer among the responses it is shown. Free."
NOTHING = "There is nothing to vote on: no response that is shown gives an answer."
_WEIGHTS = re.compile(r"\bweights:? (\d+(?:\.\d+)?(?:, \d+(?:\.\d+)?)*)")


class VoteWorker:
    """Counts answers; of equally common ones the earliest shown wins."""

    identity = None

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
        """The winner, as `announce` says it; where no response gives an answer, a sentence that says so.

        Raises:
            WorkerError: "missing": no response gives an answer, and some that it was to see are missing.
        """
        view = read_view(request.messages)
        responses = tool.responses(view)
        weights = _weights(view.subtask, len(responses))
        cast = [
            (answer, weight)
            for text, weight in zip(responses, weights or [1.0] * len(responses), strict=True)
            if text != NOTHING and tool.is_result(text) and (answer := final_answer(text)) is not None
        ]
        if not cast:
            return tool.nothing(request, NOTHING)
        votes: dict[str, float] = {}
        for answer, weight in cast:
            votes[normalise(answer)] = votes.get(normalise(answer), 0.0) + weight
        winner = max(votes, key=lambda answer: votes[answer])  # of equal ones the first, in the order shown
        answers = [answer for answer, _ in cast]
        written = next(answer for answer in answers if normalise(answer) == winner)
        count = sum(normalise(answer) == winner for answer in answers)
        return tool.free(announce(written, count, len(answers)))

    async def close(self) -> None:
        """Nothing to give back."""


def announce(answer: str, agreeing: int, of: int) -> str:
    """What the tool says of the answer that won, given by `agreeing` of so many responses."""
    return f"{agreeing} of {of} responses agree.\n{tool.stated(answer)}"


def _weights(subtask: str, count: int) -> Sequence[float] | None:
    """The weights that the subtask names, if there are as many as responses."""
    named = _WEIGHTS.search(subtask)
    weights = [float(weight) for weight in named[1].split(", ")] if named else []
    return weights if len(weights) == count else None
