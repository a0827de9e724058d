"""`worker`: makes a worker of a Python function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podium.types import Limits, Price, Profile
from podium.workers.function import Function, FunctionWorker


def worker(
    name: str,
    description: str = "",
    *,
    skills: Sequence[str] = (),
    price: Price | None = None,
    limits: Limits | None = None,
) -> Callable[[Function], FunctionWorker]:
    """A decorator that makes a worker of a function.

        @podium.worker("prices", "Knows the price of every article of our shop.")
        async def prices(messages: list[dict[str, str]]) -> str:
            return await look_up(messages[-1]["content"])

    The function gets the chat messages of its step, each with "role" and "content"; the last one has the subtask. It
    returns the response. If it is not async, it runs in a thread.

    Args:
        description: what the worker is good at; the planner reads this text.
        price: dollars per million tokens; None: its answers cost nothing.
        limits: concurrency, requests a minute, timeout, retries.
    """
    profile = Profile(name=name, description=description, skills=tuple(skills), price=price or Price())
    return lambda function: FunctionWorker(profile, function, limits=limits)
