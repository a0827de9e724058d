"""Runs a job: a planner and its controls answer the questions of one table and seed, and each answer is graded.

The controls use the plans that the planner wrote, so a plan is written and paid for once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from podium.conductor.planner import Conductor
from podium.errors import BudgetError, UsageError, WorkerError
from podium.evals.evaluation import (
    Evaluation,
    EvaluationJob,
    evaluate_by_host,
    evaluate_together,
    without_fallback,
)
from podium.evals.suite.comparison_inputs import ComparisonInputs, untrained_of
from podium.evals.suite.manifest import SuiteJob
from podium.evals.suite.plan_controls import PLAN_CONTROLS, ControlContext, with_control
from podium.evals.suite.training_answers import SuiteJobContext, TrainingAnswers
from podium.planner import BatchPlanner, Planner, PlannerWrapper, PlanRequest
from podium.rollout import Rollout
from podium.tasks.task import Task
from podium.team import Runner
from podium.team.team import Team
from podium.trace import Plan
from podium.types import Budget
from podium.workers.pool import Pool
from podium.workflow import Workflow

_PLANS = 100
"""The most training questions whose plans are counted, to find the most frequent plan."""


@dataclass(frozen=True, slots=True)
class CachingPlanner(PlannerWrapper):
    """A planner that plans once for equal requests. Its controls make equal requests."""

    known: dict[object, Plan] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.planner.name

    async def plan(self, request: PlanRequest) -> Plan:
        """The plan for this request. A cached plan counts with its price, but is not paid again."""
        key = (request.question.text, request.pool, request.earlier_rounds, request.rounds_left, request.seed)
        if key not in self.known:
            self.known[key] = await self.planner.plan(request)
            return self.known[key]
        plan = self.known[key]
        spent = plan.spent.paid_before
        request.ledger.charge(spent)
        return replace(plan, spent=spent)


async def run_jobs(jobs: Sequence[SuiteJob], shared: SuiteJobContext) -> None:
    """Make and grade the answers that are not kept yet. The same jobs give the same lines, except for times and ids.

    Args:
        jobs: one job, or the jobs of several single workers on the same questions, which are asked in turns
            (`evaluate_by_host`).

    Raises:
        UsageError: questions that the planner cannot take.
        BudgetError: a spend limit refused a call.
    """
    async with (
        ComparisonInputs.open(jobs[0].table, shared.open_inputs, shared.tasks) as inputs,
        AsyncExitStack() as teams,
    ):
        runs = [await teams.enter_async_context(_open_run(job, inputs, shared)) for job in jobs]
        if len(runs) == 1:
            await runs[0].run()
        else:
            evaluations = [run.evaluation_job(None, run.planner) for run in runs]
            await evaluate_by_host(evaluations, concurrency=jobs[0].settings.concurrency)


@asynccontextmanager
async def _open_run(
    job: SuiteJob, inputs: ComparisonInputs, shared: SuiteJobContext
) -> AsyncIterator[_JobRun]:
    training = TrainingAnswers.of(inputs, job, shared)
    learned = None if training is None else await training.planner()
    async with inputs.open_team(
        job.entry, job.settings, seed=job.seed, learned=learned, dispatcher=shared.dispatcher
    ) as team:
        tasks = list(inputs.tasks(job.seed))
        planner = team.planner
        if isinstance(planner, BatchPlanner):
            planner.prefetch([task.question.text for task in tasks])
        wrapped = CachingPlanner(planner) if job.control_keys else planner
        yield _JobRun(job, inputs, shared, team, tasks, wrapped, training)


@dataclass(frozen=True)
class _JobRun:
    """What the files of a job share."""

    job: SuiteJob
    inputs: ComparisonInputs
    shared: SuiteJobContext
    team: Team
    tasks: Sequence[Task]
    planner: Planner
    training: TrainingAnswers | None

    async def run(self) -> None:
        planner = self.planner
        if self.job.entry.best_of > 1:
            assert isinstance(planner, Conductor)
            planner = planner.at_temperature(1.0)
        evaluation = await self._evaluate(self.evaluation_job(None, planner))
        for control in self.job.control_keys:
            await self.evaluate_control(control, evaluation.cost_usd)

    async def evaluate_control(self, name: str, cost_usd: float) -> None:
        """Evaluate a control of the planner. `cost_usd` is the planner's cost of a question."""
        needs, training, replacement = PLAN_CONTROLS[name].needs, self.training, None
        best, samples = ("", 1) if training is None else training.best_within(cost_usd)
        async with AsyncExitStack() as opened:
            if "vote" in needs:
                assert training is not None
                replacement = await training.vote_within(cost_usd)
            elif "untrained" in needs and (before := untrained_of(self.job.entry)) is not None:
                other = self.inputs.open_team(
                    before, self.job.settings, seed=self.job.seed, dispatcher=self.team.runner.dispatcher
                )
                replacement = (await opened.enter_async_context(other)).planner
            context = ControlContext(
                self.inputs.pool.profiles,
                tools=frozenset(self.inputs.pool.tools),
                seed=str(self.job.seed),
                best_worker=best,
                plans=await self._plans() if "plans" in needs else (),
                samples=samples,
                replacement=replacement,
            )
            await self._evaluate(self.evaluation_job(name, with_control(name, self.planner, context)))

    async def _plans(self) -> list[Workflow]:
        plans, failed = [], ""
        # With fewer rounds a planner may plan otherwise.
        runner = replace(self._runner(self.planner), budget=Budget(rounds=self._rounds_of(self.planner)))
        for task in self.inputs.for_training(_PLANS).tasks(0):
            try:
                plan = await runner.write_plan(task.question, seed=f"most-frequent/{task.id}")
            except WorkerError as error:
                if error.kind == "budget":
                    raise BudgetError(str(error)) from None
                failed = f" The model did not answer: {error}"  # This is one of many plans, and the others are counted.
                continue
            if isinstance(plan.decision, Workflow):
                plans.append(plan.decision)
        if not plans:
            raise UsageError(
                f"The control most-frequent-plan of {self.job.entry.row} has no plan to repeat, since none could be "
                f"read; leave the control out.{failed}"
            )
        return plans

    async def _evaluate(self, evaluation: EvaluationJob) -> Evaluation:
        (evaluated,) = await evaluate_together([evaluation], concurrency=self.job.settings.concurrency)
        return evaluated

    def evaluation_job(self, control: str | None, planner: Planner) -> EvaluationJob:
        """The evaluation that adds all missing answers of a control, or of the planner itself if it is None."""
        return EvaluationJob(
            self._runner(planner),
            self.tasks,
            pool_for=self._own_pool_of if control is None else self._pool_of,
            repeats=self.job.settings.repeats * self.job.entry.best_of,
            seed=str(self.job.seed),
            kept=self.shared.results.answers(self._key(control)),
            on_rollout=partial(self._add, control),
        )

    def _runner(self, planner: Planner) -> Runner:
        budget = self.job.settings.budget.model_copy(update={"rounds": self._rounds_of(planner)})
        return replace(self.team.runner, planner=planner, budget=budget)

    def _rounds_of(self, planner: Planner) -> int:
        """The most plans of a planner for a question."""
        return self.job.entry.rounds or max(
            self.job.settings.budget.rounds, planner.rounds, self.team.opened_planner.plan_limits.rounds
        )

    def _pool_of(self, task: Task) -> Pool:
        return self.inputs.pool_of(task, self._indices[task.id])

    def _own_pool_of(self, task: Task) -> Pool:
        """The pool of the planner's own row."""
        pool, alone = self._pool_of(task), self.job.worker
        return pool if alone is None else without_fallback(pool, alone)

    @cached_property
    def _indices(self) -> Mapping[str, int]:
        return {task.id: index for index, task in enumerate(self.tasks)}

    def _key(self, control: str | None) -> str:
        return self.job.key if control is None else self.job.control_keys[control]

    def _add(self, control: str | None, rollout: Rollout) -> None:
        label = self.job.entry.row if control is None else f"{self.job.entry.row}: {control}"
        self.shared.results.add(self._key(control), label, rollout)
