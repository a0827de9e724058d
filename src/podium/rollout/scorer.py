"""The scoring core that every trainer shares: it runs a planner on a task and returns a graded rollout.

It samples nothing and updates nothing: the planner is a policy, or holds completions that were sampled before, as a
`FixedPlan` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.errors import BudgetError
from podium.executor import Dispatcher, ExecutionSettings
from podium.planner import Planner
from podium.rollout.reward import RewardSettings
from podium.rollout.rollout import Rollout, roll
from podium.tasks.task import Task
from podium.team import Runner
from podium.types import Budget
from podium.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class Scorer:
    """How completions are run and rewarded."""

    reward: RewardSettings = field(default_factory=RewardSettings)
    budget: Budget = field(default_factory=Budget)
    """The budget of one question. For a `FixedPlan` leave rounds at 1: it gives its one completion in every round."""
    max_steps: int = 5
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    dispatcher: Dispatcher = field(default_factory=Dispatcher, compare=False)
    """Enforces the workers' limits over all rollouts, whatever their pools.

    If it has a response cache, the rollouts of a question share their identical calls.
    """

    async def roll(
        self,
        planner: Planner,
        task: Task,
        pool: Pool,
        *,
        seed: str,
        trace_id: str | None = None,
    ) -> Rollout | None:
        """Run, grade and reward the plans of any planner, over the budget's rounds.

        Args:
            seed: seeds the randomness of planner and workers; the same arguments give the same rollout.

        Returns:
            None if workers or the grader failed. That is never the policy's fault, so the rollout is left out of its
            group.

        Raises:
            BudgetError: the budget of the run or the day does not suffice.
        """
        rollout = await self.run(planner, task, pool, seed=seed, trace_id=trace_id)
        return None if rollout.infrastructure_failed else rollout

    async def run(
        self,
        planner: Planner,
        task: Task,
        pool: Pool,
        *,
        seed: str,
        trace_id: str | None = None,
    ) -> Rollout:
        """As `roll`, but return the rollout even if workers or the grader failed. Its reward then means nothing."""
        runner = Runner(
            planner,
            pool,
            budget=self.budget,
            max_steps=self.max_steps,
            settings=self.execution,
            dispatcher=self.dispatcher,
        )
        try:
            return await roll(runner, task, seed=seed, settings=self.reward, trace_id=trace_id)
        except BudgetError:
            # The caller gives up the whole batch. Let the calls in flight of its other rollouts end first: they are
            # paid for, and so their responses are kept.
            for account in self.dispatcher.accounts:
                await account.wait_until_unreserved()
            raise
