"""One worker alone, a vote of several answers of one worker, and a vote of several workers, weighted or not.

A baseline only writes plans; the pool's worker "vote" counts the answers. `podium.evals.plan_selection` chooses the
workers and the weights of their votes, on other questions than those of the comparison.

In a weighted vote each worker's vote weighs log(p / (1 - p)) + log(w), where p is the worker's accuracy on other
questions and w the number of wrong answers that a question has. These are the best weights if workers err independently
and all wrong answers are equally likely (Nitzan & Paroush 1982 for w = 1, Kuncheva & Rodríguez 2014). The scored
answers do not tell w, so it is `WRONG_ANSWERS`. If w is too small, a worker that is wrong more often than right has no
voice; if it is too large, the weights are nearly equal.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from podium.errors import ConfigError
from podium.planners.baseline import (
    BaselineContext,
    PlannerSpec,
    plan_once,
    voting_step,
    worker_number,
)
from podium.planners.planner import Planner, PlanRequest
from podium.trace import Plan
from podium.types import ANSWER_WHOLE_QUESTION
from podium.workflow import Step, Workflow

if TYPE_CHECKING:
    from podium.planners.answer_matrix import AnswerMatrix

_MAX_SAMPLES = 1000
"""A plan has a step for each. Millions of steps would take minutes to check, and no budget could pay for them."""


@dataclass(frozen=True, slots=True)
class Single(Planner):
    """One step: `worker` answers the whole question."""

    worker: str

    @property
    def name(self) -> str:
        return f"single:{self.worker}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The one-step plan; `ConfigError` when the pool has no such worker."""
        return plan_once(request, _alone(worker_number(self.worker, request.pool)))


@cache
def _alone(worker: int) -> Workflow:
    return Workflow((Step(worker, ANSWER_WHOLE_QUESTION),))


@dataclass(frozen=True, slots=True)
class Committee(Planner):
    """Each of `workers` answers the whole question, then a vote decides. A worker may be named several times."""

    workers: tuple[str, ...]
    weights: tuple[float, ...] = ()
    """The weight of each vote, from 0 to 1000. If empty, all weights are equal."""

    def __post_init__(self) -> None:
        if not self.workers:
            raise ConfigError("A committee needs at least 1 worker.")
        if self.weights and len(self.weights) != len(self.workers):
            raise ConfigError(
                f"A committee of {len(self.workers)} workers has {len(self.weights)} weights; give one for each."
            )

    @property
    def name(self) -> str:
        members = "+".join(
            f"{count}x{worker}" if count > 1 else worker for worker, count in Counter(self.workers).items()
        )
        return f"{'weighted-' if self.weights else ''}committee:{members}"

    async def plan(self, request: PlanRequest) -> Plan:
        """A step for each answer, and the vote; `ConfigError` when the pool lacks a worker or the vote."""
        steps = tuple(
            Step(worker_number(worker, request.pool), ANSWER_WHOLE_QUESTION) for worker in self.workers
        )
        if len(steps) == 1:
            return plan_once(request, Workflow(steps))
        return plan_once(request, Workflow((*steps, voting_step(request.pool, self.weights))))


@dataclass(frozen=True, slots=True)
class SelfConsistency(Planner):
    """`worker` answers `samples` times in parallel, and the most frequent answer wins (Wang et al. 2022). With one
    sample there is no vote."""

    worker: str
    samples: int

    def __post_init__(self) -> None:
        if not 1 <= self.samples <= _MAX_SAMPLES:
            raise ConfigError(f"Self-consistency takes 1 to {_MAX_SAMPLES} samples, not {self.samples}.")

    @property
    def name(self) -> str:
        return f"self-consistency:{self.worker}:{self.samples}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The samples and the vote; `ConfigError` when the pool lacks the worker or the vote."""
        return await Committee((self.worker,) * self.samples).plan(request)


SINGLE = PlannerSpec("single:WORKER", lambda context: Single(context.worker(context.argument)))
SELF_CONSISTENCY = PlannerSpec(
    "self-consistency:WORKER:SAMPLES",
    lambda context: SelfConsistency(*context.worker_and_count(", with a number of samples.")),
    votes=True,
)
COMMITTEE = PlannerSpec(
    "committee:A+B",
    lambda context: Committee(context.workers(context.argument)),
    votes=True,
    team_only=True,
)


WRONG_ANSWERS = 9
"""The number of wrong answers that are assumed to be equally likely, as with ten options to choose from."""
_MIN_WEIGHT = 0.01
"""The smallest weight of a vote, since the vote reads no negative ones."""


def vote_weight(scored: AnswerMatrix, worker: str, *, wrong_answers: int = WRONG_ANSWERS) -> float:
    """The weight of a worker's vote, at least 0.01. For its accuracy, one right and one wrong answer are added.

    Raises:
        ConfigError: there are no answers of the worker.
    """
    if worker not in scored.workers:
        raise ConfigError(
            f"There are no scored answers of {worker!r}, from which its vote would get a weight; there are answers of "
            f"{', '.join(scored.workers)}."
        )
    score_Q = scored.score_QW[:, scored.workers.index(worker)]
    share = (score_Q.sum() + 1) / (len(score_Q) + 2)
    return max(_MIN_WEIGHT, round(math.log(share / (1 - share)) + math.log(wrong_answers), 4))


def _open_weighted_vote(context: BaselineContext) -> Committee:
    assert context.scored is not None
    known = tuple(profile.name for profile in context.pool if profile.name in context.scored.workers)
    members = context.workers(context.argument) if context.argument else known
    return Committee(members, tuple(vote_weight(context.scored, member) for member in members))


WEIGHTED_VOTE = PlannerSpec(
    "weighted-vote:A+B",
    _open_weighted_vote,
    votes=True,
    learns=True,
)
