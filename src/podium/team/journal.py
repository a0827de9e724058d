"""What a question has from another process: plans and steps that were paid for are not paid for again.

The runner tells a `Journal` of each call before it begins, and waits until its result is kept. A later process
hands the kept results back as `Past`. Where and how they are kept is the caller's matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from podium.executor import CallJournal
from podium.team.events import PlanReady
from podium.trace import Attempt, Span
from podium.types import Usage, total_usage

LOST = "interrupted"
"""The error kind of an attempt whose process ended before the reply came. It may have been paid for."""


@dataclass(frozen=True, slots=True)
class Past:
    """What is known of a question that another process began. Steps are named by round and position."""

    started_at: str
    """When the question began: ISO 8601, UTC."""
    elapsed_s: float = 0.0
    """Seconds since."""
    plans: Mapping[int, PlanReady] = field(default_factory=dict)
    """The plans, by round."""
    spans: Mapping[tuple[int, int], Span] = field(default_factory=dict)
    """The steps that ended."""
    interrupted: Mapping[tuple[int, int], tuple[Attempt, ...]] = field(default_factory=dict)
    """Attempts of steps that did not end."""
    lost_plans: Mapping[int, int] = field(default_factory=dict)
    """How often each round's planner was called and its plan was lost. Rounds without a lost plan are left out."""

    def known(self, round: int) -> dict[int, Span]:
        """The steps of a round that ended, by position."""
        return {position: span for (number, position), span in self.spans.items() if number == round}

    def tries(self, round: int) -> dict[int, tuple[Attempt, ...]]:
        """The attempts of a round's steps that did not end, by position."""
        return {position: tries for (number, position), tries in self.interrupted.items() if number == round}

    @property
    def calls(self) -> int:
        """Worker calls that ended."""
        return sum(span.called for span in self.spans.values())

    @property
    def usage(self) -> Usage:
        """Tokens that were used, as far as that is known."""
        used = [ready.plan.spent.usage for ready in self.plans.values()]
        used += [span.total_usage for span in self.spans.values()]
        used += [attempt.usage for tries in self.interrupted.values() for attempt in tries]
        return total_usage(used)

    @property
    def cost_usd(self) -> float:
        """Dollars that were paid, as far as that is known."""
        lost = sum(attempt.cost_usd for tries in self.interrupted.values() for attempt in tries)
        ended = sum(span.cost_usd for span in self.spans.values())
        return lost + ended + sum(ready.plan.spent.cost_usd for ready in self.plans.values())


class Journal(CallJournal, Protocol):
    """Keeps what a question paid for. It reads the results from the events that the observer gets."""

    @property
    def past(self) -> Past:
        """What other processes have done of the question."""
        ...

    @property
    def handed_over(self) -> bool:
        """Whether another process goes on with the question, so that its end here is not its end."""
        ...
