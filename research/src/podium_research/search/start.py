"""One start of a search: its settings, pool and questions, what answers the dry question, and the price by that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from podium.cli.printable import dollars
from podium.errors import UsageError
from podium.planner import Planner
from podium.planners import Constant
from podium.rollout import Rollout
from podium.tasks.task import Task
from podium.workers.pool import Pool
from podium_research.planners.masrouter import team_workflow
from podium_research.planners.masrouter_controller import MEAN_CALLS, RoutedTeam
from podium_research.planners.trinity import Trinity
from podium_research.planners.trinity_head import Head
from podium_research.search.constant import FRESH
from podium_research.search.heads import head_workers
from podium_research.search.settings import AnySearch, ControllerSearch, HeadSearch
from podium_research.search.workflows import beginnings


@dataclass(frozen=True)
class SearchStart:
    """One start of a search, over opened workers and questions."""

    settings: AnySearch
    pool: Pool
    tasks: Sequence[Task]
    console: Console
    """Where progress is said; standard error where the result is JSON."""

    @property
    def workers(self) -> tuple[str, ...]:
        """The workers of a head or a controller."""
        assert isinstance(self.settings, HeadSearch | ControllerSearch)
        return head_workers(self.pool, self.settings.workers)

    @property
    def dry_planners(self) -> list[Planner]:
        """What answers the dry question: a head or a team for each worker, or the archive's first workflows."""
        if isinstance(self.settings, HeadSearch):
            return [Trinity(Head.untrained((name,)), name) for name in self.workers]
        if isinstance(self.settings, ControllerSearch):
            teams = [RoutedTeam("reflection", (("solver", name),)) for name in self.workers]
            workflows = [team_workflow(team, self.pool.profiles) for team in teams]
        else:
            workflows = beginnings(self.pool.names, self.settings.max_steps)
        return [Constant(workflow, self.pool.names) for workflow in workflows]

    def price(self, rollouts: Sequence[Rollout]) -> SearchPrice:
        """The price of the search, by what each of `dry_planners` did with one question."""
        settings = self.settings
        mean = sum(rollout.trace.uncached_usd for rollout in rollouts) / len(rollouts)
        if isinstance(settings, HeadSearch):
            answers = settings.population * min(settings.replications, len(self.tasks))
            return SearchPrice("generation", answers * mean, settings.generations * answers * mean)
        if isinstance(settings, ControllerSearch):
            epoch = len(self.tasks) * MEAN_CALLS / 2 * mean  # Each of `dry_planners` makes two calls.
            return SearchPrice("epoch", epoch, settings.epochs * epoch)
        # Equal calls of several workflows are paid once.
        calls = {
            (s.worker, s.messages): s.spent.cost_usd + s.spent.saved_usd
            for r in rollouts
            for s in r.trace.spans
        }
        archive, tried_on = sum(calls.values()), min(settings.tried_on, len(self.tasks))
        fresh = len(self.tasks) - tried_on
        whole = (tried_on + (fresh if fresh >= FRESH else 0)) * (archive + settings.proposals * mean)
        return SearchPrice("archive and its first proposal", tried_on * (archive + mean), whole)


@dataclass(frozen=True, slots=True)
class SearchPrice:
    """Dollars, by one dry question; later answers may share cached calls, or be longer."""

    unit: str
    """What `first_usd` pays for."""
    first_usd: float
    whole_usd: float

    def check(self, budget_usd: float | None) -> None:
        """Raise a `UsageError` if the budget cannot pay for the first generation."""
        if budget_usd is not None and self.first_usd > budget_usd:
            smaller = {"generation": "population or replications", "epoch": "questions"}.get(
                self.unit, "tried_on"
            )
            raise UsageError(
                f"--run-budget-usd is {dollars(budget_usd)}, and by a dry question one {self.unit} costs about "
                f"{dollars(self.first_usd)}: give more, or set {smaller} lower."
            )
