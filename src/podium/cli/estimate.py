"""What a plan would cost: from prices, the sizes of messages, and a guess at the length of responses.

An estimate of calls that were not made. It counts four characters a token, and neither retries nor fallbacks.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.executor.context import Context, EarlierStep, build_messages
from podium.types import Question, Usage, estimate_tokens
from podium.workers.pool import Pool
from podium.workflow import Workflow, live_steps


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """One step that would be run."""

    position: int
    worker: str
    usage: Usage
    cost_usd: float
    latency_s: float | None
    """Typical seconds of its worker; None when its profile does not say."""


@dataclass(frozen=True, slots=True)
class PlanEstimate:
    """The steps of a plan that would be run, in order."""

    steps: tuple[StepEstimate, ...]
    most_usd: float
    """Dollars if every response were as long as its worker may write."""
    latency_s: float | None
    """Typical seconds along the slowest chain of steps; None when those of a step are not known."""

    @property
    def cost_usd(self) -> float:
        """Dollars if every response has the length that was guessed."""
        return sum(step.cost_usd for step in self.steps)


def estimate(workflow: Workflow, pool: Pool, question: Question, *, response_tokens: int) -> PlanEstimate:
    """What running `workflow`, checked against `pool`, would cost with responses of `response_tokens`."""
    most = {position: pool[step.worker].limits.max_tokens for position, step in enumerate(workflow.steps)}
    likely = {position: min(response_tokens, limit) for position, limit in most.items()}
    steps = _steps(workflow, pool, question, likely)
    return PlanEstimate(
        steps,
        most_usd=sum(step.cost_usd for step in _steps(workflow, pool, question, most)),
        latency_s=_slowest_path_s(workflow, steps),
    )


def _steps(
    workflow: Workflow, pool: Pool, question: Question, lengths: dict[int, int]
) -> tuple[StepEstimate, ...]:
    """One estimate for each live step; `lengths` has the tokens of every response."""
    estimates: list[StepEstimate] = []
    for position in live_steps(workflow):
        step = workflow.steps[position]
        profile = pool[step.worker].profile
        earlier = tuple(
            EarlierStep(j, workflow.steps[j].subtask, "    " * lengths[j]) for j in workflow.reads(position)
        )
        messages = build_messages(Context(question, step.subtask, earlier), "packed", "0" * 16)
        usage = Usage(
            input_tokens=sum(estimate_tokens(message.content) for message in messages),
            output_tokens=lengths[position],
            estimated=True,
        )
        cost = profile.price.cost(usage)
        estimates.append(StepEstimate(position, profile.name, usage, cost, profile.latency_s))
    return tuple(estimates)


def _slowest_path_s(workflow: Workflow, steps: tuple[StepEstimate, ...]) -> float | None:
    finish: dict[int, float] = {}
    for step in steps:
        if step.latency_s is None:
            return None
        finish[step.position] = step.latency_s + max(
            (finish[j] for j in workflow.reads(step.position)), default=0.0
        )
    return max(finish.values())
