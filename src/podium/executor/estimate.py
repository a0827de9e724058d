"""Estimates what a plan, or one answer, would cost: from prices, the sizes of messages, and workers' past answers.

It assumes neither retries nor fallbacks, and four characters a token, except in `most_usd`. For each response, `low`
assumes the first decile of the worker's past lengths, and `high` the ninth. The true total is seldom outside this
range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from types import MappingProxyType

from podium.calls.model_host import model_of
from podium.calls.worker_call import first_reservation
from podium.executor.early_stopping import answering_steps
from podium.executor.step_input import StepInput, build_messages
from podium.trace.store.answers import PastAnswers
from podium.types import (
    ANSWER_WHOLE_QUESTION,
    DEFAULT_OPTIONS,
    NO_USAGE,
    AnswerOptions,
    Message,
    Question,
    Usage,
    sent_tokens,
)
from podium.workers.base import Worker
from podium.workers.pool import Pool
from podium.workers.view import EarlierStep
from podium.workflow import Step, Workflow, live_steps

ASSUMED_TOKENS = 500
"""The assumed length of a worker's answer."""
ENOUGH = 5
"""If a worker has fewer past answers than this, the length of its answers is assumed."""
SPREAD = 4
"""For a worker with an assumed length, `low` is this many times shorter, and `high` this many times longer."""


@dataclass(frozen=True, slots=True)
class Range:
    """A figure and its interval."""

    low: float
    likely: float
    high: float

    @classmethod
    def sum(cls, parts: Iterable[Range]) -> Range:
        """All of them together, all low, all likely and all high."""
        ranges = tuple(parts)
        return cls(
            sum(part.low for part in ranges),
            sum(part.likely for part in ranges),
            sum(part.high for part in ranges),
        )

    def times(self, factor: float) -> Range:
        """So many times as much."""
        return Range(self.low * factor, self.likely * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class CostForecast:
    """The tokens, dollars and seconds of a step or a plan, for given lengths of the responses."""

    usage: Usage
    cost_usd: float
    latency_s: float | None
    """Seconds of the step's worker, or along the plan's slowest chain of steps. None if neither past answers nor a
    profile say how long one of them takes."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a step or a plan would need if responses are short, as long as is likely, or long."""

    low: CostForecast
    likely: CostForecast
    high: CostForecast

    @property
    def usage(self) -> Usage:
        """Likely tokens."""
        return self.likely.usage

    @property
    def cost_usd(self) -> float:
        """Likely dollars."""
        return self.likely.cost_usd

    @property
    def latency_s(self) -> float | None:
        """Likely seconds."""
        return self.likely.latency_s

    @property
    def tokens(self) -> Range:
        """Input and output together, with their interval."""
        return Range(self.low.usage.tokens, self.likely.usage.tokens, self.high.usage.tokens)

    @property
    def dollars(self) -> Range:
        """Dollars with their interval."""
        return Range(self.low.cost_usd, self.likely.cost_usd, self.high.cost_usd)

    @property
    def seconds(self) -> Range | None:
        """Seconds with their interval. None if they are not known."""
        low, likely, high = self.low.latency_s, self.likely.latency_s, self.high.latency_s
        return None if low is None or likely is None or high is None else Range(low, likely, high)


@dataclass(frozen=True, slots=True)
class StepEstimate(Estimate):
    """One step that would be run."""

    position: int
    worker: str
    answers: int
    """Past answers that it is based on. With 0, the length of the response is assumed."""


@dataclass(frozen=True, slots=True)
class PlanEstimate(Estimate):
    """The steps of a plan that would be run, in order, and what they add up to."""

    steps: tuple[StepEstimate, ...]
    most_usd: float
    """Dollars that a budget reserves for workers that were not called yet: each response is as long as its worker may
    write, no input is cached, and input has a token for each byte."""


@dataclass(frozen=True, slots=True)
class _Length:
    """The expected length of one worker's answer."""

    tokens: float
    seconds: float | None


def estimate(
    workflow: Workflow,
    pool: Pool,
    question: Question,
    *,
    response_tokens: int = ASSUMED_TOKENS,
    past: Mapping[str, PastAnswers] = MappingProxyType({}),
) -> PlanEstimate:
    """Estimate the cost of running `workflow`, which was checked against `pool`.

    Args:
        response_tokens: assumed length of a response of workers with fewer than `ENOUGH` past answers.
        past: by worker's name.
    """
    live = live_steps(workflow)
    workers = {position: pool[workflow.steps[position].worker] for position in live}
    expected = {
        name: _expected(worker, past.get(name), response_tokens)
        for worker in workers.values()
        for name in [worker.profile.name]
    }

    def forecasts(which: int) -> dict[int, CostForecast]:
        lengths = {p: expected[worker.profile.name][which] for p, worker in workers.items()}
        return _guesses(workflow, workers, question, lengths)

    low, likely, high = (forecasts(which) for which in range(3))
    longest = {p: _Length(w.limits.max_tokens, None) for p, w in workers.items()}
    return PlanEstimate(
        steps=tuple(
            StepEstimate(
                low[position],
                likely[position],
                high[position],
                position,
                worker.profile.name,
                _known(past.get(worker.profile.name)),
            )
            for position, worker in workers.items()
        ),
        low=_total(workflow, low),
        likely=_total(workflow, likely),
        high=_total(workflow, high),
        most_usd=sum(
            first_reservation(worker, *_sent(workflow, position, workers, question, longest)).usd
            for position, worker in workers.items()
        ),
    )


def estimate_answer(pool: Pool, worker: int, question: Question) -> PlanEstimate:
    """What it would cost if one worker of the pool, by its number, answered the question alone."""
    return estimate(Workflow((Step(worker, ANSWER_WHOLE_QUESTION),)), pool, question)


def _known(past: PastAnswers | None) -> int:
    return 0 if past is None or len(past) < ENOUGH else len(past)


def _expected(worker: Worker, past: PastAnswers | None, assumed: int) -> tuple[_Length, _Length, _Length]:
    """Low, likely and high: the lengths that one in ten, half and nine in ten past answers do not exceed."""
    if past is None or not _known(past):
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


def _guesses(
    workflow: Workflow, workers: Mapping[int, Worker], question: Question, lengths: Mapping[int, _Length]
) -> dict[int, CostForecast]:
    """One guess for each live step. Its input contains the responses that the step reads, at their expected lengths."""
    forecasts: dict[int, CostForecast] = {}
    loads = _loads(workers)
    for position, worker in workers.items():
        usage = Usage(
            input_tokens=sent_tokens(*_sent(workflow, position, workers, question, lengths)),
            output_tokens=round(lengths[position].tokens),
            estimated=True,
        )
        seconds = lengths[position].seconds
        if seconds is not None:
            seconds += worker.limits.load_s * (position in loads)
        forecasts[position] = CostForecast(usage, worker.profile.price.cost(usage), seconds)
    return forecasts


def _loads(workers: Mapping[int, Worker]) -> set[int]:
    """The steps before which a machine loads a model, if it has none at first and the steps take turns."""
    loaded: dict[str, list[str]] = {}
    loads = set()
    for position, worker in workers.items():
        if worker.limits.host is not None:
            models, model = loaded.setdefault(worker.limits.host, []), model_of(worker)
            if model in models:
                models.remove(model)
            else:
                loads.add(position)
            models.append(model)
            del models[: -worker.limits.loaded_at_once]
    return loads


def _sent(
    workflow: Workflow,
    position: int,
    workers: Mapping[int, Worker],
    question: Question,
    lengths: Mapping[int, _Length],
) -> tuple[tuple[Message, ...], AnswerOptions]:
    """The messages and options that a step's worker is sent, with blanks in place of the responses that it reads."""
    earlier = tuple(
        EarlierStep(j, workflow.steps[j].subtask, "    " * round(lengths[j].tokens))
        for j in workflow.reads(position)
    )
    step_input = StepInput(question, workflow.steps[position].subtask, earlier)
    messages = build_messages(step_input, "packed", "0" * 16, sees=workers[position].profile.sees)
    return messages, question.options if position in answering_steps(workflow, workers) else DEFAULT_OPTIONS


def _total(workflow: Workflow, forecasts: Mapping[int, CostForecast]) -> CostForecast:
    return CostForecast(
        usage=sum((guess.usage for guess in forecasts.values()), NO_USAGE),
        cost_usd=sum(guess.cost_usd for guess in forecasts.values()),
        latency_s=_slowest_path_s(workflow, forecasts),
    )


def _slowest_path_s(workflow: Workflow, forecasts: Mapping[int, CostForecast]) -> float | None:
    finish: dict[int, float] = {}
    for position, guess in forecasts.items():
        if guess.latency_s is None:
            return None
        finish[position] = guess.latency_s + max((finish[j] for j in workflow.reads(position)), default=0.0)
    return max(finish.values())
