"""Estimates what a study will cost and how long it will take, before it pays for anything.

The estimate assumes four characters per token, and a length of answers. The budget itself is exact: the spend limit of
the study's folder refuses each call that could exceed it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from podium.errors import UsageError
from podium.evals.study.decision import FEWEST
from podium.evals.study.study_inputs import StudyInputs
from podium.executor.plan_estimate import Range, StepEstimate, Workload, estimate_answer, estimate_plan
from podium.tasks import Task
from podium.team.opened_planner import first_model, open_planner
from podium.team.settings import PlannerChoice, TeamSettings
from podium.types import ANSWER_WHOLE_QUESTION, Price, Usage
from podium.workers.base import costly_workers
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker
from podium.workflow import Access, Step, Workflow

REPEATED = 0.2
"""The share of the questions that every worker answers twice, to distinguish luck from skill."""
_SAMPLED = 50
"""The most questions whose length is measured."""
_PLAN_TOKENS = 2000, 700
"""Assumed input and output tokens of a Conductor's plan."""
_PLAN_STEPS = 3
_CONDUCTORS = 2
"""How many Conductors are really run: one without ratings, and one with ratings."""
CONDUCTOR_SHARE = 0.3
"""The largest share of the budget for Conductors. The rest is for the workers' answers."""


@dataclass(frozen=True)
class StudyEstimate:
    """What a study would call and pay."""

    questions: int
    reached: int
    """How many questions the budget is likely to reach."""
    calls: int
    """Calls for the reached questions, with repeats and judging, without Conductors."""
    cost_usd: Range
    conductor_questions: int
    """How many questions each Conductor gets. If it is 0, Conductors are left out."""
    conductors: int
    """How many Conductors are measured by really running them."""
    conductor_usd: float
    """Dollars of all Conductors together."""
    conductor_reason: str
    """Why Conductors are left out. Empty if they are not left out."""
    seconds: float | None
    """Seconds of the study. None if the latency of some worker is unknown."""
    paid: bool
    """Whether anything costs money: `workers_paid`, or a paid model conducts."""
    workers_paid: bool
    """Whether some worker is neither scripted nor recorded, and its price is not written as 0."""
    unpriced: tuple[str, ...] = ()
    """Live workers whose price is not in the team file."""

    @property
    def total_usd(self) -> float:
        return self.cost_usd.likely + self.conductor_usd


def estimate_study(study: StudyInputs) -> StudyEstimate:
    """What a study would cost."""
    pool, questions, settings = study.pool, study.questions, study.settings
    budget_usd, judge = study.team.budget.run_usd, None if questions.judged_by == "golds" else settings.judge
    answering = _workload(study, pool.answering)
    twice = REPEATED if settings.repeats == 1 and most_samples(pool) > 1 else 0.0
    answers = (settings.repeats + twice) * len(pool.answering)
    question_usd = answering.cost_usd.times(answers)
    if judge is not None:
        question_usd = Range.sum((question_usd, _workload(study, [judge]).cost_usd.times(answers)))
    conductors = _estimate_conductors(study, question_usd.likely)
    reached = len(questions.tasks)
    if budget_usd is not None and question_usd.likely > 0:
        reached = min(reached, int((budget_usd - conductors.total_usd) / question_usd.likely))
    calls = reached * answers * (1 if judge is None else 2)
    # Each plan takes about as long as an answer.
    plans_s = conductors.questions * _CONDUCTORS * answering.total_s / settings.concurrency
    seconds = answering.seconds(calls, concurrency=settings.concurrency) + conductors.run_s + plans_s
    real = [worker for worker in costly_workers(pool) if not worker.profile.price.is_declared_free]
    return StudyEstimate(
        questions=len(questions.tasks),
        reached=reached,
        calls=round(calls),
        cost_usd=question_usd.times(reached),
        conductor_questions=conductors.questions,
        conductors=_CONDUCTORS if conductors.questions else 0,
        conductor_usd=conductors.total_usd,
        conductor_reason=conductors.reason,
        seconds=seconds if answering.is_timed else None,
        paid=bool(real) or conductors.plans_paid,
        workers_paid=bool(real),
        unpriced=tuple(worker.profile.name for worker in real if not worker.profile.price.is_known),
    )


def _workload(study: StudyInputs, workers: Sequence[str]) -> Workload:
    """The mean answer of these workers to the questions of the study."""
    numbers = [study.pool.names.index(name) for name in workers]
    sample = study.questions.tasks[:_SAMPLED]
    answers = [estimate_answer(study.pool, worker, task.question) for task in sample for worker in numbers]
    return Workload.of([answer.steps for answer in answers], study.pool)


@dataclass(frozen=True, slots=True)
class _ConductorsEstimate:
    """What it takes to run the Conductors."""

    questions: int
    """How many questions each Conductor gets."""
    reason: str
    """Why they are left out. Empty if they are not."""
    total_usd: float
    run_s: float
    """Seconds of their steps, without planning."""
    plans_paid: bool


def _estimate_conductors(study: StudyInputs, answer_usd: float) -> _ConductorsEstimate:
    """What the Conductors take.

    Args:
        answer_usd: the likely dollars of all workers' answers to one question.
    """
    team, pool, tasks = study.team, study.pool, study.questions.tasks
    price, (pays, reason) = _conductor_price(team, pool), _conductor_pays(study)
    plans_paid = pays and not price.is_declared_free
    numbers = [pool.names.index(name) for name in pool.answering]
    plans = [
        _assumed_plan(pool, numbers, first, task)
        for task in tasks[:_SAMPLED]
        for first in range(len(numbers))
    ]
    steps = Workload.of(plans, pool)
    plan_usd = price.cost(Usage(input_tokens=_PLAN_TOKENS[0], output_tokens=_PLAN_TOKENS[1]))
    each_usd, count = _CONDUCTORS * (plan_usd + steps.cost_usd.likely), 0
    if not reason:
        count, reason = _conductor_questions(len(tasks), each_usd, team.budget.run_usd, answer_usd)
    run_s = count * _CONDUCTORS * steps.total_s / study.settings.concurrency
    return _ConductorsEstimate(count, reason, count * each_usd, run_s, plans_paid)


def most_samples(pool: Pool) -> float:
    """How many different answers every worker can give to one question. Recorded workers limit this number."""
    return min((worker.samples for worker in pool if isinstance(worker, ReplayWorker)), default=math.inf)


def _conductor_questions(
    questions: int, each_usd: float, budget_usd: float | None, answer_usd: float
) -> tuple[int, str]:
    """How many questions each Conductor gets, and why it gets none."""
    if budget_usd is None or each_usd == 0:
        return questions, ""
    count = min(questions, int(CONDUCTOR_SHARE * budget_usd / each_usd))
    # More questions than workers can answer with the rest of the budget would be useless.
    if answer_usd > 0:
        count = min(count, int((budget_usd - count * each_usd) / answer_usd))
    if count < FEWEST:
        return 0, (
            f"The Conductor is left out: {CONDUCTOR_SHARE:.0%} of the budget would pay for its plans on {count} "
            f"questions, and fewer than {FEWEST} say little. About ${FEWEST * each_usd / CONDUCTOR_SHARE:,.2f} would "
            "include it."
        )
    return count, ""


def _conductor_price(team: TeamSettings, pool: Pool) -> Price:
    table = team.conductor
    if table.checkpoint is not None:
        return Price()
    if table.base_url is not None:
        return table.price or Price()
    worker = first_model(pool) if table.worker is None else pool.named(table.worker)
    return Price() if worker is None else worker.profile.price


def _conductor_pays(study: StudyInputs) -> tuple[bool, str]:
    """Whether the Conductor's plans may cost money, and a sentence that says why no Conductor is measured. It is empty
    if one is measured."""
    if study.questions.judged_by == "agreement" and study.settings.judge is None:
        return False, (
            "The Conductor is left out: agreement between workers cannot judge what it makes of them."
        )
    if all(isinstance(worker, ReplayWorker) for worker in study.pool if not worker.is_tool):
        return False, (
            "The Conductor is left out: all workers are recorded, and a recording has no answers to subtasks that a "
            "plan writes."
        )
    try:
        opened = open_planner(study.team.with_planner(PlannerChoice()), study.pool, seed="study")
    except UsageError as error:
        return False, f"The Conductor is left out: {error}"
    return opened.pays, ""


def _assumed_plan(pool: Pool, workers: Sequence[int], first: int, task: Task) -> tuple[StepEstimate, ...]:
    """An assumed plan for the question: the workers in turn, each of which sees all earlier responses."""
    turns = (workers[(first + position) % len(workers)] for position in range(_PLAN_STEPS))
    steps = (Step(worker, ANSWER_WHOLE_QUESTION, Access(all=True)) for worker in turns)
    return estimate_plan(Workflow(tuple(steps)), pool, task.question).steps
