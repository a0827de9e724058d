"""The rewards of recursive rollouts, against a table computed by hand."""

from __future__ import annotations

import pytest

from podium.scoring import Score
from podium.train.metrics import batch_figures
from podium.train.rollouts import RolloutSample, with_rewards
from podium.train.schedule import ScheduledGroup


def _sample(round_: int, rollout: int, reward: float | None) -> RolloutSample:
    score = Score(reward=reward, valid=bool(reward), correct=reward == 1.0)
    row = ScheduledGroup(iteration=0, question=0, round=round_, task="t", name="train/0/0/0")
    return RolloutSample(row, rollout, tokens=(1,), score=score)


TABLE = [
    # r0, r1, reward of round 0 with d = 0.25, reward of round 1
    (1.0, 1.0, 1.0, 1.0),
    (1.0, 0.5, 0.875, 0.5),
    (0.5, 1.0, 0.625, 1.0),
    (0.5, 0.0, 0.375, 0.0),
    (1.0, None, 1.0, None),
]


def test_a_plan_earns_its_own_reward_and_a_share_of_the_next_rounds() -> None:
    samples = []
    for rollout, (r0, r1, _, _) in enumerate(TABLE):
        samples += [_sample(0, rollout, r0), _sample(1, rollout, r1)]

    samples = with_rewards(samples, discount=0.25)

    assert [sample.reward for sample in samples if sample.group.round == 0] == pytest.approx(
        [row[2] for row in TABLE]
    )
    assert [sample.reward for sample in samples if sample.group.round == 1] == [row[3] for row in TABLE]


def test_a_rollout_that_ended_in_its_first_round_has_its_own_reward_alone() -> None:
    unreached = RolloutSample(ScheduledGroup(0, 0, 1, "t", "train/0/0/0"), 0)

    samples = with_rewards([_sample(0, 0, 0.0), unreached], discount=0.25)

    assert [sample.reward for sample in samples] == [0.0, None]


def test_figures_count_rollouts_after_their_last_round_without_failures() -> None:
    samples = [_sample(0, 0, 0.5), _sample(1, 0, 1.0), _sample(0, 1, 1.0), _sample(1, 1, None)]

    figures = batch_figures(with_rewards(samples, discount=0.25))

    assert figures["accuracy"] == 1.0  # Round 1 of the first, round 0 of the second.
    assert figures["dropped"] == 1
    assert figures["zero_variance_groups"] == 0.5  # 0.625 and 1.0; 1.0 alone.
    assert figures["unrewarded_groups"] == 0.0


def test_group_without_rewards_is_not_a_zero_variance_group() -> None:
    samples = [_sample(0, 0, 1.0), _sample(0, 1, 0.5), _sample(1, 0, None), _sample(1, 1, None)]

    figures = batch_figures(with_rewards(samples, discount=0.25))

    assert (figures["zero_variance_groups"], figures["unrewarded_groups"]) == (0.0, 0.5)
