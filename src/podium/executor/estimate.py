"""Estimates what a plan or one answer would cost, from prices, the sizes of messages, and workers' past answers.

The estimate assumes that there are no retries and no fallbacks. Except in `most_usd`, it counts four characters per
token. For each response, `low` assumes the first decile of the worker's past lengths, and `high` the ninth. The true
total is seldom outside this range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from types import MappingProxyType
from typing import Any, Self

from podium.calls.rate_limiter import model_key
from podium.calls.worker_call import first_reservation
from podium.executor.early_stopping import answering_steps
from podium.executor.step_input import StepInput, build_messages
from podium.store.answers import PastAnswers
from podium.types import (
    ANSWER_WHOLE_QUESTION,
    DEFAULT_OPTIONS,
    AnswerOptions,
    Message,
    Question,
    Usage,
    sent_tokens,
)
from podium.workers.base import Worker
from podium.workers.pool import Pool
from podium.workers.view import EarlierStep
from podium.workflow import Step, Workflow, needed_steps

ASSUMED_TOKENS = 500
"""The assumed length of a worker's answer."""
ENOUGH = 5
"""If a worker has fewer past answers than this, the length of its answers is assumed."""
SPREAD = 4
"""For a worker whose length is assumed, `low` is this many times shorter and `high` this many times longer."""


@dataclass(frozen=True, slots=True)
class Range:
    """A likely value with its interval."""

    low: float
    likely: float
    high: float

    @classmethod
    def sum(cls, parts: Iterable[Range]) -> Range:
        """The sum of the parts: of their low, of their likely and of their high values."""
        ranges = tuple(parts)
        return cls(
            sum(part.low for part in ranges),
            sum(part.likely for part in ranges),
            sum(part.high for part in ranges),
        )

    def times(self, factor: float) -> Range:
        """The range multiplied by `factor`."""
        return Range(self.low * factor, self.likely * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class _Case:
    """What a step or a plan needs for given lengths of the responses."""

    input_tokens: float
    output_tokens: float
    cost_usd: float
    unpriced: bool
    seconds: float | None


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
        """Input and output together."""
        return Range.sum((self.input_tokens, self.output_tokens))

    @classmethod
    def _of(cls, low: _Case, likely: _Case, high: _Case, **more: Any) -> Self:
        seconds = [case.seconds for case in (low, likely, high) if case.seconds is not None]
        return cls(
            Range(low.input_tokens, likely.input_tokens, high.input_tokens),
            Range(low.output_tokens, likely.output_tokens, high.output_tokens),
            Range(low.cost_usd, likely.cost_usd, high.cost_usd),
            likely.unpriced,
            Range(*seconds) if len(seconds) == 3 else None,
            **more,
        )


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


@dataclass(frozen=True, slots=True)
class _Length:
    """The expected length of one worker's answer."""

    tokens: float
    seconds: float | None


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
        response_tokens: the assumed length of a response, for workers with fewer than `ENOUGH` past answers.
        past: past answers by worker's name.
    """
    needed = needed_steps(workflow)
    workers = {position: pool[workflow.steps[position].worker] for position in needed}
    expected = {
        name: _expected(worker, past.get(name), response_tokens)
        for worker in workers.values()
        for name in [worker.profile.name]
    }

    def cases(which: int) -> dict[int, _Case]:
        lengths = {p: expected[worker.profile.name][which] for p, worker in workers.items()}
        return _step_cases(workflow, workers, question, lengths)

    low, likely, high = (cases(which) for which in range(3))
    longest = {p: _Length(w.limits.max_tokens, None) for p, w in workers.items()}
    return PlanEstimate._of(
        *(_total(workflow, steps) for steps in (low, likely, high)),
        steps=tuple(
            StepEstimate._of(
                low[position],
                likely[position],
                high[position],
                position=position,
                worker=worker.profile.name,
                past_answers=_known_count(past.get(worker.profile.name)),
            )
            for position, worker in workers.items()
        ),
        most_usd=sum(
            first_reservation(
                worker, *_messages_and_options(workflow, position, workers, question, longest)
            ).usd
            for position, worker in workers.items()
        ),
    )


def estimate_answer(pool: Pool, worker: int, question: Question) -> PlanEstimate:
    """Estimate the cost if the worker with this number answered the question alone."""
    return estimate_plan(Workflow((Step(worker, ANSWER_WHOLE_QUESTION),)), pool, question)


def _known_count(past: PastAnswers | None) -> int:
    return 0 if past is None or len(past) < ENOUGH else len(past)


def _expected(worker: Worker, past: PastAnswers | None, assumed: int) -> tuple[_Length, _Length, _Length]:
    """The low, likely and high length of an answer: a tenth, half and nine tenths of past answers are not longer."""
    if past is None or not _known_count(past):
        seconds = worker.profile.latency_s
        low, likely, high = (
            _Length(min(tokens, worker.limits.max_tokens), seconds)
            for tokens in (assumed / SPREAD, assumed, assumed * SPREAD)
        )
    else:
        low, likely, high = (
            _Length(tokens, seconds)
            for tokens, seconds in zip(_deciles(past.output_tokens), _deciles(past.seconds), strict=True)
        )
    return low, likely, high


def _deciles(values: Sequence[float]) -> tuple[float, float, float]:
    cuts = quantiles(values, n=10, method="inclusive")
    return cuts[0], cuts[4], cuts[8]


def _step_cases(
    workflow: Workflow, workers: Mapping[int, Worker], question: Question, lengths: Mapping[int, _Length]
) -> dict[int, _Case]:
    """Tokens, dollars and seconds of each needed step. Its input has the responses that it reads, at these lengths."""
    cases: dict[int, _Case] = {}
    loads = _steps_that_load(workers)
    for position, worker in workers.items():
        usage = Usage(
            input_tokens=sent_tokens(*_messages_and_options(workflow, position, workers, question, lengths)),
            output_tokens=round(lengths[position].tokens),
        )
        seconds = lengths[position].seconds
        if seconds is not None:
            seconds += worker.limits.load_s * (position in loads)
        spent = worker.profile.price.spent(usage)
        unpriced = spent.unpriced and worker.is_costly
        cases[position] = _Case(usage.input_tokens, usage.output_tokens, spent.cost_usd, unpriced, seconds)
    return cases


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


def _messages_and_options(
    workflow: Workflow,
    position: int,
    workers: Mapping[int, Worker],
    question: Question,
    lengths: Mapping[int, _Length],
) -> tuple[tuple[Message, ...], AnswerOptions]:
    """The messages and options that a step's worker gets, with blanks in place of the responses that it reads."""
    earlier = tuple(
        EarlierStep(j, workflow.steps[j].subtask, "    " * round(lengths[j].tokens))
        for j in workflow.reads(position)
    )
    step_input = StepInput(question, workflow.steps[position].subtask, earlier)
    messages = build_messages(step_input, "packed", "0" * 16, sees=workers[position].profile.sees)
    return messages, question.options if position in answering_steps(workflow, workers) else DEFAULT_OPTIONS


def _total(workflow: Workflow, steps: Mapping[int, _Case]) -> _Case:
    """What the steps of a plan need together."""
    return _Case(
        sum(case.input_tokens for case in steps.values()),
        sum(case.output_tokens for case in steps.values()),
        sum(case.cost_usd for case in steps.values()),
        any(case.unpriced for case in steps.values()),
        _slowest_chain_s(workflow, steps),
    )


def _slowest_chain_s(workflow: Workflow, steps: Mapping[int, _Case]) -> float | None:
    finish: dict[int, float] = {}
    for position, case in steps.items():
        if case.seconds is None:
            return None
        finish[position] = case.seconds + max((finish[j] for j in workflow.reads(position)), default=0.0)
    return max(finish.values())
