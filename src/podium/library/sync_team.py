"""`SyncTeam`: a team for programs and notebooks that are not async."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from podium.concurrency.event_loops import LoopThread
from podium.evals.evaluation import Evaluation
from podium.library.evaluation import evaluate
from podium.planners.planner import Planner
from podium.tasks.task import Task
from podium.team import Event
from podium.team.team import Team
from podium.trace import Plan, Trace
from podium.types import Question
from podium.workers.pool import Pool
from podium.workflow import Workflow


class SyncTeam:
    """A `Team` whose event loop runs in a thread of its own. `open` opens one; it is a context manager."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self._loop = LoopThread("podium-team")

    @classmethod
    def open(cls, team: str | Path | Pool, **options: Any) -> Self:
        """Open a team. `options` go to `Team.open`."""
        return cls(Team.open(team, **options))

    @property
    def pool(self) -> Pool:
        """The workers; worker k of a plan is `pool[k]`."""
        return self._team.pool

    @property
    def planner(self) -> Planner:
        """The team's planner."""
        return self._team.planner

    def ask(self, question: str | Question, *, seed: str | int | None = None, sample: int = 0) -> Trace:
        """Answer a question as `Team.ask` does. `stream` gives the events."""
        return self._loop.call(self._team.ask(question, seed=seed, sample=sample))

    def plan(self, question: str | Question, *, seed: str | int | None = None) -> Plan:
        """Write a plan and run nothing, as `Team.plan` does."""
        return self._loop.call(self._team.plan(question, seed=seed))

    def run(
        self, plan: str | Workflow | Plan, question: str | Question, *, seed: str | int | None = None
    ) -> Trace:
        """Run a given workflow for a question, as `Team.run` does."""
        return self._loop.call(self._team.run(plan, question, seed=seed))

    def stream(self, question: str | Question, *, seed: str | int | None = None) -> Iterator[Event]:
        """Answer a question, and yield its events as they come, as `Team.stream` does."""
        events = self._team.stream(question, seed=seed)

        async def next_event() -> Event | None:
            return await anext(events, None)

        try:
            while (event := self._loop.call(next_event())) is not None:
                yield event
        finally:
            if not self._loop.closed:  # Closing the loop has closed the events.
                self._loop.call(events.aclose())

    def evaluate(self, tasks: str | Path | Sequence[Task], **options: Any) -> Evaluation:
        """Answer and grade questions. `options` go to `podium.evaluate`."""
        return self._loop.call(evaluate(self._team, tasks, **options))

    def close(self) -> None:
        """Close connections and files, and end the thread. Calling twice is fine."""
        if not self._loop.closed:
            self._loop.call(self._team.close())
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()
