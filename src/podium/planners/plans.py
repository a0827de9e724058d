"""Functions that all baselines share: they find workers by name and turn a workflow into a plan.

Most baselines plan one round. In a later round they accept the answer of the round before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from podium.config import suggestion
from podium.errors import ConfigError
from podium.planner import PlanRequest
from podium.trace import Plan
from podium.types import Profile
from podium.workers.vote import VOTE
from podium.workflow import Acceptance, Access, Step, Workflow, render


def plan_once(request: PlanRequest, workflow: Workflow) -> Plan:
    """A plan that runs `workflow` in the first round and accepts in later rounds. It may have more steps than
    `max_steps`."""
    decision = Acceptance() if request.earlier_rounds else workflow
    return Plan(text=_rendered(decision), decision=decision)


@lru_cache(64)
def _rendered(decision: Workflow | Acceptance) -> str:
    """The text of a plan. Most baselines write the same one for each question."""
    return render(decision)


def voting_step(pool: Sequence[Profile], weights: Sequence[float] = ()) -> Step:
    """A step in which the pool's voting tool votes on all earlier answers, also on the answer of the round before. The
    votes have equal weights, or `weights` in the order of the answers. Raises `ConfigError` if the pool has no such
    tool."""
    refuse_without_vote(pool)
    subtask = "Give the most frequent answer."
    if weights:
        subtask = f"Vote with the weights {', '.join(map(_decimal, weights))}."
    return Step(worker=worker_number(VOTE, pool), subtask=subtask, access=Access(all=True))


def refuse_without_vote(pool: Sequence[Profile]) -> None:
    """`ConfigError` if the pool has no voting tool."""
    if VOTE not in (profile.name for profile in pool):
        raise ConfigError(
            f"This plan votes with the pool's worker {VOTE!r}, and this pool has none: "
            f'add a [[worker]] with name = "{VOTE}" and kind = "vote" to the pool file.'
        )


def _decimal(weight: float) -> str:
    """The weight without an exponent, which the voting tool cannot read."""
    return f"{weight:.6f}".rstrip("0").rstrip(".")


def worker_number(name: str, pool: Sequence[Profile]) -> int:
    """The number of the worker called `name`; `ConfigError` if the pool has none."""
    names = [profile.name for profile in pool]
    if name not in names:
        raise ConfigError(f"The pool has no worker named {name!r}; {suggestion(name, names)}")
    return names.index(name)
