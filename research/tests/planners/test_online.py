"""LinUCB and Thompson sampling: they leave a worker that turned bad, whatever comes late or never."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest

from podium.errors import ConfigError, WorkerError
from podium.planners import open_baseline
from podium.planners.planner import OnlinePlanner
from podium.team import Runner
from podium.trace import Trace
from podium.types import Profile, Question, Rating
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium_research.planners.online import _CLUSTER, _DISCOUNT, _EXPLORATION, _RATED_PENALTY, OnlineRouter

KINDS = ("sums", "dates", "words", "codes")
ACCURACY = {"ada": 0.9, "bob": 0.7, "cy": 0.6, "dee": 0.5}


def team(kind: str, *, cost_usd: float = 0.01) -> Pool:
    """Workers that are rated as good as they are at first."""
    return Pool(
        [
            ScriptedWorker(
                name,
                {"": "42"},
                profile=Profile(
                    name=name,
                    rating=Rating(cluster=kind, accuracy=accuracy, cost_usd=cost_usd, questions=40),
                ),
            )
            for name, accuracy in ACCURACY.items()
        ]
    )


@dataclass
class Stream:
    """Questions one after the other, with the outcomes of their answers."""

    planner: OnlinePlanner
    random: Random
    late: int = 0
    """An outcome comes at most this many questions late, in any order."""
    missing: float = 0.0
    """Share of outcomes that never come."""
    chosen: list[str] = field(default_factory=list)
    _coming: list[tuple[int, Trace, float]] = field(default_factory=list)

    async def ask(self, accuracy: dict[str, float]) -> None:
        number, kind = len(self.chosen), self.random.choice(KINDS)
        trace = await Runner(self.planner, team(kind)).answer(
            Question(text=f"Question {number} about {kind}?"), seed=str(number)
        )
        (span,) = trace.spans
        self.chosen.append(span.worker)
        if self.random.random() >= self.missing:
            score = float(self.random.random() < accuracy[self.chosen[-1]])
            self._coming.append((number + self.random.randint(0, self.late), trace, score))
        for due in [each for each in self._coming if each[0] <= number]:
            self._coming.remove(due)
            self.planner.learn(due[1], due[2])


async def questions_until_left(stream: Stream) -> int:
    """How many questions after ada turned bad the first ten begin of which it gets none."""
    for _ in range(60):
        await stream.ask(ACCURACY)
    for _ in range(70):
        await stream.ask(ACCURACY | {"ada": 0.1})
    later = stream.chosen[60:]
    return next((k for k in range(len(later) - 10) if "ada" not in later[k : k + 10]), len(later))


@pytest.mark.parametrize("name", ["linucb:0", "thompson:0"])
@pytest.mark.parametrize(("late", "missing"), [(0, 0.0), (5, 0.2)])
async def test_online_router_drops_a_failing_worker_within_fifty_questions(
    name: str, late: int, missing: float
) -> None:
    for seed in range(3):
        planner = open_baseline(name, team("sums").profiles)
        assert isinstance(planner, OnlinePlanner)
        stream = Stream(planner, Random(f"stream/{seed}"), late=late, missing=missing)
        assert await questions_until_left(stream) <= 50
        assert stream.chosen[:60].count("ada") > 30, "before that it was used"


async def test_ridge_regression_by_least_squares_makes_the_same_choice() -> None:
    planner = OnlineRouter()
    stream = Stream(planner, Random("least squares"))
    for _ in range(40):
        expected = {kind: by_least_squares(planner, kind) for kind in KINDS}
        await stream.ask(ACCURACY | {"ada": 0.5})
        assert stream.chosen[-1] == expected[str(planner._evidence[-1].kind)]
    assert len(set(stream.chosen)) > 1


def by_least_squares(planner: OnlineRouter, kind: str) -> str:
    """The choice for a question of this cluster, with the penalty as further rows of a least-squares problem."""

    def x(of: str | None) -> list[float]:
        return [1.0, *(_CLUSTER * (of == each) for each in KINDS)]

    worth = {}
    for name, rated in ACCURACY.items():
        own = [evidence for evidence in planner._evidence if evidence.worker == name]
        root = [_DISCOUNT ** (age / 2) for age in reversed(range(len(own)))]
        rows = [[w * value for value in x(e.kind)] for w, e in zip(root, own, strict=True)]
        matrix = np.vstack([*rows, np.sqrt(_RATED_PENALTY) * np.eye(5)])
        target = [*(w * e.surprise for w, e in zip(root, own, strict=True)), *[0.0] * 5]
        surprise = np.linalg.lstsq(matrix, np.array(target), rcond=None)[0] @ x(kind)
        worth[name] = rated + surprise + _EXPLORATION * np.linalg.norm(np.linalg.pinv(matrix).T @ x(kind))
    return max(worth, key=lambda name: worth[name])


@pytest.mark.parametrize("fallback", ["cheap", None])
async def test_online_router_credits_the_fallback_that_answered(fallback: str | None) -> None:
    pool = Pool(
        [
            ScriptedWorker("down", {"": WorkerError("Down.", kind="protocol")}, fallback=fallback),
            ScriptedWorker("cheap", {"": "42"}),
        ]
    )
    planner = OnlineRouter()
    trace = await Runner(planner, pool).answer(Question(text="What is 6 x 7?"))
    assert trace.spans[0].worker == "down"
    planner.learn(trace, 1.0)
    assert [evidence.worker for evidence in planner._evidence] == ([fallback] if fallback else [])


async def test_online_router_weighs_dollars_and_refuses_a_malformed_price() -> None:
    dear = Profile(name="dear", rating=Rating(cluster="sums", accuracy=0.9, cost_usd=0.1, questions=40))
    cheap = Profile(name="cheap", rating=Rating(cluster="sums", accuracy=0.8, cost_usd=0.01, questions=40))
    pool = Pool([ScriptedWorker("", {"": "42"}, profile=profile) for profile in (dear, cheap)])
    for per_usd, wanted in ((0, "dear"), (10, "cheap")):
        planner = open_baseline(f"linucb:{per_usd}", pool.profiles)
        trace = await Runner(planner, pool).answer(Question(text="What is 6 x 7?"))
        assert trace.spans[0].worker == wanted
    with pytest.raises(ConfigError, match=r"'thompson:dear' needs the accuracy that a dollar has to buy"):
        open_baseline("thompson:dear", pool.profiles)
