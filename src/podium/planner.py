"""The planner interface: a planner reads a `PlanRequest` and returns a `Plan`. It runs nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from podium.executor import Ledger
from podium.trace import VoteCount
from podium.types import Profile, Question, Usage
from podium.workflow import Acceptance, PlanError, Workflow


@dataclass(frozen=True, slots=True)
class Outcome:
    """An earlier round, as a planner sees it: its plan and its final response."""

    workflow: Workflow
    response: str
    """The response of the last step that succeeded; empty when none did."""
    votes: VoteCount | None = None
    """The count of the votes, if that step was a vote with a winner."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """All that a planner may base a plan on."""

    question: Question
    pool: tuple[Profile, ...]
    """Worker k of a plan is `pool[k]`."""
    outcomes: tuple[Outcome, ...] = ()
    """Earlier rounds, oldest first; empty in the first round."""
    max_steps: int = 5
    rounds: int = 1
    """Rounds that are left, this one included."""
    seed: str = "0"
    """Names the randomness of this plan."""
    ledger: Ledger | None = field(default=None, compare=False, repr=False)
    """The budget of the question. A planner that pays for its plan reserves the cost here first. None: no budget."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a planner decided."""

    text: str
    """What the planner wrote, word for word; of a policy that numbers the pool in another order, the plan alone, with
    the pool's numbers."""
    decision: Workflow | Acceptance | PlanError
    usage: Usage = Usage()
    """The planner's own tokens."""
    cost_usd: float = 0.0
    unpriced: bool = False
    """Whether its tokens were paid for at an unknown price, which `cost_usd` leaves out."""
    saved_usd: float = 0.0
    """Dollars that the plan had cost when it was made, if it is from the response cache."""


class Planner(Protocol):
    """Writes plans. It does not know how they are run."""

    @property
    def name(self) -> str: ...

    async def plan(self, request: PlanRequest) -> Plan: ...
