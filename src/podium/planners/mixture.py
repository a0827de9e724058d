"""Mixture of agents (Wang et al. 2024, arXiv 2406.04692): layers of workers, each of which reads the layer before.

The workers of the first layer answer alone. Those of each later layer see all responses of the layer before, and write
a better one. The last layer is one worker, the aggregator, whose response is the answer. Fusion is a mixture of two
layers, a panel and a judge, under the name that gateways gave it. In self-fusion both are one worker, whose answers
differ by seed.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.errors import ConfigError
from podium.planners.baseline import BaselineContext, Layers, PlannerSpec, plan_once, read_members
from podium.planners.planner import Planner, PlanRequest
from podium.planners.rounds import worker_step
from podium.trace import Plan
from podium.types import ANSWER_WHOLE_QUESTION
from podium.workflow import Step, Workflow

AGGREGATE = (
    "Compare the responses shown. Any of them may be wrong or one-sided, so do not simply repeat one: write one answer "
    "to the whole question that is more accurate and more complete than each of them."
)


@dataclass(frozen=True, slots=True)
class MixtureOfAgents(Planner):
    """`layers` of workers by name, the first layer first. The last has one worker."""

    layers: Layers
    label: str | None = None
    """Its name, where users know it by another one than this method's."""

    def __post_init__(self) -> None:
        if len(self.layers) < 2 or len(self.layers[-1]) != 1:
            raise ConfigError(
                "A mixture of agents has two layers or more, and one worker in the last; write "
                "mixture-of-agents:A+B>C, or A+B>A+B>C for one more layer."
            )

    @property
    def name(self) -> str:
        return self.label or f"mixture-of-agents:{'>'.join('+'.join(layer) for layer in self.layers)}"

    async def plan(self, request: PlanRequest) -> Plan:
        """All layers in one workflow; `ConfigError` if the pool lacks a worker."""
        steps: list[Step] = []
        before = range(0)
        for layer in self.layers:
            subtask = AGGREGATE if before else ANSWER_WHOLE_QUESTION
            start = len(steps)
            steps += [worker_step(request, worker, subtask, reads=before) for worker in layer]
            before = range(start, len(steps))
        return plan_once(request, Workflow(tuple(steps)))


MIXTURE = PlannerSpec(
    "mixture-of-agents:A+B>C",
    lambda context: MixtureOfAgents(tuple(map(context.workers, context.argument.split(">")))),
    team_only=True,
    on_recordings=False,
)


_MOST_ANSWERS = 1000


def _open_fusion(context: BaselineContext) -> MixtureOfAgents:
    panel, judge = _split(context.argument, {profile.name for profile in context.pool})
    if not panel or not judge:
        raise context.malformed(", as in fusion:A+B:C.")
    layers = (context.workers(panel), (context.worker(judge),))
    return MixtureOfAgents(layers, label=context.name)


def _split(argument: str, pool: set[str]) -> tuple[str, str]:
    """Panel and judge. Names may have colons, so the first colon counts that has workers of the pool on both sides."""
    parts = argument.split(":")
    for position in range(1, len(parts)):
        panel, judge = ":".join(parts[:position]), ":".join(parts[position:])
        if judge in pool and pool.issuperset(read_members(panel)):
            return panel, judge
    panel, _, judge = argument.rpartition(":")
    return panel, judge


def _open_self_fusion(context: BaselineContext) -> MixtureOfAgents:
    fused, samples = context.worker_and_count(", as in self-fusion:A:3.")
    if not 2 <= samples <= _MOST_ANSWERS:
        raise ConfigError(f"Self-fusion takes 2 to {_MOST_ANSWERS} answers, not {samples}.")
    return MixtureOfAgents(((fused,) * samples, (fused,)), label=context.name)


def _workers_of_fusion(argument: str) -> tuple[str, ...]:
    """The workers of a fusion; none if a name has a colon, since then only the pool says who is meant."""
    panel, _, judge = argument.partition(":")
    return () if ":" in judge else (*read_members(panel), *filter(None, (judge,)))


FUSION = PlannerSpec(
    "fusion:PANEL:JUDGE",
    _open_fusion,
    named_workers=_workers_of_fusion,
    team_only=True,
    on_recordings=False,
)
SELF_FUSION = PlannerSpec(
    "self-fusion:WORKER:SAMPLES",
    _open_self_fusion,
    team_only=True,
    on_recordings=False,
)
