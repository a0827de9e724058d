"""Decides which steps of a workflow start, given how other steps have ended. It calls no worker and reads no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from podium.executor.early_stopping import EarlyStoppingVote
from podium.trace import Span
from podium.workflow import Workflow

_NO_EARLY_STOPS: Mapping[int, EarlyStoppingVote] = MappingProxyType({})


class Schedule:
    """A workflow, which of its steps have started, and how its steps ended.

    Args:
        planned_steps: the steps that are run unless a vote is certain without them. Other steps are skipped.
        early_stops: the votes that may stop early, by position.
        earlier_responses: responses of earlier rounds that votes may read.
    """

    def __init__(
        self,
        workflow: Workflow,
        planned_steps: Sequence[int],
        early_stops: Mapping[int, EarlyStoppingVote] = _NO_EARLY_STOPS,
        earlier_responses: Sequence[str] = (),
    ) -> None:
        self.planned_steps = planned_steps
        self.reads = tuple(workflow.reads(position) for position in range(len(workflow.steps)))
        """For each step the earlier steps that it reads."""
        self.spans: dict[int, Span] = {}
        """The steps that have ended, by position."""
        self.deciding_steps: dict[int, tuple[int, ...]] = {}
        """For each step that a vote deferred, the steps that had to end before the vote could decide about it."""
        self._early_stops = early_stops
        self._earlier_responses = earlier_responses
        self._started: set[int] = set()
        self._undeferred = set() if early_stops else set(planned_steps)
        """The steps that no vote defers now."""

    def get_ready(self) -> list[int]:
        """The steps whose inputs have all ended and that no vote defers. They count as started from now on."""
        if self._early_stops:
            self._continue_votes()
        ready = [
            p
            for p in self.planned_steps
            if p in self._undeferred and p not in self._started and self._has_all(p)
        ]
        self._started.update(ready)
        return ready

    def is_unneeded(self, position: int) -> bool:
        """Whether a step need not be run, since a vote is certain without it."""
        return position not in self._steps_needed(EarlyStoppingVote.skips)

    def _continue_votes(self) -> None:
        """For each vote whose started steps have all ended, choose the steps that start next."""
        waited_for = [
            stop.next_steps(self._earlier_responses, self.spans) for stop in self._early_stops.values()
        ]
        undeferred = self._steps_needed(EarlyStoppingVote.defers)
        waited = tuple(sorted({j for positions in waited_for for j in positions}))
        self.deciding_steps.update((position, waited) for position in undeferred - self._undeferred)
        self._undeferred = undeferred

    def _has_all(self, position: int) -> bool:
        """Whether all steps that this step reads have ended. A vote does not wait for steps that it skips."""
        early_stop = self._early_stops.get(position)
        for j in self.reads[position]:
            if j not in self.spans and (early_stop is None or not early_stop.skips(j)):
                return False
        return True

    def _steps_needed(self, is_left_out: Callable[[EarlyStoppingVote, int], bool]) -> set[int]:
        """The last step, and every step that it needs directly or through others. `is_left_out` says whether a vote
        leaves out a step that it reads."""
        if not self._early_stops:
            return set(self.planned_steps)
        needed: set[int] = set()
        for position in reversed(self.planned_steps):
            readers = [k for k in self.planned_steps if position in self.reads[k]]
            if not readers or any(
                k in needed and not (k in self._early_stops and is_left_out(self._early_stops[k], position))
                for k in readers
            ):
                needed.add(position)
        return needed
