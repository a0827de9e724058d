"""The scoring core that every trainer shares: a completion's text in, a graded rollout out.

It samples nothing and updates nothing; adapters for other trainers are thin wrappers of `Scorer.score`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.errors import BudgetError
from podium.executor import Dispatcher, ExecutionSettings
from podium.orchestrator import Orchestrator
from podium.planner import Planner
from podium.rollout.fixed_plan import FixedPlan
from podium.rollout.reward import RewardSettings
from podium.rollout.rollout import Rollout, roll
from podium.tasks.task import Task
from podium.types import Budget
from podium.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class Scorer:
    """How completions are run and rewarded."""

    reward: RewardSettings = field(default_factory=RewardSettings)
    cost_weights: tuple[float, ...] = ()
    """Reward lost for each dollar at each level of cost sensitivity, in place of the reward's own."""
    budget: Budget = field(default_factory=Budget)
    """Of one question. A single completion is read again in each round: for `score` leave rounds at 1."""
    max_steps: int = 5
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    dispatcher: Dispatcher = field(default_factory=Dispatcher, compare=False)
    """The workers' limits, and what is shared besides: they count together for all that is scored, whatever the pools.

    With a response cache, the rollouts of a question share their identical calls.
    """

    async def score(self, completion: str, task: Task, pool: Pool, *, seed: str) -> Rollout | None:
        """Parse `completion`, run it over `pool` and grade the answer.

        Args:
            completion: what the policy wrote, word for word; an unreadable one has reward 0.
            seed: names the randomness of the workers: the same arguments give the same rollout.

        Returns:
            None when the workers failed the plan: never the policy's fault, so it is left out of its group.

        Raises:
            BudgetError: the dollars that a run or a day may cost do not suffice.
        """
        return await self.roll(FixedPlan(completion), task, pool, seed=seed)

    async def roll(
        self, planner: Planner, task: Task, pool: Pool, *, seed: str, cost_sensitivity: int = 0
    ) -> Rollout | None:
        """The same for whoever plans, round after round, within the budget, at a level of cost sensitivity."""
        orchestrator = Orchestrator(
            planner,
            pool,
            budget=self.budget,
            max_steps=self.max_steps,
            settings=self.execution,
            dispatcher=self.dispatcher,
        )
        settings = (
            self.reward.model_copy(update={"cost": self.cost_weights[cost_sensitivity]})
            if self.cost_weights
            else self.reward
        )
        try:
            rollout = await roll(orchestrator, task, seed=seed, settings=settings)
        except BudgetError:
            # Who scores a batch gives all of it up; what other rollouts have in flight is paid for, and kept first.
            for account in self.dispatcher.accounts:
                await account.quiet()
            raise
        return None if rollout.infrastructure_failed else rollout
