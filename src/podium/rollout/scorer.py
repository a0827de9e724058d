"""The scoring core that every trainer shares: a completion's text in, a graded rollout out.

It samples nothing and updates nothing; adapters for other trainers are thin wrappers of `Scorer.score`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.errors import BudgetError
from podium.executor import Dispatcher, ExecutionSettings
from podium.orchestrator import Orchestrator
from podium.planner import Plan, Planner, PlanRequest
from podium.rollout.reward import RewardSettings
from podium.rollout.rollout import Rollout, roll
from podium.tasks.task import Task
from podium.types import Budget
from podium.workers.pool import Pool
from podium.workflow import AccessRule, parse


@dataclass(frozen=True, slots=True)
class FixedPlan:
    """A planner that answers every request with the same text, such as a completion that a trainer sampled.

    It parses and does nothing else, so a sampled text is run exactly as a live Conductor's would be.
    """

    text: str
    name: str = "written"
    access: AccessRule = "lists"
    """What its access lists may hold."""

    async def plan(self, request: PlanRequest) -> Plan:
        """Parse the text against the request's pool; a text that cannot be read is an error value."""
        decision = parse(
            self.text,
            workers=len(request.pool),
            max_steps=request.max_steps,
            later_round=bool(request.outcomes),
            access=self.access,
        )
        return Plan(text=self.text, decision=decision)


@dataclass(frozen=True, slots=True)
class Scorer:
    """How completions are run and rewarded."""

    reward: RewardSettings = field(default_factory=RewardSettings)
    cost_weights: tuple[float, ...] = ()
    """Reward lost for each dollar at each level of cost sensitivity, in place of the reward's own weight."""
    budget: Budget = field(default_factory=Budget)
    """Of one question. `score` would read its one completion again in each round: leave rounds at 1 for it."""
    max_steps: int = 5
    access: AccessRule = "lists"
    """What the access lists of a completion may hold."""
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)
    dispatcher: Dispatcher = field(default_factory=Dispatcher, compare=False)
    """Holds the workers' limits for all that is scored, whatever the pools.

    If it has a response cache, the rollouts of a question share their identical calls.
    """

    async def score(self, completion: str, task: Task, pool: Pool, *, seed: str) -> Rollout | None:
        """Parse `completion`, run it over `pool` and grade the answer.

        Args:
            completion: what the policy wrote, word for word; an unreadable one has reward 0.
            seed: names the randomness of the workers: the same arguments give the same rollout.

        Returns:
            None if workers failed the plan: that is never the policy's fault, so the rollout is left out of its group.

        Raises:
            BudgetError: the dollars that a run or a day may cost do not suffice.
        """
        return await self.roll(FixedPlan(completion, access=self.access), task, pool, seed=seed)

    async def roll(
        self,
        planner: Planner,
        task: Task,
        pool: Pool,
        *,
        seed: str,
        cost_sensitivity: int = 0,
        trace_id: str | None = None,
    ) -> Rollout | None:
        """The same for any planner, round after round within the budget, at a level of cost sensitivity."""
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
            rollout = await roll(orchestrator, task, seed=seed, settings=settings, trace_id=trace_id)
        except BudgetError:
            # The caller gives up the whole batch. Calls in flight of its other rollouts are paid for: let them end
            # first, so that their responses are kept.
            for account in self.dispatcher.accounts:
                await account.quiet()
            raise
        return None if rollout.infrastructure_failed else rollout
