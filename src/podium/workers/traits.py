"""The traits of a worker, for whoever plans, pays or compares: whether it is a model, a tool or a program, and whether
its calls cost anything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from podium.workers.base import Worker

IsCertain = Callable[[str, Sequence[str | None]], bool]
"""Whether the responses that are still to come cannot change a tool's result.

It is given the subtask, and the responses that the tool reads, in order: None for one that is still to come, "" if its
step failed."""

_SOMETHING = "Answer: something"
"""An answer that no response has given yet."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What sort of worker it is. A worker declares it in its attribute `traits`, a kind of workers in its spec, and who
    declares nothing has the defaults. An endpoint is `ENDPOINT`."""

    role: Literal["model", "tool", "program"] = "program"
    """"model": a language model, which may conduct. "tool": runs no model, and works on what earlier steps gave.
    "program": anything else, such as a command or a team."""
    cost: Literal["money", "compute", "nothing"] = "money"
    """What its calls cost: "compute" of a model that runs here, "nothing" of a tool, a script or a recording."""
    takes_extra: bool = False
    """Whether `AnswerOptions.extra` reaches its model."""
    keeps_time_limit: bool = False
    """Whether a call ends within `limits.timeout` by itself. Without it, its caller cancels it then."""
    pays_for_own_calls: bool = False
    """Whether it reserves and settles the dollars of its calls in `Request.spend_limits`, as a team does."""
    is_certain: IsCertain | None = None
    """Tells whether a tool's result is certain before the tool has all responses. None if it needs all."""


TOOL = Traits(role="tool", cost="nothing")
WRITTEN = Traits(cost="nothing")
"""The traits of a worker whose answers are scripted or recorded."""
ENDPOINT = Traits(role="model", takes_extra=True, keeps_time_limit=True)
LOCAL_MODEL = Traits(role="model", cost="compute")
_DEFAULT = Traits()


def traits_of(worker: Worker) -> Traits:
    """The traits that the worker declares, or the defaults."""
    traits: Traits = getattr(worker, "traits", _DEFAULT)
    return traits


def is_tool(worker: Worker) -> bool:
    """Whether a worker is a tool."""
    return traits_of(worker).role == "tool"


def costly_workers(workers: Iterable[Worker]) -> list[Worker]:
    """The workers whose calls cost something, in order: neither tools nor scripted or recorded ones."""
    return [worker for worker in workers if traits_of(worker).cost != "nothing"]


def has_costly_workers(workers: Iterable[Worker]) -> bool:
    """Whether a call of any of them costs something."""
    return bool(costly_workers(workers))


def has_paid_workers(workers: Iterable[Worker]) -> bool:
    """Whether a call of any of them may cost money."""
    return any(traits_of(worker).cost == "money" for worker in workers)


def responses_to_get_next(
    is_certain: IsCertain, subtask: str, responses: Sequence[str | None], order: Sequence[int]
) -> tuple[int, ...]:
    """Indices of the responses to get next; none if the result is certain.

    Args:
        responses: what the vote will see: None for one that is not there yet, "" if its step failed.
        order: indices of responses, the cheapest first.
    """
    if is_certain(subtask, responses):
        return ()
    waiting = [place for place in order if responses[place] is None]
    hoped_for = {_SOMETHING, *(text for text in responses if text)}
    for count in range(1, len(waiting)):
        turn = waiting[:count]
        if any(is_certain(subtask, _filled(responses, turn, text)) for text in hoped_for):
            return tuple(turn)
    return tuple(waiting)


def _filled(responses: Sequence[str | None], places: Collection[int], text: str) -> list[str | None]:
    return [text if place in places else response for place, response in enumerate(responses)]
