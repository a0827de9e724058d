"""Advantages within a group."""

from __future__ import annotations

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.train.objective import Advantages, Rewards, grpo_advantages


def advantages(rewards: Rewards, std_eps: float = 1e-4) -> Advantages:
    """Of one group."""
    (found,) = grpo_advantages([rewards], std_eps=std_eps)
    return found


rewards = st.lists(st.none() | st.floats(0, 1, width=32), min_size=1, max_size=64)


def test_the_papers_formula() -> None:
    assert advantages([0.0, 0.5, 1.0]) == pytest.approx((-0.5 / 0.5001, 0.0, 0.5 / 0.5001))


@given(st.floats(0, 1), st.integers(1, 64))
def test_equal_rewards_give_exact_zeros(reward: float, count: int) -> None:
    assert advantages([reward] * count) == (0.0,) * count


@given(rewards)
def test_rollouts_that_failed_are_left_out(group: list[float | None]) -> None:
    known = [reward for reward in group if reward is not None]
    given_all = advantages(group)
    assert [advantage is None for advantage in given_all] == [reward is None for reward in group]
    assert tuple(advantage for advantage in given_all if advantage is not None) == advantages(known)


@given(rewards)
def test_advantages_have_mean_zero_and_keep_the_order(group: list[float | None]) -> None:
    pairs = [
        (reward, advantage)
        for reward, advantage in zip(group, advantages(group), strict=True)
        if reward is not None and advantage is not None
    ]
    assert fmean([advantage for _, advantage in pairs] or [0.0]) == pytest.approx(0, abs=1e-9)
    in_order = [advantage for _, advantage in sorted(pairs)]
    assert in_order == sorted(in_order)


def test_a_larger_std_eps_keeps_small_differences_small() -> None:
    by_cost, by_answer = [0.99, 0.98, 0.97, 0.96], [0.5, 1.0, 0.5, 1.0]
    assert max(advantages(by_cost)) > 0.9 * max(advantages(by_answer))  # type: ignore[type-var]
    assert max(advantages(by_cost, 0.1)) < 0.25 * max(advantages(by_answer, 0.1))  # type: ignore[type-var]
