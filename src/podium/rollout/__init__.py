"""Rollouts: a task, answered by a planner and graded. Evaluation and training stand on it."""

from podium.rollout.reward import PENALTY_CAP, Reward, RewardSettings, reward
from podium.rollout.rollout import Rollout, roll
from podium.rollout.scorer import Scorer
from podium.rollout.written import Written

__all__ = ["PENALTY_CAP", "Reward", "RewardSettings", "Rollout", "Scorer", "Written", "reward", "roll"]
