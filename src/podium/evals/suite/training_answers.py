"""The answers of each worker alone to training questions, from which the planners of a suite make their choices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from podium.calls import CallState
from podium.errors import UsageError
from podium.evals.answer_files import AnswerFiles, answer_matrix
from podium.evals.plan_selection import COST_TOLERANCE, PLANNER_SELECTIONS, best_fixed_plan, voter_prices
from podium.evals.rating import measurable_workers, read_answers
from podium.evals.suite.comparison_inputs import ComparisonInputs, OpenTasks
from podium.evals.suite.manifest import SuiteJob
from podium.evals.suite.plan_controls import MAX_SAMPLES
from podium.planners import Single, open_baseline
from podium.planners.answer_matrix import AnswerMatrix
from podium.planners.planner import Planner


@dataclass(frozen=True, slots=True)
class SuiteJobContext:
    """What the jobs of one process share, and what they read and compute once."""

    results: AnswerFiles
    call_state: CallState | None = None
    """The response cache and the spend limits. None if nothing costs money."""
    open_inputs: ComparisonInputs | None = None
    """The only table of the suite, if the caller has opened its workers."""
    training: dict[tuple[str, ...], tuple[AnswerMatrix, AnswerMatrix]] = field(default_factory=dict)
    """The fields `first` and `answers` of `TrainingAnswers`, by the keys of the files that have them."""
    tasks: OpenTasks = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingAnswers:
    """The answers that a job's planner and controls can learn from."""

    inputs: ComparisonInputs
    job: SuiteJob
    first: AnswerMatrix
    """The first answer of each worker to each training question to which all answers have a verdict."""
    answers: AnswerMatrix
    """The answers from which votes are chosen: all samples of recorded workers, or else the first answers."""

    @classmethod
    async def read(
        cls, inputs: ComparisonInputs, job: SuiteJob, context: SuiteJobContext
    ) -> TrainingAnswers | None:
        """Read the workers' answers. None if no planner learns on this table.

        Raises:
            UsageError: no training question has a verdict on each worker's answer.
        """
        if not job.training:
            return None
        keys = tuple(job.training.values())
        if keys not in context.training:
            first = _first_answers(inputs, job, context.results)
            workers = [worker for worker in inputs.pool if worker.profile.name in first.workers]
            tasks = list(inputs.for_training(job.settings.training).tasks(0))
            replayed = measurable_workers(workers, tasks)
            answers = await read_answers(tasks, replayed) if replayed == workers else first
            context.training[keys] = first, answers
        return cls(inputs, job, *context.training[keys])

    def planner(self) -> Planner | None:
        """The job's planner, if it makes its choices on training questions.

        Raises:
            UsageError: there is nothing to choose from.
        """
        entry = self.job.entry
        if entry.planner in PLANNER_SELECTIONS:
            planner = PLANNER_SELECTIONS[entry.planner].choose(self.answers)
            if planner is None:
                raise UsageError(f"{entry.row} needs more workers than {self.inputs.table.pool.name} has.")
            return planner
        if entry.uses_conductor:
            return None
        profiles = self.inputs.pool.profiles
        return open_baseline(entry.planner, profiles, seed=str(self.job.seed), scored=self._priced())

    def vote_within(self, cost_usd: float) -> Planner:
        """The best vote that costs at most `cost_usd` per question. If there is none, the cheapest worker alone."""
        vote = best_fixed_plan(self.answers, max_cost=cost_usd)
        return vote or Single(self.answers.workers[int(self.answers.cost.argmin())])

    def best_within(self, cost_usd: float) -> tuple[str, int]:
        """The most accurate worker, and how many of its answers `cost_usd` buys per question, at least one and at
        most `MAX_SAMPLES`."""
        best = int(self.first.accuracy.argmax())
        single_usd = float(self.first.cost[best])
        paid_for = MAX_SAMPLES if single_usd <= 0 else int(cost_usd / single_usd * COST_TOLERANCE)
        return self.first.workers[best], max(1, min(MAX_SAMPLES, paid_for))

    def _priced(self) -> AnswerMatrix:
        """The answers that planners learn from, with votes priced by this job's workers."""
        answers, early_stop = self.answers, self.job.settings.early_stop

        def priced() -> AnswerMatrix:
            indices = [self.inputs.pool.names.index(worker) for worker in answers.workers]
            profiles_Q = map(self.inputs.pool.profiles_for, answers.texts)
            prices = voter_prices([[profiles[index] for index in indices] for profiles in profiles_Q])
            return replace(answers, early_stop=early_stop, price_of=prices)

        return answers.cached(("priced", early_stop), priced)


def _first_answers(inputs: ComparisonInputs, job: SuiteJob, results: AnswerFiles) -> AnswerMatrix:
    left_out = results.without_verdict(job.training.values())
    judged = {
        worker: [(answer,) for (task, _), answer in results.answers(key).items() if task not in left_out]
        for worker, key in job.training.items()
    }
    if not any(judged.values()):
        raise UsageError(
            f"{inputs.table.label} has no training question to which the grader could judge all workers' answers; "
            "give the same command again to have them graded again."
        )
    return answer_matrix(judged)
