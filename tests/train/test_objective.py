"""Advantages within a group."""

from __future__ import annotations

from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.train.objective import (
    ADVANTAGES,
    WRONG_PLAN_VALUE,
    Advantages,
    Rewards,
    grpo_advantages,
    maxrl_advantages,
)


def advantages(rewards: Rewards, std_eps: float = 1e-4, *, name: str = "grpo") -> Advantages:
    """Of one group."""
    (found,) = ADVANTAGES[name]([rewards], scale_rewards="group", std_eps=std_eps)
    return found


rewards = st.lists(st.none() | st.floats(0, 1, width=32), min_size=1, max_size=64)


def test_the_papers_formula() -> None:
    assert advantages([0.0, 0.5, 1.0]) == pytest.approx((-0.5 / 0.5001, 0.0, 0.5 / 0.5001))


@pytest.mark.parametrize("name", ADVANTAGES)
@given(st.floats(0, 1), st.integers(1, 64))
def test_equal_rewards_give_exact_zeros(name: str, reward: float, count: int) -> None:
    assert advantages([reward] * count, name=name) == (0.0,) * count


@pytest.mark.parametrize("name", ADVANTAGES)
@given(rewards)
def test_rollouts_that_failed_are_left_out(name: str, group: list[float | None]) -> None:
    known = [reward for reward in group if reward is not None]
    given_all = advantages(group, name=name)
    assert [advantage is None for advantage in given_all] == [reward is None for reward in group]
    assert tuple(advantage for advantage in given_all if advantage is not None) == advantages(
        known, name=name
    )


@pytest.mark.parametrize("name", ADVANTAGES)
@given(rewards)
def test_advantages_have_mean_zero_and_keep_the_order(name: str, group: list[float | None]) -> None:
    pairs = [
        (reward, advantage)
        for reward, advantage in zip(group, advantages(group, name=name), strict=True)
        if reward is not None and advantage is not None
    ]
    assert fmean([advantage for _, advantage in pairs] or [0.0]) == pytest.approx(0, abs=1e-9)
    in_order = [advantage for _, advantage in sorted(pairs)]
    assert in_order == sorted(in_order)


GROUPS = [[0.99, 0.98, 0.97, 0.96], [0.5, None, 1.0, 0.5, 1.0], [0.7, 0.7]]


def test_rewards_are_scaled_by_deviation_of_group_or_batch_or_not_at_all() -> None:
    by_group, by_batch, unscaled = (
        grpo_advantages(GROUPS, scale_rewards=scale, std_eps=0.1) for scale in ("group", "batch", "none")
    )
    everything = stdev([reward for rewards in GROUPS for reward in rewards if reward is not None])
    for rewards, *found in zip(GROUPS, by_group, by_batch, unscaled, strict=True):
        known = [reward for reward in rewards if reward is not None]
        for advantages, scale in zip(found, (stdev(known) + 0.1, everything + 0.1, 1.0), strict=True):
            assert list(advantages) == [
                None if reward is None else pytest.approx((reward - fmean(known)) / scale)
                for reward in rewards
            ]
    assert by_group[2] == by_batch[2] == unscaled[2] == (0.0, 0.0)


def test_maxrl_weighs_rare_right_plans_more() -> None:
    """Among valid plans its advantage is 1 / p - 1, but for what wrong plans are worth."""
    of_right = [maxrl_advantages([[1.0] * k + [0.5] * (16 - k)])[0][0] or 0.0 for k in range(1, 16)]
    assert of_right == sorted(of_right, reverse=True)
    assert all(0.5 * (16 / k - 1) < found < 16 / k - 1 for k, found in enumerate(of_right, 1))


def test_maxrl_ranks_invalid_plans_below_wrong_plans() -> None:
    half = WRONG_PLAN_VALUE / 2
    assert maxrl_advantages([[0.0, 0.5]])[0] == pytest.approx(
        (-half / WRONG_PLAN_VALUE, half / WRONG_PLAN_VALUE)
    )
    (valid,) = {a for a in maxrl_advantages([[0.5] + [0.0] * 15])[0] if a and a > 0}
    (right,) = {a for a in maxrl_advantages([[1.0] + [0.0] * 15])[0] if a and a > 0}
    assert 10 * valid < right


def test_maxrl_prefers_cheaper_plans_among_right_and_among_wrong_plans() -> None:
    for cheap, dear in ((0.99, 0.95), (0.49, 0.45)):
        first, second = maxrl_advantages([[cheap, dear]])[0]
        assert first is not None
        assert second is not None
        assert first > 0 > second
