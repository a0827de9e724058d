"""Rollouts: a planner answers a task, a grader judges the answer. Evaluation and training both use this package."""

from podium.rollout.reward import (
    PENALTY_CAP,
    Reward,
    RewardSettings,
    discounted_rewards,
    reward,
    round_reward,
)
from podium.rollout.rollout import Rollout, run_rollout

__all__ = [
    "PENALTY_CAP",
    "Reward",
    "RewardSettings",
    "Rollout",
    "discounted_rewards",
    "reward",
    "round_reward",
    "run_rollout",
]
