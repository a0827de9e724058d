"""Mixture of agents (Wang et al. 2024, arXiv 2406.04692): layers of workers, each of which reads the layer before.

The workers of the first layer answer alone. Those of each later layer see all responses of the layer before, and write
a better one. The last layer is one worker, the aggregator, whose response is the answer.

Two layers are what gateways call fusion. One worker may stand in both, as in 3xA>A: its answers differ by seed.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.errors import ConfigError
from podium.planner import PlanRequest
from podium.planners.baseline import Baseline, BaselineContext, Layers, named_in, read_layers
from podium.planners.phrases import ANSWER_WHOLE_QUESTION
from podium.planners.plans import plan_once
from podium.planners.rounds import worker_step
from podium.trace import Plan
from podium.workflow import Step, Workflow

AGGREGATE = (
    "Compare the responses shown. Any of them may be wrong or one-sided, so do not simply repeat one: write one answer "
    "to the whole question that is more accurate and more complete than each of them."
)


@dataclass(frozen=True, slots=True)
class MixtureOfAgents:
    """`layers` of workers by name, the first layer first. The last has one worker."""

    layers: Layers

    def __post_init__(self) -> None:
        if len(self.layers) < 2 or len(self.layers[-1]) != 1:
            raise ConfigError(
                "A mixture of agents has two layers or more, and one worker in the last; write "
                "mixture-of-agents:A+B>C, or A+B>A+B>C for one more layer."
            )

    @property
    def name(self) -> str:
        return f"mixture-of-agents:{'>'.join('+'.join(layer) for layer in self.layers)}"

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


def _open_mixture(argument: str, context: BaselineContext) -> MixtureOfAgents:
    name = f"mixture-of-agents:{argument}" if argument else "mixture-of-agents"
    layers = argument.count(">") + 1
    return MixtureOfAgents(read_layers(argument, context, name, form=MIXTURE.form, layers=layers))


MIXTURE = Baseline(
    "mixture-of-agents:A+B>C",
    _open_mixture,
    needs=named_in,
    team_only=True,
    on_recordings=False,
    examples=lambda workers: [
        f"mixture-of-agents:{'+'.join(workers)}>{workers[0]}",
        f"mixture-of-agents:{'+'.join(workers)}>2x{workers[-1]}>{workers[0]}",
    ],
)
