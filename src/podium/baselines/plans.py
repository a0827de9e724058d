"""What every baseline shares: finding workers by name, and turning a workflow into a plan.

Baselines plan one round; asked again, they accept the answer that they have.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.config import suggestion
from podium.errors import ConfigError
from podium.planner import Plan, PlanRequest
from podium.types import Profile
from podium.workers.vote import VOTE
from podium.workflow import Acceptance, Access, Step, Workflow, render


def written(request: PlanRequest, workflow: Workflow) -> Plan:
    """The plan that runs `workflow`, and accepts once it has been run. Not held to `max_steps`."""
    decision = Acceptance() if request.outcomes else workflow
    return Plan(text=render(decision), decision=decision)


def voting_step(pool: Sequence[Profile], weights: Sequence[float] = ()) -> Step:
    """A vote on all earlier answers by the pool's tool, in a later round also on the answer of the round before.

    Args:
        weights: of the votes, in the order of the answers; none: all count alike.

    Raises:
        ConfigError: the pool has no such tool.
    """
    names = [profile.name for profile in pool]
    if VOTE not in names:
        raise ConfigError(
            f"This plan votes with the pool's worker {VOTE!r}, and this pool has none: "
            f'add a [[worker]] with name = "{VOTE}" and kind = "vote" to the pool file.'
        )
    subtask = "Give the most frequent answer."
    if weights:
        subtask = f"Vote with the weights {', '.join(map(_decimal, weights))}."
    return Step(worker=names.index(VOTE), subtask=subtask, access=Access(all=True))


def _decimal(weight: float) -> str:
    """As the voting tool reads it: no exponent."""
    return f"{weight:.6f}".rstrip("0").rstrip(".")


def position_of(name: str, pool: Sequence[Profile]) -> int:
    """The number of the worker called `name`; `ConfigError` when the pool has none."""
    names = [profile.name for profile in pool]
    if name not in names:
        raise ConfigError(f"The pool has no worker named {name!r}; {suggestion(name, names)}")
    return names.index(name)
