"""What a planner decided and what that took: the value that it returns, and that the trace keeps as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace

from podium.types import Message, Spent
from podium.workflow import Acceptance, PlanError, Workflow


@dataclass(frozen=True)
class Plan:
    """What a planner decided."""

    text: str
    """The planner's text, word for word. If the policy numbers workers in another order than the pool: only the plan,
    rewritten with the pool's numbers."""
    decision: Workflow | Acceptance | PlanError
    spent: Spent = Spent()
    """What it took, with what `rejected` took. The run takes it from the request's ledger; a planner that has counted
    nothing there says it here, and it is counted there when the planner returns."""
    messages: tuple[Message, ...] = ()
    """What the planner's model was sent for the first try, with the model's numbers of the workers; empty for a planner
    that calls no model."""
    reasoning: str = ""
    """The visible reasoning of the planner's model, if it is returned apart from the text."""
    dropped: tuple[str, ...] = ()
    """Keys of the request to the planner's model that were left out, since its endpoint refuses them."""
    rejected: tuple[Plan, ...] = ()
    """Plans before this one that are not run: no plans, or such as call a worker that is left for a while. The decision
    of each is an error that says why."""
    seconds: float = 0.0
    """How long writing it took. With 0, the runner measures it."""
    edited: bool = False
    """Whether a user changed the decision afterwards, so that `text` has another one."""
    reason: str | None = None
    """One sentence: why the decision differs from the text. None if it does not."""
    accepted_step: tuple[int, int] | None = None
    """The (round, step), both from 0, whose response an acceptance takes as the answer. Default: the latest
    response."""
    max_tokens: tuple[int | None, ...] = ()
    """The most output tokens of each step, besides the limits of its worker. None for no further limit. Steps beyond
    its end have none."""
    visible_responses: tuple[tuple[int, int], ...] = ()
    """(round, step) of each response of earlier rounds that the workflow's steps with "previous" or "all" see, in this
    order, without those that failed. Empty: they see the latest response alone."""

    def with_rejected(self, other: Plan, error: PlanError) -> Plan:
        """This plan, with `other`, which was not run because of `error`, as a rejected one."""
        rejected = replace(other, decision=error, messages=(), rejected=())
        return replace(self, rejected=(*other.rejected, rejected, *self.rejected))
