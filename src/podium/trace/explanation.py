"""Explains why a question got its answer: the planner's reason, and what one worker alone would have cost.

An explanation is computed only from the trace, and no model is called. Every figure comes with its source. A figure
without a source is left out.
"""

from __future__ import annotations

from podium.trace.model import Trace
from podium.types import FrozenModel, Profile, Usage, estimate_tokens
from podium.workflow import thought_in


class SourcedNumber(FrozenModel):
    """A number, and the sentence that says where it comes from."""

    value: float
    source: str


class RatedWorker(FrozenModel):
    """A worker's rating, which the trace's pool has for this question."""

    worker: str
    accuracy: float
    """Share of right answers, 0 to 1."""
    cost_usd: float
    """Mean dollars an answer."""
    questions: int
    cluster: str
    """The cluster of questions that was measured."""


class SingleWorker(FrozenModel):
    """What a worker would have cost, and how good it would have been, if it had answered the question alone."""

    worker: str
    choice: str
    """One sentence: why this worker."""
    cost_usd: SourcedNumber | None = None
    """Dollars for this question."""
    measured_usd: SourcedNumber | None = None
    """Mean dollars of the worker's measured answers."""
    accuracy: SourcedNumber | None = None
    """How likely the worker's answer is right, 0 to 1."""


class Explanation(FrozenModel):
    """Why the question got this plan, and what the alternatives were."""

    reason: str | None = None
    """The text that the planner wrote before its last plan. None if it wrote nothing."""
    ratings: tuple[RatedWorker, ...] = ()
    """The most accurate worker first."""
    cost_usd: float
    """Dollars of the answer, planning included."""
    unpriced: bool
    """Whether the price of a call is not known, so that `cost_usd` leaves it out."""
    single: SingleWorker | None = None
    """The best worker alone. None if neither ratings nor prices say which it is."""
    runner_up: SingleWorker | None = None
    """The next best worker by ratings. None if fewer than two workers are rated."""


def explain_answer(trace: Trace) -> Explanation:
    """The explanation of one trace, as far as the trace has the figures."""
    rated = _by_rating(trace.pool)
    best = _best_worker(trace, rated)
    return Explanation(
        reason=_reason(trace),
        ratings=tuple(
            RatedWorker(worker=profile.name, **profile.rating.model_dump())
            for profile in rated
            if profile.rating is not None
        ),
        cost_usd=trace.cost_usd,
        unpriced=trace.unpriced,
        single=best,
        runner_up=_single(trace, rated[1], "It has the second best rating.") if len(rated) > 1 else None,
    )


def _reason(trace: Trace) -> str | None:
    """The thoughts before the latest plan that was run. An acceptance is no plan."""
    for round_ in reversed(trace.rounds):
        if round_.workflow is not None:
            return thought_in(round_.plan.text).strip() or round_.plan.reasoning.strip() or None
    return None


def _by_rating(pool: tuple[Profile, ...]) -> list[Profile]:
    """The rated workers that are right at all, the most accurate first, and of equally accurate ones the cheaper."""
    rated = [
        (-profile.rating.accuracy, profile.rating.cost_usd, position)
        for position, profile in enumerate(pool)
        if profile.rating is not None and profile.rating.accuracy > 0
    ]
    return [pool[position] for *_, position in sorted(rated)]


def _best_worker(trace: Trace, rated: list[Profile]) -> SingleWorker | None:
    if rated:
        return _single(trace, rated[0], "It has the best rating on questions like this one.")
    priced = [profile for profile in trace.pool if profile.price.output > 0]
    if not priced:
        return None
    dearest = max(priced, key=lambda profile: profile.price.output)
    return _single(trace, dearest, "No worker has a rating, so this is the one with the highest price.")


def _single(trace: Trace, profile: Profile, choice: str) -> SingleWorker:
    """The dollars and the accuracy that the worker `profile` would have had alone."""
    cost = measured = accuracy = None
    if profile.price.input or profile.price.output:
        usage, basis = _usage_alone(trace)
        if usage is not None:
            source = (
                f"Estimated from its price in the team file and the tokens of this question: about "
                f"{usage.input_tokens:,} in (the question and its conversation), {usage.output_tokens:,} out ({basis})."
            )
            cost = SourcedNumber(value=profile.price.cost(usage), source=source)
    if profile.rating is not None:
        rating = profile.rating
        source = (
            f"Its rating, from {rating.questions:,} measured questions of the kind {rating.cluster!r} and its mean "
            "over all kinds."
        )
        measured = SourcedNumber(value=rating.cost_usd, source=source)
        accuracy = SourcedNumber(value=rating.accuracy, source=source)
    return SingleWorker(
        worker=profile.name, choice=choice, cost_usd=cost, measured_usd=measured, accuracy=accuracy
    )


def _usage_alone(trace: Trace) -> tuple[Usage | None, str]:
    """The tokens of one worker that reads only the question and writes the answer: those of the step that gave it,
    including its reasoning. None if there is no answer."""
    if trace.answer is None:
        return None, ""
    texts = [trace.question.text, *(message.content for message in trace.question.history)]
    read = sum(estimate_tokens(text) for text in texts)
    written = [span for span in trace.spans if span.response == trace.answer and span.usage.output_tokens]
    if written:
        return Usage(input_tokens=read, output_tokens=written[-1].usage.output_tokens), (
            f"as many as {written[-1].answered_by or written[-1].worker} wrote in step {written[-1].position}"
        )
    return Usage(input_tokens=read, output_tokens=estimate_tokens(trace.answer)), (
        "the answer, at four characters a token"
    )
