"""Runs in which a policy sees what came of its plan, and is kept near where it began."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import pytest
import torch
from pydantic import ValidationError
from tiny_run import PLANS, SETTINGS, draw, run, score, write_start

from podium.conductor.checkpoint import Checkpoint
from podium.errors import GraderError
from podium.executor import Dispatcher
from podium.executor.accounts import Account
from podium.planner import Plan, Planner, PlanRequest
from podium.rollout import FixedPlan, Rollout, Scorer
from podium.rollout.run_folder import RunFolder
from podium.tasks.task import Grade, Grader, Task
from podium.train.checkpoints import read_model
from podium.train.settings import GRPOSettings
from podium.types import Budget
from podium.workers.pool import Pool
from podium.workflow import parse

TWO = SETTINGS.model_copy(update={"rounds": 2})
HELD = TWO.model_copy(update={"beta": 0.05, "beta_end": 0.01, "skip_suffix_min_prob": 0.99})


def rows(folder: Path) -> list[dict]:
    """Metrics without what the clock says."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in RunFolder(folder).rows().read()]


async def test_training_in_two_rounds_raises_the_reward(tmp_path: Path) -> None:
    start = write_start(tmp_path / "start", accepts=True)
    await run(tmp_path / "run", start, TWO)
    rewards = [row["reward"] for row in rows(tmp_path / "run")]
    assert fmean(rewards[:2]) < 0.6
    assert fmean(rewards[-6:]) > 0.8


async def test_with_a_discount_both_rounds_learn_from_their_own_answers(tmp_path: Path) -> None:
    scorer = Scorer(budget=Budget(rounds=2), discount=0.25)
    start = write_start(tmp_path / "start", accepts=True)
    await run(tmp_path / "run", start, TWO.model_copy(update={"discount": 0.25}), score=scorer.roll)
    rewards = [row["reward"] for row in rows(tmp_path / "run")]
    assert fmean(rewards[:2]) < 0.7
    assert fmean(rewards[-6:]) > 0.8


async def test_a_round_earns_for_its_own_answer_and_a_share_of_what_the_next_one_earns() -> None:
    scorer = Scorer(budget=Budget(rounds=2), discount=0.25)
    seen = set()
    for number in range(12):
        task, pool = draw(number)[0]
        rollout = await scorer.roll(Onwards(FixedPlan(PLANS[1])), task, pool, seed=f"{number}")
        assert rollout is not None
        first, second = [
            0.5 + 0.5 * (await task.grade(round_.response or "")).correct for round_ in rollout.trace.rounds
        ]
        assert rollout.earned == (0.75 * first + 0.25 * second, second)
        seen.add(rollout.earned)
    assert len(seen) > 1


async def roll_graded_by(grader: Grader, account: Account) -> Rollout | None:
    """A rollout of two rounds, which are rewarded apart."""
    scorer = Scorer(budget=Budget(rounds=2), discount=0.25, dispatcher=Dispatcher(accounts=[account]))
    task, pool = draw(0)[0]
    return await scorer.roll(Onwards(FixedPlan(PLANS[1])), replace(task, grader=grader), pool, seed="0")


async def test_the_grade_of_each_round_is_paid_from_the_budget_of_the_run() -> None:
    account = Account(None, "run", 9.0)

    async def paid(response: str, gold: str) -> Grade:
        return Grade(score=1.0, cost_usd=0.5)

    assert await roll_graded_by(paid, account) is not None
    assert account.spent_usd == pytest.approx(1.0, abs=0.01), "two grades, and calls of a hundredth of a cent"


async def test_a_grader_that_fails_on_the_answer_of_the_first_round_leaves_the_rollout_out() -> None:
    account = Account(None, "run", 9.0)
    graded: list[str] = []

    async def fails_on_the_second_call(response: str, gold: str) -> Grade:
        graded.append(response)
        if len(graded) == 2:  # The last round's answer is graded first.
            raise GraderError("The judge is out of order.", cost_usd=0.5)
        return Grade(score=1.0, cost_usd=0.5)

    assert await roll_graded_by(fails_on_the_second_call, account) is None
    assert len(graded) == 2
    assert account.spent_usd == pytest.approx(1.0, abs=0.01)


@dataclass(frozen=True)
class Onwards:
    """Plans the poor worker first, whatever the question; the policy plans the later rounds."""

    policy: Planner
    name: str = "onwards"

    async def plan(self, request: PlanRequest) -> Plan:
        if request.outcomes:
            return await self.policy.plan(request)
        return Plan(PLANS[0], parse(PLANS[0], workers=3))


async def test_a_policy_learns_what_to_write_in_a_second_round(tmp_path: Path) -> None:
    scorer = Scorer(budget=Budget(rounds=2))

    async def onwards(
        planner: Planner, task: Task, pool: Pool, *, seed: str, cost_sensitivity: int = 0
    ) -> Rollout | None:
        return await scorer.roll(Onwards(planner), task, pool, seed=seed)

    await run(tmp_path / "run", write_start(tmp_path / "start", accepts=True), TWO, score=onwards)
    trained = rows(tmp_path / "run")
    assert {row["workers"]["poor"] for row in trained} == {1.0}, "a first plan was not the one that is given"
    assert fmean(row["accuracy"] for row in trained[:2]) < 0.5
    assert fmean(row["accuracy"] for row in trained[-6:]) > 0.75


class OutageError(Exception):
    """What a test breaks a run off with."""


@dataclass(frozen=True)
class Breaking:
    """Ends the run in the second round."""

    policy: Planner
    name: str = "breaking"

    async def plan(self, request: PlanRequest) -> Plan:
        if request.outcomes:
            raise OutageError
        return await self.policy.plan(request)


async def test_a_run_that_breaks_off_in_a_second_round_and_is_resumed_has_the_metrics_of_one_that_does_not(
    tmp_path: Path,
) -> None:
    start = write_start(tmp_path / "start", accepts=True)
    whole = await run(tmp_path / "whole", start, HELD)

    async def breaks(
        planner: Planner, task: Task, pool: Pool, *, seed: str, cost_sensitivity: int = 0
    ) -> Rollout | None:
        planner = Breaking(planner) if task.id.startswith("sums/6/") else planner
        return await score(planner, task, pool, seed=seed, rounds=2)

    broken = tmp_path / "broken"
    with pytest.raises(OutageError):
        await run(broken, start, HELD, score=breaks)
    assert rows(broken) == rows(tmp_path / "whole")[:6]
    resumed = await run(broken, start, HELD)

    assert rows(broken) == rows(tmp_path / "whole")
    assert len(rows(broken)) == HELD.iterations
    for name, weight in read_model(Checkpoint.read(whole)).state_dict().items():
        assert torch.equal(weight, read_model(Checkpoint.read(resumed)).state_dict()[name]), name


async def log_ratios(folder: Path, start: Checkpoint, **settings: object) -> list[float]:
    """The metric "kl" of a run's iterations."""
    await run(folder, start, SETTINGS.model_copy(update=settings))
    return [row["kl"] for row in rows(folder)]


async def test_the_dearer_a_nat_the_nearer_the_policy_stays_to_its_start(tmp_path: Path) -> None:
    start = write_start(tmp_path / "start", accepts=True)
    free, held = [
        await log_ratios(tmp_path / f"{beta}", start, rounds=2, iterations=12, beta=beta)
        for beta in (1e-9, 0.5)
    ]
    assert free[0] == held[0] == pytest.approx(0.0, abs=1e-4), "no step was taken before the first batch"
    assert fmean(free[-4:]) > 4 * fmean(held[-4:]) > 0


async def test_a_weight_that_falls_lets_the_policy_go(tmp_path: Path) -> None:
    start = write_start(tmp_path / "start")
    kept, freed = [
        await log_ratios(tmp_path / f"{end}", start, iterations=16, beta=3.0, beta_end=end)
        for end in (None, 1e-6)
    ]
    assert fmean(freed[-4:]) > 2 * fmean(kept[-4:])


async def test_without_a_kl_weight_no_kl_is_measured(tmp_path: Path) -> None:
    assert await log_ratios(tmp_path / "run", write_start(tmp_path / "start"), iterations=3) == [0.0] * 3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rounds", 0),
        ("beta", -0.1),
        ("beta_end", -0.1),
        ("skip_suffix_min_prob", 0.0),
        ("skip_suffix_min_prob", 1.01),
    ],
)
def test_settings_without_a_meaning_are_refused(field: str, value: float) -> None:
    with pytest.raises(ValidationError, match=f"^1 validation error for GRPOSettings\n{field}\n"):
        GRPOSettings(**{field: value})
