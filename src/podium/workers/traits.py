"""The traits of a worker: whether it is a model, a tool or a program, and what its calls cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

StoppingRule = Callable[[str, Sequence[str | None]], bool]
"""A function that says whether a tool's result is certain although some responses are still to come.

Its arguments are the subtask, and the responses that the tool reads, in order. A response is None if it is still to
come, and "" if its step failed."""
AnswerKey = Callable[[str], str | None]
"""A function that returns the key of a response. Responses with equal keys count as one answer."""

_NEW_ANSWER = "Answer: something"
"""An answer that no response has given yet."""


@dataclass(frozen=True, slots=True)
class WorkerTraits:
    """What sort of worker a worker is. A kind of workers declares the same traits in its spec class, which is read
    before a worker is built."""

    role: Literal["model", "tool", "program"] = "program"
    """"model": a language model, which may conduct. "tool": runs no model, and works on what earlier steps gave.
    "program": anything else, such as a command or a team."""
    cost: Literal["money", "compute", "nothing"] = "money"
    """What the worker's calls cost. A model that runs here costs "compute". A tool, a script or a recording costs
    "nothing"."""
    takes_extra: bool = False
    """Whether `AnswerOptions.extra` reaches the worker's model."""
    keeps_time_limit: bool = False
    """Whether a call ends within `limits.timeout` by itself. Otherwise the caller cancels it at that time."""
    pays_for_own_calls: bool = False
    """Whether the worker reserves and settles the dollars of its calls in `Request.spend_limits`, as a team does."""
    stopping_rule: StoppingRule | None = None
    """Says whether a tool's result is certain before all responses are there. None if the tool needs all responses."""
    answer_key: AnswerKey = str
    """The key of a response for `stopping_rule`. It has the same result for two responses with equal keys."""


TOOL = WorkerTraits(role="tool", cost="nothing")
COSTLESS = WorkerTraits(cost="nothing")
"""The traits of a worker whose answers are scripted or recorded."""
ENDPOINT = WorkerTraits(role="model", takes_extra=True, keeps_time_limit=True)
LITELLM = WorkerTraits(role="model", keeps_time_limit=True)
LOCAL_MODEL = WorkerTraits(role="model", cost="compute")


def responses_to_get_next(
    stopping_rule: StoppingRule,
    subtask: str,
    responses: Sequence[str | None],
    order: Sequence[int],
    answer_key: AnswerKey = str,
) -> tuple[int, ...]:
    """Indices of the responses to get next. There are none if the result is certain.

    Args:
        responses: what the vote will see. A response is None if it is still to come, and "" if its step failed.
        order: indices of responses, the cheapest first.
        answer_key: as in `WorkerTraits`.
    """
    if stopping_rule(subtask, responses):
        return ()
    waiting = [index for index in order if responses[index] is None]
    next_texts = {answer_key(text): text for text in (_NEW_ANSWER, *responses) if text}.values()
    for count in range(1, len(waiting)):
        turn = waiting[:count]
        for text in next_texts:
            filled = [text if index in turn else response for index, response in enumerate(responses)]
            if stopping_rule(subtask, filled):
                return tuple(turn)
    return tuple(waiting)
