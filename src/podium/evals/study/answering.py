"""Has each worker answer every question, within the budget, and reads the answers as arrays.

The answers are kept as a suite keeps its own, in a file for each worker. A study that was killed or ran out of money
goes on with the same command and asks nothing twice. Questions that some worker has not answered are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from podium.calls import Dispatcher
from podium.errors import BudgetError, UsageError
from podium.evals.evaluation import rollout_seed
from podium.evals.ratings.answers import Answers
from podium.evals.ratings.asking import AskingProgress, RunBudget
from podium.evals.study.judging import by_agreement
from podium.evals.study.questions import StudyQuestions
from podium.evals.study.spending import REPEATED, most_samples
from podium.evals.suite.results import (
    AnswerFiles,
    GradedAnswer,
    answer_arrays,
    answers_key,
    kept_gold,
    parse_answers,
)
from podium.rollout import Rollout
from podium.rollout.rollout import RolloutJob, roll_all
from podium.tasks import Task
from podium.team import Runner
from podium.types import Budget
from podium.workers.pool import Pool

_ENOUGH = 0.5
"""A worker that answered less than this share of what the busiest worker answered is left out of the
study."""

Kept = Mapping[tuple[str, int], GradedAnswer]
"""The answers of one worker, by task and repeat."""


@dataclass(frozen=True)
class StudyAnswers:
    """The answers of a study."""

    answers: Answers
    """The answers to questions that every worker answered; with one sample each, unless all have more."""
    repeated: Answers
    """The same, with second answers where there are any."""
    tasks: tuple[Task, ...]
    """These questions, in the same order."""
    notes: tuple[str, ...]


@dataclass(frozen=True)
class WorkerAnswers:
    """The answers of each worker alone, in a study's folder."""

    folder: Path
    pool: Pool
    questions: StudyQuestions

    async def ask(
        self,
        *,
        samples: int,
        reached: int,
        budget_usd: float | None,
        dispatcher: Dispatcher,
        concurrency: int,
        on_progress: Callable[[AskingProgress], None],
    ) -> AskingProgress:
        """Ask every worker every question, and a fifth of the questions twice if `samples` is 1.

        Args:
            reached: how many questions the budget is likely to reach; a fifth of these is repeated.
            budget_usd: the most dollars of this start; None: no limit but that of the dispatcher's spend limits.

        Raises:
            UsageError: no worker answered anything.
        """
        results, kept = AnswerFiles(self.folder), self._kept()
        twice = round(REPEATED * reached) if samples == 1 < most_samples(self.pool) else 0
        # The repeats come first, for the same questions: a budget that ends early then still has both.
        wanted = [
            (task, name, repeat)
            for place, task in enumerate(self.questions.tasks)
            for name in self.pool.answering
            for repeat in range(2 if place < twice else samples)
        ]
        missing = [one for one in wanted if self._is_missing(kept[one[1]].get((one[0].id, one[2])))]
        progress = AskingProgress(len(wanted), len(wanted) - len(missing))
        on_progress(progress)

        paid = dispatcher.run_limit
        before = 0.0 if paid is None else paid.spent_usd

        def answered(job: RolloutJob, rollout: Rollout) -> None:
            progress.worker = name = job.runner.pool.names[0]
            # A judge that is a worker of the pool is paid by the run alone.
            progress.usd = budget.spent_usd if paid is None else paid.spent_usd - before
            if rollout.trace.answer is None:
                progress.fail(name, rollout.trace)
            else:
                results.append(self._key(name), GradedAnswer.of(job.task, job.sample, rollout).line)
                progress.kept += 1
            on_progress(progress)

        with RunBudget(Budget(usd=budget_usd), dispatcher) as budget:
            runners = {name: Runner.alone(name, self.pool, budget.dispatcher) for name in self.pool.answering}
            jobs = (
                RolloutJob(runners[name], task, rollout_seed("study", task.id, repeat), repeat)
                for task, name, repeat in missing
            )
            try:
                await roll_all(jobs, concurrency=concurrency, on_rollout=answered)
            except BudgetError as error:
                progress.refusal = budget.dispatcher.refusal or str(error)
        if not progress.kept:
            reasons = [
                f"{name}: {error.removeprefix(f'{name}: ')}" for name, error in progress.errors.items()
            ]
            raise UsageError(
                f"No worker answered. {' '.join(reasons) or progress.refusal or 'There was nothing to ask.'}"
            )
        return progress

    def read(self) -> StudyAnswers:
        """Read what is kept.

        Raises:
            UsageError: fewer than two questions have an answer with a verdict from every worker.
        """
        by_others = self.questions.judged_by == "agreement"
        kept = self._kept()
        counts = {name: len({task for task, _ in answers}) for name, answers in kept.items()}
        enough = _ENOUGH * max(counts.values())
        notes = [
            f"{name} is left out of the study: it answered {count:,} questions."
            for name, count in counts.items()
            if count < enough
        ]
        given: dict[str, dict[str, list[GradedAnswer]]] = {
            name: {} for name, count in counts.items() if count >= enough
        }
        for name, by_task in given.items():
            for (task, _), answer in kept[name].items():
                if by_others or answer.grade.failure is None:
                    by_task.setdefault(task, []).append(answer)
        tasks = tuple(
            task for task in self.questions.tasks if all(task.id in by_task for by_task in given.values())
        )
        answered = {task for answers in kept.values() for task, _ in answers}
        if left_out := len(answered) - len(tasks):
            notes.append(
                f"{left_out:,} of {len(answered):,} questions are left out, since a worker did not answer them or an "
                "answer has no verdict."
            )
        if len(tasks) < 2:
            judging = ", and the judge has to end its replies with RIGHT or WRONG" * (
                self.questions.judged_by == "judge"
            )
            raise UsageError(
                f"Too few questions have an answer with a verdict from every worker ({len(tasks)}); give more "
                f"questions or a larger --run-budget-usd{judging}."
            )
        repeated = answer_arrays({name: [by_task[t.id] for t in tasks] for name, by_task in given.items()})
        answers = repeated
        if repeated.own_samples_QW is not None:  # Votes must not count a copy as a second answer.
            answers = answer_arrays(
                {name: [by_task[t.id][:1] for t in tasks] for name, by_task in given.items()}
            )
        if by_others:
            answers, repeated = by_agreement(answers), by_agreement(repeated)
        return StudyAnswers(answers, repeated, tasks, tuple(notes))

    def _kept(self) -> dict[str, Kept]:
        """The answers of each worker to the questions as they are now."""
        results, known = AnswerFiles(self.folder), {task.id: task for task in self.questions.tasks}
        return {
            name: {
                place: answer
                for place, answer in parse_answers(results.lines(key), key).items()
                if (task := known.get(answer.task)) is not None
                and (answer.trace.question, answer.gold) == (task.question, kept_gold(task))
            }
            for name in self.pool.answering
            for key in (self._key(name),)
        }

    def _is_missing(self, answer: GradedAnswer | None) -> bool:
        """Whether there is no answer, or none with a verdict where there can be one."""
        return answer is None or (
            answer.grade.failure is not None and self.questions.judged_by != "agreement"
        )

    def _key(self, name: str) -> str:
        return answers_key(name, self.pool.named(name).identity)

    @property
    def cost_usd(self) -> float:
        """Dollars of all kept answers, as if nothing had been cached."""
        return sum(answer.trace.uncached_usd for kept in self._kept().values() for answer in kept.values())
