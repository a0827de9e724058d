"""Says what a study will cost and how long it will take, before it pays for anything.

The figures are estimates: four characters a token, and answers of an assumed length. The limit is kept exactly: the
spend limit of the study's folder refuses each call that could exceed the budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from podium.evals.study.decision import FEWEST
from podium.evals.study.questions import StudyQuestions
from podium.executor.estimate import SPREAD, Range, estimate_answer
from podium.tasks import Task
from podium.types import Price, Usage
from podium.workers.base import Worker
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker
from podium.workers.traits import real_workers, traits_of

REPEATED = 0.2
"""The share of the questions that every worker answers twice, so that luck can be told from skill."""
_SAMPLED = 50
"""Most questions whose length is looked at."""
_PLAN_TOKENS = 2000, 700
"""Assumed input and output tokens of a Conductor's plan."""
_PLAN_STEPS = 3
"""Assumed steps of such a plan. Each reads earlier responses, and so costs half as much again."""
CONDUCTOR_SHARE = 0.3
"""The most of the budget that the Conductors take; the rest is for the answers of the workers."""


@dataclass(frozen=True)
class StudyCost:
    """What a study is expected to call and to pay."""

    questions: int
    """Questions that there are."""
    reached: int
    """Questions that the budget is likely to reach."""
    calls: int
    """Calls for the reached questions, repeats and judging included, Conductors left out."""
    low_usd: float
    likely_usd: float
    high_usd: float
    conductor_questions: int
    """Questions that each Conductor gets; 0: it is left out."""
    conductors: int
    """How many Conductors are measured by really running them."""
    conductor_usd: float
    """Dollars of all Conductors together."""
    conductor_reason: str
    """Why Conductors are left out; empty: they are not."""
    seconds: float | None
    """How long it takes; None: some worker does not say how long its calls take."""
    paid: bool
    """Whether anything costs money: `workers_paid`, or a paid model conducts."""
    workers_paid: bool
    """Whether some worker is neither scripted nor recorded, and its price is not written as 0."""
    unpriced: tuple[str, ...] = ()
    """Real workers whose price the pool file does not say."""

    @property
    def total_usd(self) -> float:
        """The likely dollars of everything."""
        return self.likely_usd + self.conductor_usd


def forecast_cost(
    pool: Pool,
    questions: StudyQuestions,
    *,
    samples: int,
    judge: str | None,
    conductors: int,
    conductor_price: Price,
    no_conductor: str = "",
    budget_usd: float | None,
    concurrency: int,
    pays_for_plans: bool = False,
) -> StudyCost:
    """What a study of these questions would cost.

    Args:
        samples: answers of each worker to each question; with one, a fifth of the questions is repeated.
        conductors: how many Conductors would be run.
        no_conductor: why none can be run; empty: they can.
        pays_for_plans: whether the model that conducts costs money.
    """
    workers = [pool.named(name) for name in pool.answering]
    repeats = samples == 1 and most_samples(pool) > 1
    shown = questions.tasks[:_SAMPLED]
    guesses = {name: _mean_cost(pool, name, shown) for name in pool.answering}
    answers = samples + (REPEATED if repeats else 0.0)
    each = Range.sum(guesses.values()).times(answers)
    judged = len(questions.judges) / max(1, len(questions.tasks)) if judge is not None else 0.0
    if judge is not None:
        judging = judged * answers * len(workers) * guesses[judge].likely
        each = Range.sum((each, Range(judging / SPREAD, judging, judging * SPREAD)))
    step_usd = fmean(guess.likely for guess in guesses.values())
    plan_usd = conductor_price.cost(Usage(input_tokens=_PLAN_TOKENS[0], output_tokens=_PLAN_TOKENS[1]))
    conducted_usd = conductors * (plan_usd + _PLAN_STEPS * 1.5 * step_usd)
    count, reason = 0, no_conductor
    if not no_conductor:
        count, reason = _conductor_questions(len(questions.tasks), conducted_usd, budget_usd, each.likely)
    left = None if budget_usd is None else budget_usd - count * conducted_usd
    reached = len(questions.tasks)
    if left is not None and each.likely > 0:
        reached = min(reached, int(left / each.likely))
    calls = round(reached * answers * len(workers) * (1 + judged))
    plan_calls = count * conductors * (1 + _PLAN_STEPS)
    seconds = _seconds(workers, calls / len(workers), plan_calls, concurrency)
    real = [worker for worker in real_workers(pool) if not worker.profile.price.is_declared_free]
    pays_for_plans = pays_for_plans and not no_conductor and not conductor_price.is_declared_free
    return StudyCost(
        questions=len(questions.tasks),
        reached=reached,
        calls=calls,
        low_usd=reached * each.low,
        likely_usd=reached * each.likely,
        high_usd=reached * each.high,
        conductor_questions=count,
        conductors=conductors if count else 0,
        conductor_usd=count * conducted_usd,
        conductor_reason=reason,
        seconds=seconds,
        paid=bool(real) or pays_for_plans,
        workers_paid=bool(real),
        unpriced=tuple(worker.profile.name for worker in real if worker.profile.price == Price()),
    )


def _seconds(workers: Sequence[Worker], each: float, plan_calls: float, concurrency: int) -> float | None:
    """Seconds of `each` calls to every worker, and of the calls of plans; None: they cannot be known.

    A worker takes at least as long as its own limit of calls at once lets it.
    """
    latencies = [0.0 if traits_of(one).cost == "nothing" else one.profile.latency_s for one in workers]
    known = [latency for latency in latencies if latency is not None]
    if len(known) < len(latencies):
        return None
    slowest = max(each * s / one.limits.concurrency for s, one in zip(known, workers, strict=True))
    return max(slowest, (each + plan_calls / len(known)) * sum(known) / concurrency)


def most_samples(pool: Pool) -> float:
    """How many different answers every worker can give to one question: a recorded one, as many as were recorded."""
    return min((worker.samples for worker in pool if isinstance(worker, ReplayWorker)), default=math.inf)


def _conductor_questions(
    questions: int, each_usd: float, budget_usd: float | None, answer_usd: float
) -> tuple[int, str]:
    """How many questions each Conductor gets, and why it gets none."""
    if budget_usd is None or each_usd == 0:
        return questions, ""
    count = min(questions, int(CONDUCTOR_SHARE * budget_usd / each_usd))
    # No use in more questions than workers can answer with the rest.
    if answer_usd > 0:
        count = min(count, int((budget_usd - count * each_usd) / answer_usd))
    if count < FEWEST:
        return 0, (
            f"The Conductor is left out: {CONDUCTOR_SHARE:.0%} of the budget would pay for its plans on {count} "
            f"questions, and fewer than {FEWEST} say little. About ${FEWEST * each_usd / CONDUCTOR_SHARE:,.2f} would "
            "include it."
        )
    return count, ""


def _mean_cost(pool: Pool, worker: str, tasks: Sequence[Task]) -> Range:
    """Dollars of one answer, in the mean over the tasks."""
    number = pool.names.index(worker)
    costs = [estimate_answer(pool, number, task.question).dollars for task in tasks]
    return Range.sum(costs).times(1 / len(costs))
