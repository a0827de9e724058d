"""Where all rollouts of a batch ask their policy: none is answered before all that still run have asked.

So each round of a batch is sampled at once, however many rounds a rollout takes, and a rollout is an ordinary
question to an ordinary orchestrator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from podium.planner import Plan, Planner, PlanRequest
from podium.rollout import FixedPlan

T = TypeVar("T")

SampleRequest = tuple[int, PlanRequest]
"""Which rollout asks, and what it sees."""

Answer = Callable[[Sequence[SampleRequest]], Sequence[str]]
"""Completions for all that ask, in their order: by rollout."""


class BatchedPolicy:
    """Serves one batch."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._running = 0
        self._waiting: dict[int, tuple[PlanRequest, asyncio.Future[str]]] = {}
        self._all_wait = asyncio.Event()

    async def serve(self, rollouts: Sequence[Callable[[Planner], Awaitable[T]]]) -> list[T]:
        """Run rollouts, each with a planner that asks here. Sampling holds the event loop: nothing else runs then."""
        self._running = len(rollouts)
        try:
            async with asyncio.TaskGroup() as group:
                pending = [
                    group.create_task(self._run(rollout, _AtDesk(self, number)))
                    for number, rollout in enumerate(rollouts)
                ]
                while self._running:
                    await self._all_wait.wait()
                    self._all_wait.clear()
                    self._reply()
        except BaseExceptionGroup as failures:  # What stopped the batch is no group to whoever trains.
            raise failures.exceptions[0] from None
        return [done.result() for done in pending]

    def _reply(self) -> None:
        waiting, self._waiting = sorted(self._waiting.items(), key=lambda item: item[0]), {}
        if waiting:
            texts = self._answer([(number, situation) for number, (situation, _) in waiting])
            for (_, (_, reply)), text in zip(waiting, texts, strict=True):
                if not reply.done():  # It may have given up at this very moment.
                    reply.set_result(text)

    async def ask(self, number: int, situation: PlanRequest) -> str:
        """The completion for a rollout, once all others wait or have ended."""
        reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[number] = situation, reply
        self._look()
        try:
            return await reply
        finally:  # Whoever gives up waiting is not waited for.
            self._waiting.pop(number, None)

    async def _run(self, rollout: Callable[[Planner], Awaitable[T]], planner: Planner) -> T:
        try:
            return await rollout(planner)
        finally:
            self._running -= 1
            self._look()

    def _look(self) -> None:
        if len(self._waiting) == self._running:
            self._all_wait.set()


@dataclass(frozen=True, slots=True)
class _AtDesk:
    """The planner of one rollout."""

    desk: BatchedPolicy
    number: int
    name: str = "policy"

    async def plan(self, situation: PlanRequest) -> Plan:
        return await FixedPlan(await self.desk.ask(self.number, situation)).plan(situation)
