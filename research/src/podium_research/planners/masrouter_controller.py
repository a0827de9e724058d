"""MASRouter's controller: from a question's words to a team, and its training by policy gradient.

A linear map turns the question's words into a point. The controller draws a mode, then a number of members, then a role
and a worker for each member. Each draw adds a vector to the point, so later draws depend on earlier ones. `masrouter`
is the planner. It imports this module only where it opens a controller, since this one loads NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from random import Random
from typing import Literal, Self, get_args

import numpy as np
from pydantic import FiniteFloat

from podium.errors import ConfigError
from podium.evals.json_file import JsonFile
from podium.planners.answer_matrix import AnswerMatrix, Floats
from podium_research.planners.adam import Adam
from podium_research.planners.routers import text_features

Mode = Literal["io", "cot", "chain", "full", "debate", "reflection"]
MODES: tuple[Mode, ...] = get_args(Mode)
Role = Literal["solver", "starter", "finisher", "checker", "judge"]
ROLES: tuple[Role, ...] = get_args(Role)
MAX_MEMBERS = 6
TWO_ANSWER_MODES: frozenset[Mode] = frozenset({"debate", "reflection"})
"""Modes in which each member answers twice."""
MEAN_CALLS = (1 + MAX_MEMBERS) / 2 * (1 + len(TWO_ANSWER_MODES) / len(MODES))
"""Calls of a team, by mean over numbers and modes."""
FEATURES = len(text_features(""))
DIMENSIONS = 32
_NOISE = 0.1
"""Standard deviation of a point in training, and of the distribution to which the KL term draws it."""
_KL_WEIGHT = 0.001
_TEMPERATURES = {"kind": 0.5, "mode": 0.8, "number": 1.0, "role": 0.5, "worker": 1.0}

EPOCHS = 10
"""How often a controller in training sees each question."""
_BATCH = 16
_EPOCHS_ON_SCORES, _RATE_ON_SCORES = 20, 0.003
"""The settings for scored answers. Larger steps often end at a worker that is not the best one."""

Weights = Mapping[str, Floats]
"""The "encoder", [K, FEATURES], and the tables "kind", "mode", "number", "role" and "worker", [rows, K]: a row for each
of what can be drawn."""


@dataclass(frozen=True, slots=True)
class RoutedTeam:
    """Who answers a question, and how they work together."""

    mode: Mode
    members: tuple[tuple[Role, str], ...]
    """The role of each member and the name of its worker, in the order in which they work."""

    def voters(self, workers: Sequence[str]) -> tuple[str, ...]:
        """Its workers, each once, in the order of `workers`."""
        drawn = {worker for _, worker in self.members}
        return tuple(worker for worker in workers if worker in drawn)


class Controller(JsonFile):
    """The weights, and what can be drawn."""

    description = "a controller of MASRouter"

    kinds: tuple[str, ...]
    """The kinds of questions that its classifier tells apart in training."""
    modes: tuple[Mode, ...]
    roles: tuple[Role, ...]
    workers: tuple[str, ...]
    weights: dict[str, tuple[tuple[FiniteFloat, ...], ...]]
    """The arrays of `Weights`, as nested tuples of numbers."""

    @classmethod
    def untrained(
        cls,
        workers: Sequence[str],
        *,
        kinds: Sequence[str] = ("question",),
        modes: Sequence[Mode] = MODES,
        roles: Sequence[Role] = ROLES,
        seed: int = 0,
    ) -> Self:
        """A controller with random weights, before any training."""
        empty = cls(
            kinds=tuple(kinds), modes=tuple(modes), roles=tuple(roles), workers=tuple(workers), weights={}
        )
        rng = _generator(f"masrouter/weights/{seed}")
        scale = 1 / np.sqrt(DIMENSIONS)
        return empty.of({name: rng.normal(scale=scale, size=shape) for name, shape in empty.shapes.items()})

    @classmethod
    def load(cls, path: Path) -> Self:
        """The controller in a JSON file; `ConfigError` if there is none, or one whose weights have other sizes."""
        controller = super().load(path)
        for name, (rows, width) in controller.shapes.items():
            if not rows or [len(row) for row in controller.weights.get(name, ())] != [width] * rows:
                raise ConfigError(
                    f"{path}: this controller needs {max(rows, 1)} rows of {width} weights in {name!r}; train one."
                )
        return controller

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """The shape of each array of the weights."""
        rows = {
            "kind": len(self.kinds),
            "mode": len(self.modes),
            "number": MAX_MEMBERS,
            "role": len(self.roles),
            "worker": len(self.workers),
        }
        return {"encoder": (DIMENSIONS, FEATURES)} | {
            name: (count, DIMENSIONS) for name, count in rows.items()
        }

    @cached_property
    def arrays(self) -> Weights:
        """The weights as arrays. Do not change them."""
        return {name: np.array(rows) for name, rows in self.weights.items()}

    def of(self, weights: Weights) -> Self:
        """This controller with other weights."""
        rows = {name: tuple(map(tuple, array.tolist())) for name, array in weights.items()}
        return type(self)(
            kinds=self.kinds, modes=self.modes, roles=self.roles, workers=self.workers, weights=rows
        )

    def draw(self, text: str, random: Random) -> RoutedTeam:
        """Draw a team for a question."""
        point = self.arrays["encoder"] @ text_features(text)
        return self.team(
            walk(self.arrays, point, lambda share: random.choices(range(len(share)), share.tolist())[0])
        )

    def team(self, draws: Sequence[Draw]) -> RoutedTeam:
        """What the draws of a walk stand for."""
        rows = [draw.row for draw in draws]
        members = zip(rows[2::2], rows[3::2], strict=True)
        return RoutedTeam(
            self.modes[rows[0]], tuple((self.roles[role], self.workers[worker]) for role, worker in members)
        )


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw of the controller on its way to a team."""

    table: str
    activation: Floats
    """[K]: tanh of the point before the draw."""
    share: Floats
    """The probability of each row of the table."""
    row: int


def walk(weights: Weights, point: Floats, pick: Callable[[Floats], int]) -> list[Draw]:
    """All draws for a question, from the mode to the last worker.

    Args:
        point: [K], of the question.
        pick: from the probabilities of a table's rows to one of the rows.
    """
    draws: list[Draw] = []

    def draw(table: str) -> int:
        nonlocal point
        activation = np.tanh(point)
        share = _shares(weights, table, activation)
        row = pick(share)
        draws.append(Draw(table, activation, share, row))
        point = point + weights[table][row]
        return row

    draw("mode")
    for _ in range(draw("number") + 1):
        draw("role")
        draw("worker")
    return draws


@dataclass(frozen=True, slots=True)
class ControllerSample:
    """A walk for a question of the training."""

    x_F: Floats
    """The question's features."""
    kind: int
    point: Floats
    """[K]: of the question, with noise."""
    draws: Sequence[Draw]


def loss_and_gradients(
    weights: Weights, samples: Sequence[ControllerSample], utilities: Sequence[float]
) -> tuple[float, dict[str, Floats]]:
    """The mean over samples of -utility * log p(draws) + cross-entropy of the kind + 0.001 * KL, and its gradients.

    KL is that of N(m, 0.1²) against N(0, 0.1²), averaged over the K dimensions; m is the point without noise.
    """
    gradients = {name: np.zeros_like(array) for name, array in weights.items()}
    loss = 0.0

    def add(draw: Draw, weight: float) -> Floats:
        """Add -weight * log p(draw) to the loss, its gradient to that of the table, and return that of the point."""
        nonlocal loss
        loss -= weight * float(np.log(draw.share[draw.row]))
        d_logits = draw.share.copy()
        d_logits[draw.row] -= 1
        d_logits *= weight / _TEMPERATURES[draw.table]
        gradients[draw.table][:] += np.outer(d_logits, draw.activation)
        d_point: Floats = (d_logits @ weights[draw.table]) * (1 - draw.activation**2)
        return d_point

    for sample, utility in zip(samples, utilities, strict=True):
        d_point = np.zeros_like(sample.point)
        for draw in reversed(sample.draws):
            gradients[draw.table][draw.row] += d_point
            d_point = d_point + add(draw, utility / len(samples))
        activation = np.tanh(sample.point)
        kind = Draw("kind", activation, _shares(weights, "kind", activation), sample.kind)
        d_point = d_point + add(kind, 1 / len(samples))
        mean = weights["encoder"] @ sample.x_F
        kl = _KL_WEIGHT / (_NOISE**2 * len(mean) * len(samples))
        loss += kl * float(mean @ mean) / 2
        gradients["encoder"] += np.outer(d_point + kl * mean, sample.x_F)
    return loss, gradients


class ControllerTraining:
    """Policy gradient: `ask` draws teams for the next questions, and `tell` learns from the utility of each.

    A utility is 1 for a right answer and 0 for a wrong one, minus the price weight times the dollars of the team. The
    mean of the batch is subtracted from it. The same arguments and utilities give the same controller.

    Args:
        start: the controller that is trained.
        texts: Q questions.
        kinds: the kind of each, out of `start`'s kinds. Without it, all are of the first kind.
        rate: the step size.
    """

    def __init__(
        self,
        start: Controller,
        texts: Sequence[str],
        *,
        kinds: Sequence[str] | None = None,
        rate: float = 0.01,
        seed: int = 0,
    ) -> None:
        self._start = start
        self._weights = {name: array.copy() for name, array in start.arrays.items()}
        self._adam = Adam(tuple(self._weights.values()), rate)
        self._x_QF = np.stack([text_features(text) for text in texts])
        self._kind_Q = [0] * len(texts) if kinds is None else [start.kinds.index(kind) for kind in kinds]
        self._seed = seed
        self._rng = _generator(f"masrouter/draws/{seed}")
        self._asked: list[ControllerSample] = []

    def batches(self, epoch: int) -> list[list[int]]:
        """The numbers of the questions of each step of an epoch: all questions, in an order of its own."""
        rng = _generator(f"masrouter/order/{self._seed}/{epoch}")
        order: list[int] = rng.permutation(len(self._x_QF)).tolist()
        return [order[first : first + _BATCH] for first in range(0, len(order), _BATCH)]

    def ask(self, batch: Sequence[int]) -> list[RoutedTeam]:
        """Teams for the questions with these numbers."""
        self._asked = [self._sample(question) for question in batch]
        return [self._start.team(sample.draws) for sample in self._asked]

    def tell(self, utilities: Sequence[float | None]) -> None:
        """Learn from the utilities of the teams that `ask` returned last, each None if the team could not be tried."""
        utility_of = [
            (sample, utility)
            for sample, utility in zip(self._asked, utilities, strict=True)
            if utility is not None
        ]
        if not utility_of:
            return
        mean = sum(utility for _, utility in utility_of) / len(utility_of)
        _, gradients = loss_and_gradients(
            self._weights, [sample for sample, _ in utility_of], [utility - mean for _, utility in utility_of]
        )
        self._adam.step(tuple(gradients.values()))

    @property
    def controller(self) -> Controller:
        """The controller as trained so far."""
        return self._start.of(self._weights)

    def _sample(self, question: int) -> ControllerSample:
        x_F = self._x_QF[question]
        point = self._weights["encoder"] @ x_F + self._rng.normal(scale=_NOISE, size=DIMENSIONS)

        def pick(share: Floats) -> int:
            return int(self._rng.choice(len(share), p=share))

        return ControllerSample(x_F, self._kind_Q[question], point, walk(self._weights, point, pick))


def train_on_scores(scored: AnswerMatrix, *, per_usd: float, seed: int = 0) -> Controller:
    """A controller that draws workers for a vote, trained on scored answers; its workers are the most accurate first.

    Single answers cannot train what workers do with the work of others, so it has one mode and one role. A worker that
    is drawn twice votes once.
    """
    order = np.argsort(-scored.score_QW.mean(axis=0), kind="stable").tolist()
    ranked = tuple(scored.workers[worker] for worker in order)
    training = ControllerTraining(
        Controller.untrained(ranked, modes=("io",), roles=("solver",), seed=seed),
        scored.texts,
        rate=_RATE_ON_SCORES,
        seed=seed,
    )

    @cache
    def worth_of(voters: tuple[str, ...]) -> Floats:
        score_Q, cost_Q = scored.vote(tuple(map(scored.workers.index, voters)))
        worth_Q: Floats = score_Q - per_usd * cost_Q
        return worth_Q

    for batch in chain.from_iterable(map(training.batches, range(_EPOCHS_ON_SCORES))):
        votes = [worth_of(team.voters(ranked)) for team in training.ask(batch)]
        training.tell([float(worth_Q[question]) for question, worth_Q in zip(batch, votes, strict=True)])
    return training.controller


def _generator(name: str) -> np.random.Generator:
    """A generator that the name seeds."""
    return np.random.default_rng([*name.encode()])


def _shares(weights: Weights, table: str, activation: Floats) -> Floats:
    """The probability of each row of a table."""
    logits = weights[table] @ activation / _TEMPERATURES[table]
    odds = np.exp(logits - logits.max())
    shares: Floats = odds / odds.sum()
    return shares
