"""Adaptive consistency (Aggarwal et al. 2023, arXiv 2305.11860): a worker is asked again until its majority is stable.

The majority is stable when its answer is the likelier of the two commonest ones with 95 % certainty, under a uniform
prior (the paper's Beta criterion). The paper asks one sample at a time. Here a round asks as few as could make the
majority stable: never more than the paper would, in fewer rounds.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from podium.errors import ConfigError
from podium.plugin_api.planners import (
    BaselineContext,
    Plan,
    Planner,
    PlannerSpec,
    PlanRequest,
    Rounds,
    RoundStep,
    plan_rounds,
    voted_round_plan,
    worker_step,
)
from podium.types import ANSWER_WHOLE_QUESTION
from podium.workers.vote import vote_key
from podium_research.planners.rounds import all_rounds

_CERTAINTY = 0.95
_MAX_SAMPLES = 100
"""The most samples; each may need a round of its own."""


@dataclass(frozen=True, slots=True)
class AdaptiveConsistency(Planner):
    """`worker` answers until one answer is stable, at most `most` times. With one round it answers `most` times."""

    worker: str
    most: int

    def __post_init__(self) -> None:
        if not 1 <= self.most <= _MAX_SAMPLES:
            raise ConfigError(f"Adaptive consistency takes 1 to {_MAX_SAMPLES} samples, not {self.most}.")

    @property
    def name(self) -> str:
        return f"adaptive-consistency:{self.worker}:{self.most}"

    @property
    def rounds(self) -> int:
        """The first asks `samples_needed(0, 0)`, each further one at least one sample, and the last accepts."""
        return 2 + max(0, self.most - samples_needed(0, 0))

    async def plan(self, request: PlanRequest) -> Plan:
        """More samples, or the majority's answer; `ConfigError` if the pool lacks the worker or the vote."""
        return plan_rounds(request, self._rounds(request))

    def _rounds(self, request: PlanRequest) -> Rounds:
        counted: Counter[str] = Counter()
        first: dict[str, RoundStep] = {}
        samples = number = 0
        last = all_rounds(request) - 1
        while samples < self.most and (number < last or not number):
            leading, second = _two_commonest(counted)
            if is_stable(leading, second):
                break
            remaining = self.most - samples
            count = min(remaining, samples_needed(leading, second)) if last else remaining
            step = worker_step(request, self.worker, ANSWER_WHOLE_QUESTION)
            outcome = yield voted_round_plan(request, [step] * count)
            for position, response in enumerate(outcome.responses[:count]):
                answer = vote_key(response)
                if answer is not None:
                    counted[answer] += 1
                    first.setdefault(answer, (number, position))
            samples += count
            number += 1
        return first[counted.most_common(1)[0][0]] if counted else None


def is_stable(leading: int, second: int) -> bool:
    """Whether the leading of the two commonest answers is the likelier one with 95 % certainty.

    The share p of its votes among both has the posterior Beta(leading + 1, second + 1). P(p > 1/2) is the chance that
    a fair coin shows at most `leading` heads in leading + second + 1 throws.
    """
    throws = leading + second + 1
    outcomes = sum(math.comb(throws, heads) for heads in range(leading + 1))
    return outcomes >= _CERTAINTY * math.pow(2, throws)


def samples_needed(leading: int, second: int) -> int:
    """The fewest further samples after which the leading answer can be stable: all of them give it."""
    count = 1
    while not is_stable(leading + count, second):
        count += 1
    return count


def _two_commonest(counted: Counter[str]) -> tuple[int, int]:
    leading, second = ([count for _, count in counted.most_common(2)] + [0, 0])[:2]
    return leading, second


def _open(context: BaselineContext) -> AdaptiveConsistency:
    return AdaptiveConsistency(*context.worker_and_count(", with the most samples."))


BASELINE = PlannerSpec(
    "adaptive-consistency:WORKER:MOST",
    _open,
    votes=True,
    team_only=True,
)
