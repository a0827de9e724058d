"""Scripted teams that answer one question under a planner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.team import Runner
from podium.trace import Trace
from podium.types import Budget, Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workers.vote import VoteWorker


def team(**replies: Sequence[str] | Mapping[str, str]) -> Pool:
    """A pool of scripted workers, by name, and the voting tool."""
    return Pool([*(ScriptedWorker(name, script) for name, script in replies.items()), VoteWorker()])


async def answered(planner, pool: Pool, *, rounds: int | None = None, text: str = "How many?") -> Trace:
    """The trace of the question, with as many rounds as the planner needs."""
    budget = Budget(rounds=rounds or planner.rounds)
    return await Runner(planner, pool, budget=budget).answer(Question(text=text))


def called(trace: Trace) -> list[list[str]]:
    """The workers that were called, round by round, without the vote."""
    return [
        [span.worker for span in round_.spans if span.worker != "vote"]
        for round_ in trace.rounds
        if not round_.accepted
    ]
