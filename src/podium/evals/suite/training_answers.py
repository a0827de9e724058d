"""The answers of each worker alone to training questions, from which the planners of a suite make their choices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from podium.calls import Dispatcher
from podium.errors import UsageError
from podium.evals.answer_files import AnswerFiles, answer_matrix
from podium.evals.plan_selection import COST_TOLERANCE, PLANNER_SELECTIONS, best_fixed_plan, voter_prices
from podium.evals.rating import measurable_workers, read_answers
from podium.evals.suite.comparison_inputs import ComparisonInputs, OpenTasks
from podium.evals.suite.manifest import SuiteJob, TableSettings
from podium.evals.suite.plan_controls import MAX_SAMPLES
from podium.planner import Planner
from podium.planners import Single, open_baseline
from podium.planners.answers import AnswerMatrix


@dataclass(frozen=True, slots=True)
class SuiteJobContext:
    """What the jobs of one process share, and what they read and compute once."""

    results: AnswerFiles
    dispatcher: Dispatcher | None = None
    """The response cache and the spend limits. None if nothing costs money."""
    open_inputs: ComparisonInputs | None = None
    """The only table of the suite, if the caller has opened its workers."""
    training_answers: dict[TableSettings, AnswerMatrix] = field(default_factory=dict)
    """The answers to the training questions of each table."""
    tasks: OpenTasks = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingAnswers:
    """The answers that a job's planner and controls can learn from."""

    inputs: ComparisonInputs
    job: SuiteJob
    asked: int
    measured: AnswerMatrix
    """The first answer of each worker to each training question to which all answers have a verdict."""
    shared: SuiteJobContext

    @classmethod
    def of(cls, inputs: ComparisonInputs, job: SuiteJob, shared: SuiteJobContext) -> TrainingAnswers | None:
        """Read the workers' answers. None if no planner learns on this table.

        Raises:
            UsageError: no training question has a verdict on each worker's answer.
        """
        if not job.training:
            return None
        left_out = shared.results.without_verdict(job.training.values())
        answers_of = {worker: shared.results.answers(key).items() for worker, key in job.training.items()}
        judged = {
            worker: [(answer,) for (task, _), answer in answers if task not in left_out]
            for worker, answers in answers_of.items()
        }
        asked = max(map(len, answers_of.values()))
        if asked == len(left_out):
            raise UsageError(
                f"{inputs.table.label} has no training question to which the grader could judge all workers' answers; "
                "give the same command again to have them graded again."
            )
        return cls(inputs, job, asked, answer_matrix(judged), shared)

    async def planner(self) -> Planner | None:
        """The job's planner, if it makes its choices on training questions.

        Raises:
            UsageError: there is nothing to choose from.
        """
        entry = self.job.entry
        if entry.planner in PLANNER_SELECTIONS:
            planner = PLANNER_SELECTIONS[entry.planner].choose(await self._answers())
            if planner is None:
                raise UsageError(f"{entry.row} needs more workers than {self.inputs.table.pool.name} has.")
            return planner
        if entry.uses_conductor:
            return None
        profiles = self.inputs.pool.profiles
        return open_baseline(entry.planner, profiles, seed=str(self.job.seed), scored=await self._scored())

    async def vote_within(self, cost_usd: float) -> Planner:
        """The best vote that costs at most `cost_usd` per question. If there is none, the cheapest worker alone."""
        answers = await self._answers()
        vote = best_fixed_plan(answers, max_cost=cost_usd)
        return vote or Single(answers.workers[int(answers.cost.argmin())])

    def best_within(self, cost_usd: float) -> tuple[str, int]:
        """The most accurate worker, and how many of its answers `cost_usd` buys per question, at least one and at
        most `MAX_SAMPLES`."""
        best = int(self.measured.accuracy.argmax())
        single_usd = float(self.measured.cost[best])
        paid_for = MAX_SAMPLES if single_usd <= 0 else int(cost_usd / single_usd * COST_TOLERANCE)
        return self.measured.workers[best], max(1, min(MAX_SAMPLES, paid_for))

    async def _answers(self) -> AnswerMatrix:
        """The answers from which votes are chosen: all samples of recorded workers, or else the first answers."""
        inputs, answers = self.inputs.for_training(self.asked), self.shared.training_answers
        if inputs.table not in answers:
            workers = [worker for worker in inputs.pool if worker.profile.name in self.measured.workers]
            tasks = list(inputs.tasks(0))
            replayed = measurable_workers(workers, tasks)
            answers[inputs.table] = (
                await read_answers(tasks, replayed) if replayed == workers else self.measured
            )
        return answers[inputs.table]

    async def _scored(self) -> AnswerMatrix:
        """The answers that planners learn from, with votes priced by this job's workers."""
        answers, early_stop = await self._answers(), self.job.settings.early_stop

        def priced() -> AnswerMatrix:
            indices = [self.inputs.pool.names.index(worker) for worker in answers.workers]
            profiles_Q = map(self.inputs.pool.profiles_for, answers.texts)
            prices = voter_prices([[profiles[index] for index in indices] for profiles in profiles_Q])
            return replace(answers, early_stop=early_stop, price_of=prices)

        return answers.cached(("priced", early_stop), priced)
