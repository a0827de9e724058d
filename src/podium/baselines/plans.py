"""What every baseline shares: finding workers by name, and turning a workflow into a plan.

Baselines plan one round; asked again, they accept the answer that they have.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.config import suggestion
from podium.errors import ConfigError
from podium.planner import Plan, Situation
from podium.types import Profile
from podium.workflow import Acceptance, Workflow, render


def written(situation: Situation, workflow: Workflow) -> Plan:
    """The plan that runs `workflow`, and accepts once it has been run. Not held to `max_steps`."""
    decision = Acceptance() if situation.outcomes else workflow
    return Plan(text=render(decision), decision=decision)


def position_of(name: str, pool: Sequence[Profile]) -> int:
    """The number of the worker called `name`; `ConfigError` when the pool has none."""
    names = [profile.name for profile in pool]
    if name not in names:
        raise ConfigError(f"The pool has no worker named {name!r}; {suggestion(name, names)}")
    return names.index(name)
