"""Keeps a conversation with the worker that gave its last answer, if another would cost more and gain nothing.

A provider bills the beginning of a conversation at a lower price if its prompt cache still holds that text from the
turn before. Another worker's provider bills the whole conversation at the full price. `StickyWorkerPlanner` compares
the two costs after its planner has chosen a worker. `podium.server.cached_conversations` finds out which conversation a
question continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from podium.planners.planner import PlannerWrapper, PlanRequest
from podium.trace import Plan
from podium.types import Profile, Usage, estimate_tokens
from podium.workflow import Workflow

MIN_CACHED_TOKENS = 1024
"""The fewest tokens of a conversation that providers cache."""


@dataclass(frozen=True, slots=True)
class PastTurn:
    """The turn of a conversation before this one."""

    worker: str
    """The worker that gave the answer."""
    output_tokens: int
    """Tokens of that answer. The next answer is expected to have as many."""
    cached: Mapping[str, int]
    """How many tokens of the conversation each worker's provider holds in its prompt cache."""


@dataclass(frozen=True, slots=True)
class StickyWorkerPlanner(PlannerWrapper):
    """A planner that keeps the worker of the turn before, if another worker would cost more and gain nothing. It
    changes only the worker of the last step, in the plan of the first round."""

    past: PastTurn

    @property
    def name(self) -> str:
        return self.planner.name

    @property
    def streams_steps(self) -> bool:
        """As the wrapped planner, which never streams the last step, the only one that is changed."""
        return self.planner.streams_steps

    async def plan(self, request: PlanRequest) -> Plan:
        """The wrapped planner's plan. If its last step keeps the worker, `reason` says why."""
        plan = await self.planner.plan(request)
        names = [profile.name for profile in request.pool]
        cached = self.past.cached.get(self.past.worker, 0)
        if request.earlier_rounds or not isinstance(plan.decision, Workflow) or self.past.worker not in names:
            return plan
        *before, last = plan.decision.steps
        chosen, kept = request.pool[last.worker], request.pool[names.index(self.past.worker)]
        if kept == chosen or cached < MIN_CACHED_TOKENS:
            return plan
        question = request.question
        texts = [*(message.content for message in question.history), question.text]
        tokens = max(sum(map(estimate_tokens, texts)), cached)
        loss = switching_loss_usd(kept, chosen, self.past, tokens)
        if loss <= 0:
            return plan
        reason = (
            f"Kept with {kept.name}: its prompt cache holds {cached:,} tokens of the conversation, and "
            f"{chosen.name} would cost ${loss:.4f} more."
        )
        steps = (*before, replace(last, worker=names.index(kept.name)))
        return replace(plan, decision=Workflow(steps), reason=reason)


def switching_loss_usd(kept: Profile, chosen: Profile, past: PastTurn, tokens: int) -> float:
    """Dollars by which a move from `kept` to `chosen` costs more, for a next turn of so many input tokens. 0 if the
    move gains something: to a more accurate worker, or without ratings to a dearer one."""

    def expected(profile: Profile, cached: int) -> float:
        read = min(cached, tokens)
        usage = Usage(
            input_tokens=tokens,
            output_tokens=past.output_tokens,
            cached_tokens=read,
            cache_write_tokens=tokens - read,
        )
        return profile.price.cost(usage)

    if kept.rating is None or chosen.rating is None:
        # A planner chooses an expensive worker for its abilities, and only ratings say what those are worth.
        gains = expected(chosen, 0) > expected(kept, 0)
    else:
        gains = chosen.rating.accuracy > kept.rating.accuracy
    stay = expected(kept, past.cached.get(kept.name, 0))
    return 0.0 if gains else max(0.0, expected(chosen, past.cached.get(chosen.name, 0)) - stay)
