"""TRINITY (arXiv 2512.04695): a linear head chooses in each turn a worker and its role, by what was written so far.

The roles are thinker, worker and verifier; the first answer that a verifier accepts ends it, at the latest after five
turns. The head is small enough to be trained without gradients, by sep-CMA-ES (Ros & Hansen 2008) from the package
`cmaes`. The original reads the hidden state of a language model with 0.6 billion parameters; this one hashes words. So
it tells questions apart by their words only, and says nothing about the original's accuracy.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np
from pydantic import ValidationError

from podium.baselines.baseline import Baseline, BaselineContext, Floats, ScoredAnswers
from podium.baselines.phrases import WHOLE
from podium.baselines.plans import position_of
from podium.baselines.rounds import Draft, Rounds, StepOf, all_rounds, plan_rounds, step_of
from podium.baselines.routers import text_features
from podium.errors import ConfigError
from podium.planner import Plan, PlanRequest
from podium.types import Value
from podium.workflow import Workflow

Role = Literal["thinker", "worker", "verifier"]
ROLES: tuple[Role, ...] = ("thinker", "worker", "verifier")
_SUBTASKS: dict[Role, str] = {
    "thinker": "Do not answer the question. Say how to go on: a plan, its parts, or what is wrong with the work.",
    "worker": WHOLE,
    "verifier": "Check the latest answer that you are shown. End with ACCEPT if it is right, otherwise with REVISE.",
}
_TURNS = 5
_VERDICT = re.compile(r"\b(ACCEPT|REVISE)\b")
_TEXT_FEATURES = len(text_features(""))
FEATURES = _TEXT_FEATURES + len(ROLES) + 1
"""Hashed words of all that was written, then one that is 1: the last turn's role, or that there was none."""


class Head(Value):
    """A bias-free linear head."""

    workers: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    """[W + 3, FEATURES]: a row for each worker, then one for each role."""

    @classmethod
    def untrained(cls, workers: Sequence[str]) -> Self:
        """Always the first worker. It answers, and then verifies; after a REVISE it answers again."""
        weights = np.zeros((len(workers) + len(ROLES), FEATURES))
        answers, verifies = len(workers) + ROLES.index("worker"), len(workers) + ROLES.index("verifier")
        weights[answers, _TEXT_FEATURES:] = 1.0
        weights[verifies, _TEXT_FEATURES + ROLES.index("worker")] = 2.0
        return cls.of(workers, weights)

    @classmethod
    def of(cls, workers: Sequence[str], weights: Floats) -> Self:
        return cls(workers=tuple(workers), weights=tuple(map(tuple, weights.tolist())))

    def choose(self, features: Floats) -> tuple[str, Role]:
        """The worker and the role with the highest logits."""
        logits = np.asarray(self.weights) @ features
        count = len(self.workers)
        return self.workers[int(np.argmax(logits[:count]))], ROLES[int(np.argmax(logits[count:]))]


@dataclass(frozen=True, slots=True)
class Trinity:
    """Plans one step at a time, as `head` chooses."""

    rounds = _TURNS + 1

    head: Head
    name: str = "trinity"

    async def plan(self, request: PlanRequest) -> Plan:
        """The next turn, or the accepted answer; `ConfigError` if the pool lacks a worker."""
        return plan_rounds(request, self._rounds(request))

    def _rounds(self, request: PlanRequest) -> Rounds:
        text, last = request.question.text, None
        said: list[StepOf] = []
        answer: StepOf | None = None
        turns = max(1, min(_TURNS, all_rounds(request) - 1))
        for number in range(turns):
            worker, role = self.head.choose(features_of(text, last))
            if answer is None and (role == "verifier" or number == turns - 1):
                role = "worker"  # There is nothing to verify, or no later turn to answer in.
            step = step_of(request, worker, _SUBTASKS[role], sees=bool(said))
            outcome = yield Draft(Workflow((step,)), tuple(said))
            last, response = role, outcome.responses[0]
            if response is None:
                continue
            said.append((number, 0))
            text += f"\n{response}"
            if role == "worker":
                answer = (number, 0)
            elif role == "verifier" and _VERDICT.findall(response)[-1:] == ["ACCEPT"]:
                break
        return answer


def features_of(text: str, last: Role | None) -> Floats:
    """[FEATURES] of the question with all responses so far, and of the last turn's role."""
    state = np.zeros(len(ROLES) + 1)
    state[-1 if last is None else ROLES.index(last)] = 1.0
    return np.concatenate([text_features(text), state])


def evolution(
    start: Floats, *, generations: int = 60, population: int = 32, sigma: float = 0.03, seed: int = 0
) -> Generator[Floats, float, Floats]:
    """sep-CMA-ES: yields weights in the shape of `start`, is sent the mean reward of each, and returns their mean.

    The defaults are the paper's, which averages 16 replications for a reward.

    Raises:
        ConfigError: the package `cmaes` is not installed.
    """
    try:
        from cmaes import SepCMA  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise ConfigError(
            "A head is trained with cmaes, which is not installed: pip install 'podium-conductor[trinity]'."
        ) from None
    search = SepCMA(start.ravel(), sigma, population_size=population, seed=seed)
    for _ in range(generations):
        losses: list[tuple[Floats, float]] = []
        for _ in range(population):
            weights = search.ask()
            reward = yield weights.reshape(start.shape)
            losses.append((weights, -reward))
        search.tell(losses)
    return np.asarray(search.mean).reshape(start.shape)


def train_head(scored: ScoredAnswers, *, seed: int = 0) -> Head:
    """A head whose rows of workers are trained on scored answers; single answers cannot train the rows of roles."""
    x_QF = np.stack([features_of(text, None) for text in scored.texts])
    count, questions = len(scored.workers), np.arange(len(scored.texts))
    head = Head.untrained(scored.workers)
    search = evolution(np.zeros((count, FEATURES)), seed=seed)
    rows = next(search)
    while True:
        chosen_Q = (x_QF @ rows.T).argmax(axis=1)
        try:
            rows = search.send(float(scored.score_QW[questions, chosen_Q].mean()))
        except StopIteration as end:
            return Head.of(scored.workers, np.vstack([end.value, np.asarray(head.weights)[count:]]))


def _open_file(file: str, context: BaselineContext) -> Trinity:
    path = Path(file)
    if not file or not path.is_file():
        raise ConfigError(f"trinity:{file}: there is no such file; write trinity:FILE with a head's JSON.")
    try:
        head = Head.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ConfigError(f"{path} is no head of TRINITY ({error.errors()[0]['msg']}); train one.") from None
    shape = [len(row) for row in head.weights]
    if shape != [FEATURES] * (len(head.workers) + len(ROLES)) or not head.workers:
        raise ConfigError(
            f"{path}: a head of {len(head.workers)} workers needs {len(head.workers) + len(ROLES)} rows of {FEATURES} "
            "weights; train one."
        )
    for worker in head.workers:
        position_of(worker, context.pool)
    return Trinity(head, f"trinity:{file}")


def _open_scored(argument: str, context: BaselineContext) -> Trinity:
    assert context.scored is not None
    scored, names = context.scored, {profile.name for profile in context.pool}
    kept = [w for w, worker in enumerate(scored.workers) if worker in names]
    if not kept or not scored.texts:
        raise ConfigError(
            "The planner 'trinity-scored' learns from answers of the pool's workers, and there are none; give training "
            "questions that they answered."
        )
    workers = tuple(scored.workers[w] for w in kept)
    known = ScoredAnswers(workers, scored.texts, scored.score_QW[:, kept], scored.cost_QW[:, kept])
    return Trinity(train_head(known), "trinity-scored")


FROM_FILE = Baseline("trinity:FILE", _open_file, reads_files=True, on_recordings=False)
FROM_SCORES = Baseline("trinity-scored", _open_scored, learns=True, team_only=True, on_recordings=False)
