"""What a request's `model` stands for: the configured planner, another planner, or one worker.

A name alone; whether the caller may have it is `offer`'s.
"""

from __future__ import annotations

from podium.server.api_errors import invalid
from podium.server.keys import Caller
from podium.server.offer import unknown_model
from podium.workers.pool import Pool

_OURS = "podium"


def who_answers(model: str, planner: str | None, pool: Pool, caller: Caller) -> tuple[str | None, str | None]:
    """The planner (None: the configured one) and the worker that is asked straight (None: a planner decides).

    Args:
        planner: that of the object `podium`.

    Raises:
        APIError: 404 for a model that is none, 400 for two planners.
    """
    if model == _OURS:
        return planner, None
    family, slash, name = model.partition("/")
    if family == _OURS and slash and model not in pool.names:
        if planner not in (None, name):
            raise invalid(
                f"The model {model[:100]!r} and podium.planner name two planners; give one.", "podium.planner"
            )
        return name, None
    if model not in pool.names:
        raise unknown_model(model, pool, caller)
    if planner is not None:
        raise invalid(
            f"The model {model!r} is a worker, asked without a plan; leave podium.planner out.",
            "podium.planner",
        )
    return None, model
