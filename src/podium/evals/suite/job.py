"""Runs a job: a planner and its controls answer the questions of one table and seed, and each answer is graded.

The controls use the plans that the planner wrote, so a plan is written and paid for once.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial

from podium.conductor.conductor import Conductor
from podium.errors import UsageError, WorkerError
from podium.evals.evaluation import EvaluationJob, evaluate_together, evaluation_runner
from podium.evals.suite.comparison_inputs import ComparisonInputs, untrained_of
from podium.evals.suite.manifest import SuiteJob
from podium.evals.suite.plan_controls import PLAN_CONTROLS, ControlContext, with_control
from podium.evals.suite.training_answers import SuiteJobContext, TrainingAnswers
from podium.planners.planner import BatchPlanner, Planner, PlannerWrapper, PlanRequest
from podium.tasks.task import Task
from podium.team.team import Team
from podium.trace import Plan
from podium.types import Budget
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


async def run_jobs(jobs: Sequence[SuiteJob], context: SuiteJobContext) -> None:
    """Make and grade the answers that are not kept yet. The same jobs give the same lines, except for times and ids.

    Args:
        jobs: one job, or the jobs of several single workers on the same questions, which are asked in turns
            (`evaluate_together`).

    Raises:
        UsageError: questions that the planner cannot take.
        BudgetExceededError: a spend limit refused a call.
    """
    concurrency = jobs[0].settings.concurrency
    async with (
        ComparisonInputs.open(jobs[0].table, context.open_inputs, context.tasks) as inputs,
        AsyncExitStack() as teams,
    ):
        runs = [await _JobRun.open(job, inputs, context, teams) for job in jobs]
        rows = [run.evaluation_job(None, run.planner) for run in runs]
        evaluations = await evaluate_together(rows, concurrency=concurrency)
        for run, evaluation in zip(runs, evaluations, strict=True):
            for control in run.job.control_keys:
                planner = await run.open_control(control, evaluation.cost_usd)
                row = run.evaluation_job(control, planner)
                await evaluate_together([row], concurrency=concurrency)


@dataclass(frozen=True)
class _JobRun:
    """What the files of a job share."""

    job: SuiteJob
    inputs: ComparisonInputs
    context: SuiteJobContext
    teams: AsyncExitStack
    """Closes the teams that are opened."""
    team: Team
    tasks: Sequence[Task]
    planner: Planner
    training: TrainingAnswers | None

    @classmethod
    async def open(
        cls, job: SuiteJob, inputs: ComparisonInputs, context: SuiteJobContext, teams: AsyncExitStack
    ) -> _JobRun:
        training = await TrainingAnswers.read(inputs, job, context)
        learned = None if training is None else training.planner()
        team = inputs.open_team(
            job.entry, job.settings, seed=job.seed, learned=learned, call_state=context.call_state
        )
        teams.push_async_callback(team.release)
        tasks, planner = list(inputs.tasks(job.seed)), team.planner
        if isinstance(planner, BatchPlanner):
            planner.prefetch([task.question.text for task in tasks])
        if job.entry.best_of > 1:
            assert isinstance(planner, Conductor)
            planner = planner.at_temperature(1.0)
        planner = CachingPlanner(planner) if job.control_keys else planner
        return cls(job, inputs, context, teams, team, tasks, planner, training)

    def evaluation_job(self, control: str | None, planner: Planner) -> EvaluationJob:
        """The evaluation that adds all missing answers of a control, or of the planner itself if it is None."""
        job, results = self.job, self.context.results
        key = job.key if control is None else job.control_keys[control]
        label = job.entry.row if control is None else f"{job.entry.row}: {control}"
        return EvaluationJob(
            evaluation_runner(self.team, job.settings.budget, planner, job.entry.rounds),
            self.tasks,
            pool_for=self.inputs.pool_of(self.tasks),
            alone=job.worker if control is None else None,
            repeats=job.settings.repeats * job.entry.best_of,
            seed=str(job.seed),
            kept=results.answers(key),
            on_rollout=partial(results.add, key, label),
        )

    async def open_control(self, name: str, cost_usd: float) -> Planner:
        """A control of the planner. `cost_usd` is the planner's cost of a question."""
        needs, training, replacement = PLAN_CONTROLS[name].needs, self.training, None
        best, samples = ("", 1) if training is None else training.best_within(cost_usd)
        if "vote" in needs:
            assert training is not None
            replacement = training.vote_within(cost_usd)
        elif "untrained" in needs and (before := untrained_of(self.job.entry)) is not None:
            team = self.inputs.open_team(
                before, self.job.settings, seed=self.job.seed, call_state=self.team.runner.call_state
            )
            self.teams.push_async_callback(team.release)
            replacement = team.planner
        context = ControlContext(
            self.inputs.pool.profiles,
            tools=frozenset(self.inputs.pool.tools),
            seed=str(self.job.seed),
            best_worker=best,
            plans=await self._plans() if "plans" in needs else (),
            samples=samples,
            replacement=replacement,
        )
        return with_control(name, self.planner, context)

    async def _plans(self) -> list[Workflow]:
        plans, failed = [], ""
        # With fewer rounds a planner may plan otherwise.
        budget = Budget(rounds=self.job.settings.budget.rounds)
        runner = evaluation_runner(self.team, budget, self.planner, self.job.entry.rounds)
        for task in self.inputs.for_training(_PLANS).tasks(0):
            try:
                plan = await runner.write_plan(task.question, seed=f"most-frequent/{task.id}")
            except WorkerError as error:
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
