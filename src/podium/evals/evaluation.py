"""An evaluation: the rollouts of one planner over a set of tasks, and the figures computed from them.

This module runs the rollouts and counts. `stats` computes intervals, and `comparison` compares planners.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count, zip_longest

from podium.calls.rate_limiter import model_key
from podium.errors import UsageError, flatten_group
from podium.evals.stats import Interval, accuracy_interval
from podium.planners import Single
from podium.planners.planner import OnlinePlanner, Planner
from podium.recordings import names_conditioned
from podium.rollout import Rollout
from podium.rollout.rollout import RolloutJob, run_rollouts
from podium.tasks.task import Task
from podium.team import Runner
from podium.team.team import Team
from podium.trace import Span, Trace
from podium.types import Budget
from podium.workers.pool import Pool
from podium.workers.view import requests_whole_question

OnProgress = Callable[[int, int], None]
"""A function that is called after each rollout with (rollouts done, all rollouts)."""


@dataclass(frozen=True)
class Evaluation:
    """One planner on many questions. In every mean each question has the same weight, however often it was repeated.
    Shares of plans and numbers of answers count each rollout."""

    rollouts: tuple[Rollout, ...]

    @property
    def planner(self) -> str:
        return self.rollouts[0].trace.planner

    @cached_property
    def pool(self) -> tuple[str, ...]:
        """Names of the workers that were available for at least one question."""
        return tuple(dict.fromkeys(worker.name for r in self.rollouts for worker in r.trace.pool))

    @property
    def seed(self) -> str:
        return ", ".join(dict.fromkeys(map(seed_of, self.rollouts)))

    @cached_property
    def by_question(self) -> Mapping[str, tuple[Rollout, ...]]:
        """The rollouts of each question, in the order of the tasks."""
        grouped: dict[str, list[Rollout]] = {}
        for rollout in self.rollouts:
            grouped.setdefault(rollout.task, []).append(rollout)
        return {task_id: tuple(rollouts) for task_id, rollouts in grouped.items()}

    def scores(self, of: Callable[[Rollout], float]) -> list[float]:
        """The mean of a figure for each question."""
        return [sum(map(of, rollouts)) / len(rollouts) for rollouts in self.by_question.values()]

    def mean(self, of: Callable[[Rollout], float]) -> float:
        """The mean of a figure over all questions."""
        scores = self.scores(of)
        return sum(scores) / len(scores)

    @cached_property
    def right(self) -> Mapping[str, float]:
        """Share of right answers to each question. Answers that the grader could not judge are left out."""
        shares = {task_id: accuracy(rollouts) for task_id, rollouts in self.by_question.items()}
        return {task_id: share for task_id, share in shares.items() if share is not None}

    @cached_property
    def accuracy(self) -> Interval:
        """Share of correct answers. Answers count as a user would get them, even if workers failed.

        Raises:
            UsageError: the grader failed on all answers.
        """
        if not self.right:
            failure = next(rollout.grade.failure for rollout in self.rollouts)
            raise UsageError(f"No answer could be graded: {failure}")
        return accuracy_interval(list(self.right.values()), rollouts=len(self.rollouts) - self.ungraded)

    @property
    def ungraded(self) -> int:
        """Answers that the grader could not judge. Accuracy leaves them out."""
        return sum(rollout.grade.failure is not None for rollout in self.rollouts)

    @property
    def grading_usd(self) -> float:
        """Dollars that grading all answers took. They are not part of `cost_usd`."""
        return sum(rollout.grade.cost_usd for rollout in self.rollouts)

    @cached_property
    def cost_usd(self) -> float:
        """Dollars of a question, including the planner's own cost. A cached answer counts with its original cost."""
        return self.mean(lambda r: r.trace.uncached_usd)

    @cached_property
    def saved_usd(self) -> float:
        """The part of `cost_usd` that was not paid again, because the answers were in a response cache."""
        return self.mean(lambda r: r.trace.uncached_usd - r.trace.cost_usd)

    @cached_property
    def steps(self) -> float:
        """Planned steps of a question. Steps that the answer does not need are left out."""
        return self.mean(lambda r: r.steps)

    @cached_property
    def calls(self) -> float:
        return self.mean(lambda r: r.trace.calls)

    @cached_property
    def tokens(self) -> float:
        """Input and output tokens of a question, of workers and planner."""
        return self.mean(lambda r: r.trace.usage.tokens)

    @cached_property
    def latency_s(self) -> float:
        """Seconds of a question along the critical path, without planning."""
        return self.mean(lambda r: r.trace.critical_path_s)

    @cached_property
    def validity(self) -> float:
        """Share of rollouts whose first plan could be parsed and passed the checks."""
        return sum(rollout.valid for rollout in self.rollouts) / len(self.rollouts)

    @cached_property
    def failures(self) -> int:
        """Rollouts in which a worker failed a step that the answer needed."""
        return sum(rollout.worker_failed for rollout in self.rollouts)

    @property
    def recorded(self) -> bool:
        """Whether any response was recorded."""
        return any(span.recorded is not None for span in self.spans)

    @cached_property
    def beyond_recording(self) -> float:
        """Share of recorded responses in places where the real model might have answered something else."""
        responses = [beyond for rollout in self.rollouts for beyond in _beyond_recording(rollout.trace)]
        return sum(responses) / len(responses) if responses else 0.0

    @property
    def unrecorded(self) -> Sequence[int]:
        """For each rollout, how many of its steps failed because the recording has no response to what they show."""
        return [_unrecorded(rollout.trace) for rollout in self.rollouts]

    @property
    def spans(self) -> Iterator[Span]:
        return (span for rollout in self.rollouts for span in rollout.trace.spans)


def _beyond_recording(trace: Trace) -> Iterator[bool]:
    """For each recorded response, whether its step goes beyond the recording.

    A recorded response was given to the bare question. If a step rewrites the subtask, or shows the model others' work,
    the live model would have given another response, but the replayed response is the same. A conditioned response was
    given to exactly what its step shows.
    """
    for number, round_ in enumerate(trace.rounds):
        for span in round_.spans:
            if round_.workflow is None or (span.recorded is None and span.nested is None):
                continue
            access = round_.workflow.steps[span.position].access
            shows_others = bool(span.reads) or (number > 0 and access.sees_previous)
            beyond = shows_others or not requests_whole_question(span.subtask, trace.question.text)
            if span.recorded is not None and names_conditioned(span.recorded):
                yield False
            elif span.recorded is not None:
                yield beyond
            if span.nested is not None:
                yield from (beyond or inner for inner in _beyond_recording(span.nested))


def _unrecorded(trace: Trace) -> int:
    nested = sum(_unrecorded(span.nested) for span in trace.spans if span.nested is not None)
    kinds = (
        span.attempts[-1].error_kind for span in trace.spans if span.status == "failed" and span.attempts
    )
    return nested + sum(kind == "unrecorded" for kind in kinds)


def rollout_seed(seed: str, task_id: str, sample: int) -> str:
    """The seed of one rollout of an evaluation, by the evaluation's seed."""
    return f"evaluation/{seed}/{task_id}/{sample}"


def seed_of(rollout: Rollout) -> str:
    """The seed of the evaluation, which `rollout_seed` writes second."""
    return rollout.trace.seed.split("/")[1]


def is_missing(kept: Rollout | None, *, judged: bool = True) -> bool:
    """Whether a question has yet to be answered, or its kept answer to be graded again.

    Args:
        judged: whether each answer can have a verdict. If not, a failed grader leaves nothing to do.
    """
    return kept is None or (judged and kept.grade.failure is not None)


def evaluation_runner(
    team: Team, budget: Budget, planner: Planner | None = None, rounds: int | None = None
) -> Runner:
    """The runner in which a planner (default: the team's) answers the questions of an evaluation, each within `budget`.
    Unless `rounds` says otherwise, it has as many rounds as its method and its training need, if the budget has fewer.
    """
    planner = planner or team.planner
    needed = max(budget.rounds, planner.rounds, team.opened_planner.plan_limits.rounds)
    limits = budget.model_copy(update={"rounds": rounds or needed})
    return replace(team.runner, planner=planner, budget=limits)


@dataclass(eq=False)
class EvaluationJob:
    """A planner, the questions that it answers, and its rollouts so far."""

    runner: Runner
    tasks: Sequence[Task]
    pool_for: Callable[[Task], Pool] | None = None
    """Returns the pool of each question. Default: the runner's pool answers all questions."""
    alone: str | None = None
    """The worker that answers alone. Its fallback, whose answer would not be its own, then answers nothing. None for
    another planner."""
    repeats: int = 1
    seed: str = "0"
    kept: Mapping[tuple[str, int], Rollout] = field(default_factory=dict)
    """Rollouts that were made before, by task id and sample. They are not made again."""
    judged: bool = True
    """As in `is_missing`."""
    on_rollout: Callable[[Rollout], None] | None = None

    def __post_init__(self) -> None:
        if not self.tasks:
            raise UsageError("There are no tasks to evaluate on: give at least one.")
        self.rollouts: dict[tuple[str, int], Rollout | None] = {}
        """The rollouts by task id and sample. A rollout that is still missing, or has no verdict yet, is None."""
        for slot in ((task.id, sample) for sample in range(self.repeats) for task in self.tasks):
            kept = self.kept.get(slot)
            self.rollouts[slot] = None if is_missing(kept, judged=self.judged) else kept

    @cached_property
    def learner(self) -> OnlinePlanner | None:
        return self.runner.planner if isinstance(self.runner.planner, OnlinePlanner) else None

    @cached_property
    def _runners(self) -> Mapping[str, Runner]:
        return {task.id: replace(self.runner, pool=self._pool_of(task)) for task in self.tasks}

    def _pool_of(self, task: Task) -> Pool:
        pool = self.runner.pool if self.pool_for is None else self.pool_for(task)
        if self.alone is None or pool.named(self.alone).fallback is None:
            return pool
        return pool.subset([pool.names.index(self.alone)])

    def missing(self) -> Iterator[RolloutJob | None]:
        """The rollouts to make or to grade, in order. None stands for a rollout that is kept."""
        samples = range(self.repeats)
        by_sample = ((task, sample) for sample in samples for task in self.tasks)
        by_question = ((task, sample) for task in self.tasks for sample in samples)
        for index, (task, sample) in enumerate(by_sample if self.learner else by_question):
            if self.learner and index % len(self.tasks) == 0:  # The next sample of the questions begins.
                self.learner.forget()
            rollout = self.rollouts[task.id, sample]
            if rollout is not None:
                _teach(self.learner, rollout)
                yield None
                continue
            seed = rollout_seed(self.seed, task.id, sample)
            ungraded = self.kept.get((task.id, sample))
            yield RolloutJob(self._runners[task.id], task, seed, sample, self._finish, ungraded)

    def _finish(self, rollout: Rollout) -> None:
        slot = rollout.task, rollout.sample
        self.rollouts[slot] = rollout
        _teach(self.learner, rollout)
        if self.on_rollout and rollout != self.kept.get(slot):
            self.on_rollout(rollout)

    @property
    def evaluation(self) -> Evaluation:
        return Evaluation(tuple(rollout for rollout in self.rollouts.values() if rollout is not None))


async def evaluate(
    runner: Runner,
    tasks: Sequence[Task],
    *,
    pool_for: Callable[[Task], Pool] | None = None,
    repeats: int = 1,
    concurrency: int = 16,
    seed: str = "0",
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """Have `runner` answer every task `repeats` times, at most `concurrency` at once, and grade the answers.

    `pool_for` returns the pool of each question. Default: the runner's pool answers all questions. Evaluations over the
    same workers may share the runner's call state.

    The same arguments give the same rollouts in the same order. Two planners with one seed get the same random numbers
    for the same calls, which narrows the interval of their difference.

    A planner that learns answers one question after the other, and learns each grade before the next question. It
    forgets everything before the next sample of the questions.

    Raises:
        UsageError: no tasks, or questions that the planner cannot take.
        BudgetExceededError: a spend limit refused a call. The same evaluation can be made again.
    """
    done = count(1)

    def on_rollout(rollout: Rollout) -> None:
        if on_progress:
            on_progress(next(done), len(tasks) * repeats)

    job = EvaluationJob(runner, tasks, pool_for, repeats=repeats, seed=seed, on_rollout=on_rollout)
    (evaluation,) = await evaluate_together([job], concurrency=concurrency)
    return evaluation


async def evaluate_together(jobs: Sequence[EvaluationJob], *, concurrency: int) -> tuple[Evaluation, ...]:
    """Evaluate several planners question by question, as `evaluate` evaluates each. If a spend limit ends the
    evaluation, all planners have answered the same questions.

    But if there is no budget, workers alone whose models share a machine are asked one model after the other, so that
    the machine need not load them again.

    Raises:
        UsageError, BudgetExceededError: see `evaluate`.
    """
    turns: defaultdict[int, list[EvaluationJob]] = defaultdict(list)
    models_of_host: defaultdict[str, list[str]] = defaultdict(list)
    for job in jobs:
        turn, planner = 0, job.runner.planner
        if isinstance(planner, Single) and not job.runner.call_state.has_budget:
            worker = job.runner.pool.named(planner.worker)
            if worker.limits.host is not None:
                models = models_of_host[worker.limits.host]
                if model_key(worker) not in models:
                    models.append(model_key(worker))
                turn = models.index(model_key(worker)) // worker.limits.loaded_at_once
        turns[turn].append(job)
    for turn in sorted(turns):
        await _evaluate_in_turns(turns[turn], concurrency)
    return tuple(job.evaluation for job in jobs)


async def _evaluate_in_turns(jobs: Sequence[EvaluationJob], concurrency: int) -> None:
    repeats = min(job.repeats for job in jobs)
    if repeats < 1 or concurrency < 1:
        raise UsageError(f"Repeats ({repeats}) and concurrency ({concurrency}) must be at least 1.")
    by_question = zip_longest(*(job.missing() for job in jobs))
    missing = (rollout for turn in by_question for rollout in turn if rollout is not None)
    learns = any(job.learner is not None for job in jobs)
    try:
        await run_rollouts(missing, concurrency=1 if learns else concurrency)
    except BaseExceptionGroup as errors:
        # Before Python 3.11.4, `except*` would wrap an error that is raised within it in a group again.
        usage_errors, _ = errors.split(UsageError)
        if usage_errors is None:
            raise
        raise next(flatten_group(usage_errors)) from None


def accuracy(rollouts: Iterable[Rollout]) -> float | None:
    """The share of right answers among those that the grader could judge. None if it could judge none."""
    judged = [rollout.correct for rollout in rollouts if rollout.grade.failure is None]
    return sum(judged) / len(judged) if judged else None


def _teach(learner: OnlinePlanner | None, rollout: Rollout) -> None:
    if learner is not None and rollout.grade.failure is None:
        learner.learn(rollout.trace, float(rollout.correct))
