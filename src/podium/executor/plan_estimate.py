"""Estimates what a plan, one answer or many plans would cost, from prices, sizes of messages, and past answers.

The estimate assumes that there are no retries and no fallbacks. Except in `most_usd`, it counts four characters per
token. For each response, `low` assumes the first decile of the worker's past lengths, and `high` the ninth. The true
total is seldom outside this range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, quantiles
from types import MappingProxyType
from typing import NamedTuple

from podium.calls.rate_limiter import model_key
from podium.calls.worker_call import first_reservation
from podium.executor.early_stopping import answering_steps
from podium.executor.step_input import build_messages
from podium.trace import Trace
from podium.types import (
    ANSWER_WHOLE_QUESTION,
    DEFAULT_OPTIONS,
    AnswerOptions,
    Message,
    Question,
    Usage,
    sent_tokens,
)
from podium.workers.base import Worker, costly_workers
from podium.workers.pool import Pool
from podium.workers.view import EarlierStep, WorkerView
from podium.workflow import Step, Workflow, needed_steps

ASSUMED_TOKENS = 500
"""The assumed length of a response."""
MIN_PAST_ANSWERS = 5
"""If a worker has fewer past answers than this, the length of its answers is assumed."""
ASSUMED_SPREAD = 4
"""For a worker whose length is assumed, `low` is this many times shorter and `high` this many times longer."""
TOKENS_A_SECOND = 50
"""The assumed tokens per second of a worker whose speed is not known, in a `Workload`."""
NEWEST_TRACES = 200
"""How many of the newest traces of a store are read for `past_answers_in`."""


@dataclass(frozen=True, slots=True)
class PastAnswers:
    """The answers of one worker. Both fields have the same order."""

    output_tokens: tuple[int, ...]
    seconds: tuple[float, ...]
    """The seconds that each reply claims, or else the measured seconds with waiting and retries."""

    def __len__(self) -> int:
        return len(self.output_tokens)


def past_answers_in(traces: Iterable[Trace]) -> Mapping[str, PastAnswers]:
    """The past answers in `traces`, by the name of the worker that answered. Cached answers are left out, since they
    are copies."""
    pairs: dict[str, list[tuple[int, float]]] = {}
    for trace in traces:
        for span in trace.spans:
            if span.status == "done" and span.answered_by is not None and not span.cached:
                pairs.setdefault(span.answered_by, []).append((span.usage.output_tokens, span.seconds))
    return {worker: PastAnswers(*zip(*of_worker, strict=True)) for worker, of_worker in pairs.items()}


@dataclass(frozen=True, slots=True)
class Range:
    """A likely value with its interval."""

    low: float
    likely: float
    high: float

    @property
    def values(self) -> tuple[float, float, float]:
        return self.low, self.likely, self.high

    @classmethod
    def sum(cls, parts: Iterable[Range]) -> Range:
        """The sum of the parts: of their low, of their likely and of their high values."""
        return cls(*map(sum, zip((0, 0, 0), *(part.values for part in parts), strict=True)))

    @classmethod
    def max(cls, parts: Iterable[Range]) -> Range:
        """The largest low, likely and high value of the parts. 0 if there are no parts."""
        return cls(*map(max, zip((0.0, 0.0, 0.0), *(part.values for part in parts), strict=True)))

    def times(self, factor: float) -> Range:
        return Range(*(value * factor for value in self.values))


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a step or a plan would need if responses are short, as long as is likely, or long."""

    input_tokens: Range
    output_tokens: Range
    cost_usd: Range
    unpriced: bool
    """Whether the price of a worker is not known, so that the dollars leave out what its answers cost."""
    seconds: Range | None
    """Seconds of the step, or of the plan's slowest chain of steps. None if neither past answers nor the profile of
    some worker say how long it takes."""

    @property
    def tokens(self) -> Range:
        return Range.sum((self.input_tokens, self.output_tokens))


@dataclass(frozen=True, slots=True)
class StepEstimate(Estimate):
    """One step that would be run."""

    position: int
    worker: str
    past_answers: int
    """How many past answers the estimate is based on. With 0, the length of the response is assumed."""


@dataclass(frozen=True, slots=True)
class PlanEstimate(Estimate):
    """The steps of a plan that would be run, in order, and their totals."""

    steps: tuple[StepEstimate, ...]
    most_usd: float
    """Dollars that a budget would reserve if no worker was called before: each response is as long as its worker may
    write, no input is cached, and each byte of input is a token. It is no bound if a worker is unpriced."""


class _Length(NamedTuple):
    tokens: Range
    seconds: Range | None
    past_answers: int


def estimate_plan(
    workflow: Workflow,
    pool: Pool,
    question: Question,
    *,
    response_tokens: int = ASSUMED_TOKENS,
    past: Mapping[str, PastAnswers] = MappingProxyType({}),
) -> PlanEstimate:
    """Estimate the cost of running `workflow`, which was checked against `pool`.

    Args:
        response_tokens: the assumed length of a response, for workers with fewer than `MIN_PAST_ANSWERS` past answers.
        past: past answers by worker's name.
    """
    planned = _PlannedCalls(workflow, pool, question)
    workers = planned.workers
    lengths = {p: _length(w, past.get(w.profile.name), response_tokens) for p, w in workers.items()}
    loads = _steps_that_load(workers)
    steps = tuple(
        planned.estimate_step(position, lengths, worker.limits.load_s if position in loads else 0.0)
        for position, worker in workers.items()
    )
    longest = {p: worker.limits.max_tokens for p, worker in workers.items()}
    most = [first_reservation(worker, *planned.sent(p, longest)) for p, worker in workers.items()]
    return PlanEstimate(
        Range.sum(step.input_tokens for step in steps),
        Range.sum(step.output_tokens for step in steps),
        Range.sum(step.cost_usd for step in steps),
        unpriced=any(step.unpriced for step in steps),
        seconds=_slowest_chain(workflow, steps),
        steps=steps,
        most_usd=sum(reservation.usd for reservation in most),
    )


class _PlannedCalls:
    """The calls of a plan's steps, as they would be made."""

    def __init__(self, workflow: Workflow, pool: Pool, question: Question) -> None:
        self._workflow = workflow
        self._question = question
        self._answering = answering_steps(workflow, pool)
        self.workers = {p: pool[workflow.steps[p].worker] for p in needed_steps(workflow)}
        """The worker of each step that would be run, by the step's position."""

    def sent(
        self, position: int, response_tokens: Mapping[int, float]
    ) -> tuple[tuple[Message, ...], AnswerOptions]:
        """What a step's worker gets, with blanks in place of the responses that it reads, of so many tokens."""
        steps, question = self._workflow.steps, self._question
        earlier = [
            EarlierStep(j, steps[j].subtask, "    " * round(response_tokens[j]))
            for j in self._workflow.reads(position)
        ]
        view = WorkerView(question.text, steps[position].subtask, tuple(earlier))
        images = question.images if self.workers[position].profile.sees else None
        messages = build_messages(view, "packed", "0" * 16, history=question.history, images=images)
        return messages, question.options if position in self._answering else DEFAULT_OPTIONS

    def estimate_step(self, position: int, lengths: Mapping[int, _Length], load_s: float) -> StepEstimate:
        """Estimate one step, whose model takes `load_s` seconds to load."""
        worker, length, usages = self.workers[position], lengths[position], list[Usage]()
        for which in range(3):
            tokens = {p: length.tokens.values[which] for p, length in lengths.items()}
            sent = sent_tokens(*self.sent(position, tokens))
            usages.append(Usage(input_tokens=sent, output_tokens=round(tokens[position])))
        spent = [worker.profile.price.spent(usage) for usage in usages]
        seconds = length.seconds
        return StepEstimate(
            Range(*(usage.input_tokens for usage in usages)),
            Range(*(usage.output_tokens for usage in usages)),
            Range(*(taken.cost_usd for taken in spent)),
            unpriced=spent[1].unpriced and worker.is_costly,
            seconds=None if seconds is None else Range(*(value + load_s for value in seconds.values)),
            position=position,
            worker=worker.profile.name,
            past_answers=length.past_answers,
        )


def estimate_answer(pool: Pool, worker: int, question: Question) -> PlanEstimate:
    """Estimate the cost if the worker with this number answered the question alone."""
    return estimate_plan(Workflow((Step(worker, ANSWER_WHOLE_QUESTION),)), pool, question)


def _length(worker: Worker, past: PastAnswers | None, assumed: int) -> _Length:
    """The length of an answer: a tenth, half and nine tenths of past answers are not longer."""
    if past is not None and len(past) >= MIN_PAST_ANSWERS:
        return _Length(_deciles(past.output_tokens), _deciles(past.seconds), len(past))
    latency_s, most = worker.profile.latency_s, worker.limits.max_tokens
    tokens = Range(
        *(min(length, most) for length in (assumed / ASSUMED_SPREAD, assumed, assumed * ASSUMED_SPREAD))
    )
    return _Length(tokens, None if latency_s is None else Range(latency_s, latency_s, latency_s), 0)


def _deciles(values: Sequence[float]) -> Range:
    cuts = quantiles(values, n=10, method="inclusive")
    return Range(cuts[0], cuts[4], cuts[8])


def _steps_that_load(workers: Mapping[int, Worker]) -> set[int]:
    """The steps before which a machine must load a model, if it has loaded none at first and runs the steps in
    order."""
    loaded: dict[str, list[str]] = {}
    loads = set()
    for position, worker in workers.items():
        if worker.limits.host is not None:
            models, model = loaded.setdefault(worker.limits.host, []), model_key(worker)
            if model in models:
                models.remove(model)
            else:
                loads.add(position)
            models.append(model)
            del models[: -worker.limits.loaded_at_once]
    return loads


def _slowest_chain(workflow: Workflow, steps: Sequence[StepEstimate]) -> Range | None:
    finish: dict[int, Range] = {}
    for step in steps:
        if step.seconds is None:
            return None
        before = Range.max(finish[j] for j in workflow.reads(step.position))
        finish[step.position] = Range.sum((step.seconds, before))
    return Range.max(finish.values())


@dataclass(frozen=True, slots=True)
class Workload:
    """What the mean plan of a sample needs. Steps of workers that cost nothing, such as recorded ones, take no time."""

    calls: float
    tokens: Range
    cost_usd: Range
    total_s: float
    """Seconds of the mean plan's steps, one after the other."""
    busiest_s: float
    """Seconds of the busiest worker, divided by the number of calls that it takes at once."""
    slowest_s: float
    """Seconds of the steps of the slowest plan, one after the other."""
    is_timed: bool
    """Whether the speed of all workers is known. If not, `TOKENS_A_SECOND` is assumed."""

    @classmethod
    def of(cls, plans: Sequence[Sequence[StepEstimate]], workers: Iterable[Worker]) -> Workload:
        """The mean of plans over these workers. `plans` has, for each plan, the steps that count."""
        real = {worker.profile.name: worker for worker in costly_workers(workers)}
        busy, taken, is_timed = dict.fromkeys(real, 0.0), [], True
        for steps in plans:
            timed = [step for step in steps if step.worker in real]
            for step in timed:
                busy[step.worker] += _likely_seconds(step) / real[step.worker].limits.concurrency / len(plans)
                is_timed &= step.seconds is not None
            taken.append(sum(map(_likely_seconds, timed)))
        return cls(
            calls=fmean(map(len, plans)),
            tokens=Range.sum(step.tokens for steps in plans for step in steps).times(1 / len(plans)),
            cost_usd=Range.sum(step.cost_usd for steps in plans for step in steps).times(1 / len(plans)),
            total_s=fmean(taken),
            busiest_s=max(busy.values(), default=0.0),
            slowest_s=max(taken),
            is_timed=is_timed,
        )

    def seconds(self, plans: float, *, concurrency: float | None = None) -> float:
        """Seconds that so many plans take: those of the busiest worker, and at least those of the slowest plan.
        `concurrency` is how many steps run at once; None sets no limit."""
        together = 0.0 if concurrency is None else plans * self.total_s / concurrency
        return max(self.slowest_s, plans * self.busiest_s, together)


def _likely_seconds(step: StepEstimate) -> float:
    return step.output_tokens.likely / TOKENS_A_SECOND if step.seconds is None else step.seconds.likely
