"""The object `podium` of replies, and of the progress that streams report: how an answer is made.

Field names and meaning are in docs/api.md. A key that does not apply is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any, Literal

from pydantic import AliasPath, BaseModel, ConfigDict, Field

from podium.executor import StepEnded
from podium.trace import Span, Trace
from podium.trace.costs import spent_by_worker
from podium.trace.model import SpanStatus, TraceStatus
from podium.types import Profile, Spent, Usage
from podium.workflow import Workflow


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, from_attributes=True)


class PlannedStep(_Part):
    step: int
    worker: str
    subtask: str
    reads: tuple[int, ...]


class AttemptDetails(_Part):
    worker: str
    error_kind: str | None
    error: str | None
    cost_usd: float = Field(validation_alias=AliasPath("spent", "cost_usd"))


def _from_span(*path: str, **options: Any) -> Any:
    """A field that is read from the span of an event `StepEnded`."""
    return Field(validation_alias=AliasPath("span", *path), **options)


class StepDetails(_Part):
    """A step as it was run. It is read from an event `StepEnded`."""

    round: int
    step: int = _from_span("position")
    worker: str = _from_span("worker")
    answered_by: str | None = _from_span("answered_by")
    cost_usd: float = _from_span("spent", "cost_usd")
    seconds: float = _from_span("seconds")
    cached: bool = _from_span("cached")
    status: SpanStatus = _from_span("status")
    model: str | None = _from_span("reply", "model", default=None)
    fingerprint: str | None = _from_span("reply", "fingerprint", default=None)
    context_tokens: int | None = _from_span("reply", "context_tokens", default=None)
    dropped: tuple[str, ...] = _from_span("reply", "dropped", default=())
    folded: bool = _from_span("reply", "folded", default=False)
    attempts: tuple[AttemptDetails, ...] = _from_span("attempts")


class PartUsage(Usage):
    """Tokens and dollars of the planner or of one worker."""

    cost_usd: float
    unpriced: bool = Field(exclude_if=lambda unpriced: not unpriced)

    @classmethod
    def of(cls, spent: Spent) -> PartUsage:
        return cls(**vars(spent.usage), cost_usd=spent.cost_usd, unpriced=spent.unpriced)


class UsageByPart(_Part):
    """Tokens and dollars of the planner and of each worker."""

    conductor: PartUsage
    workers: dict[str, PartUsage]


def _if_known() -> Any:
    """A field that is left out unless its value is known."""
    return Field(default=None, exclude_if=lambda value: value is None)


class PodiumDetails(_Part):
    """The object `podium` of a reply."""

    trace_id: str
    planner: str
    status: TraceStatus | Literal["dry_run"]
    rounds: int
    plan: tuple[PlannedStep, ...]
    steps: tuple[StepDetails, ...]
    cost_usd: float
    seconds: float
    usage: UsageByPart
    reason: str | None = _if_known()
    error: str | None = _if_known()
    abandoned: tuple[StepDetails, ...] | None = _if_known()
    dropped: tuple[str, ...] | None = _if_known()
    ignored: tuple[str, ...] | None = _if_known()
    workers: tuple[str, ...] | None = _if_known()
    estimate: dict[str, Any] | None = _if_known()
    plan_id: str | None = _if_known()
    expires_at: str | None = _if_known()


class PlanProgress(_Part):
    event: Literal["plan"] = "plan"
    round: int
    plan: tuple[PlannedStep, ...]
    reason: str | None = _if_known()


class StepStartedProgress(_Part):
    """A worker is called. It is read from an event `StepStarted`."""

    event: Literal["step_started"] = "step_started"
    round: int
    step: int = Field(validation_alias="position")
    worker: str
    subtask: str


class StepEndedProgress(StepDetails):
    """A worker has answered, or the step has failed."""

    event: Literal["step_ended"] = "step_ended"


class RoundProgress(_Part):
    """A round has ended, or its planner has accepted the answer."""

    event: Literal["round_ended", "accepted"]
    round: int


Progress = PlanProgress | StepStartedProgress | StepEndedProgress | RoundProgress


def details_of(trace: Trace, ignored: Sequence[str] = ()) -> PodiumDetails:
    """The object `podium` of a trace. `ignored` are fields of the request that had no effect."""
    latest = next((round_ for round_ in reversed(trace.rounds) if round_.workflow is not None), None)
    workflow = None if latest is None else latest.workflow
    return PodiumDetails(
        trace_id=trace.id,
        planner=trace.planner,
        status=trace.status,
        rounds=len(trace.rounds),
        plan=() if workflow is None else planned_steps(workflow, trace.pool),
        steps=_steps((number, round_.spans) for number, round_ in enumerate(trace.rounds)),
        cost_usd=trace.cost_usd,
        seconds=trace.seconds,
        usage=UsageByPart(
            conductor=PartUsage.of(reduce(add, (round_.plan.spent for round_ in trace.rounds), Spent())),
            workers={name: PartUsage.of(spent) for name, spent in spent_by_worker(trace.spans).items()},
        ),
        reason=None if latest is None else latest.plan.reason,
        error=trace.error,
        abandoned=_steps((number, round_.abandoned) for number, round_ in enumerate(trace.rounds)) or None,
        dropped=tuple(sorted(set(_dropped_parameters(trace)))) or None,
        ignored=tuple(ignored) or None,
    )


def planned_steps(workflow: Workflow, pool: Sequence[Profile]) -> tuple[PlannedStep, ...]:
    """The steps of a plan, whose worker numbers are those of `pool`."""
    return tuple(
        PlannedStep(
            step=number,
            worker=pool[step.worker].name,
            subtask=step.subtask,
            reads=tuple(workflow.reads(number)),
        )
        for number, step in enumerate(workflow.steps)
    )


def _steps(rounds: Iterable[tuple[int, Sequence[Span]]]) -> tuple[StepDetails, ...]:
    return tuple(
        StepDetails.model_validate(StepEnded(number, span)) for number, spans in rounds for span in spans
    )


def _dropped_parameters(trace: Trace) -> Iterator[str]:
    """The parameters that were left out for an endpoint, in nested teams too."""
    for round_ in trace.rounds:
        yield from round_.plan.dropped
    for span in trace.spans:
        if span.reply is not None:
            yield from span.reply.dropped
        if span.nested is not None:
            yield from _dropped_parameters(span.nested)
