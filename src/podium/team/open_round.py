"""The round that is under way: its plan, what planning took so far, and what was run."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.calls import AttemptLog, SubLedger
from podium.executor import Execution
from podium.planner import EarlierRound
from podium.trace import Plan, RoundTrace, Span
from podium.types import Spent, copy_without_validation


@dataclass(slots=True)
class OpenRound:
    """The round that is under way."""

    number: int
    earlier_rounds: tuple[EarlierRound, ...]
    """Earlier rounds, as the planner sees them."""
    started_s: float
    planning: SubLedger
    """Counts what planning takes."""
    attempts: AttemptLog = field(default_factory=AttemptLog)
    """The tries of the calls of the planner's model."""
    trace: RoundTrace | None = None
    """The plan. None while it is being written."""
    execution: Execution | None = None
    """Runs the workflow. None until there is a workflow."""
    abandoned: tuple[Span, ...] = ()
    """Steps that were started while the plan was being written, and that the plan does not need."""

    @property
    def is_untouched(self) -> bool:
        """Whether there is no plan, and nothing was tried, paid or started for one."""
        tried = self.attempts or self.abandoned or self.planning.spent != Spent()
        return self.trace is None and not tried

    def measured(self, plan: Plan, elapsed_s: float) -> Plan:
        """The plan with what planning took. `elapsed_s` are the seconds since the trace began."""
        return copy_without_validation(
            plan,
            spent=self.planning.spent,
            seconds=plan.seconds or elapsed_s - self.started_s,
            attempts=(*plan.attempts, *self.attempts),
        )
