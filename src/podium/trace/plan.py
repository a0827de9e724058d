"""The plan: what a planner decided, and what that cost. A planner returns it, and the trace keeps it unchanged."""

from __future__ import annotations

from dataclasses import dataclass, replace

from podium.types import FrozenModel, Message, Spent
from podium.workflow import Acceptance, PlanError, Workflow


class Attempt(FrozenModel):
    """One try of a call of a worker."""

    worker: str
    started_s: float
    ended_s: float
    error_kind: str | None = None
    """A `WorkerErrorKind`, "cancelled", "length" (max_tokens cut the answer off), or a kind that a worker of another
    package names. None if the try succeeded."""
    error: str | None = None
    spent: Spent = Spent()
    """Tokens and dollars that the try took although it gave no answer."""
    hedge: bool = False
    """Whether the try is a second request that was made because the first was slow."""


@dataclass(frozen=True)
class Plan:
    """What a planner decided."""

    text: str
    """The planner's text. If the policy numbers workers in another order, only the plan, with the pool's numbers."""
    decision: Workflow | Acceptance | PlanError
    spent: Spent = Spent()
    """What planning took, `rejected` plans included. The runner sets it from the ledger of the request. In a rejected
    plan it is what that plan alone took, and its planner sets it."""
    messages: tuple[Message, ...] = ()
    """The messages of the planner's model for the first try, with the model's numbers of the workers."""
    reasoning: str = ""
    """The visible reasoning of the planner's model, if it is returned apart from the text."""
    dropped: tuple[str, ...] = ()
    """Keys that were left out of the request to the planner's model, since its endpoint refuses them."""
    rejected: tuple[Plan, ...] = ()
    """Earlier plans for the same round that are not run. The decision of each is an error that says why."""
    seconds: float = 0.0
    """Seconds that planning took. The runner measures them, but for a plan from an earlier trace, which has them."""
    attempts: tuple[Attempt, ...] = ()
    """The tries of the calls of the planner's model, from the log of the request, those for `rejected` too."""
    edited: bool = False
    """Whether a user changed the decision afterwards, so that it differs from `text`."""
    reason: str | None = None
    """One sentence: why the decision differs from the text. None if it does not."""
    accepted_step: tuple[int, int] | None = None
    """The (round, step), both from 0, whose response an acceptance takes as the answer. If None, the latest."""
    max_tokens: tuple[int | None, ...] = ()
    """The most output tokens of each step, besides its worker's limit. None and the tuple's end set no further one."""
    visible_responses: tuple[tuple[int, int], ...] = ()
    """The (round, step) of each response of earlier rounds that steps with "previous" or "all" see, in this order.
    Steps that failed are left out. If it is empty, such steps see only the latest response."""

    def with_rejected(self, other: Plan, error: PlanError) -> Plan:
        """This plan with `other` as a rejected plan. `error` says why `other` was not run."""
        rejected = replace(other, decision=error, messages=(), rejected=())
        return replace(self, rejected=(*other.rejected, rejected, *self.rejected))
