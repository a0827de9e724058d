"""Podium as an environment of tinker-cookbook: `python -m podium_tinker.train` trains a Conductor on Tinker's GPUs.

Tinker samples and updates; a scoring session asks for plans, runs them over the pool and rewards them.
"""

from podium_tinker.dataset import PodiumDataset, PodiumDatasetBuilder, PodiumGroupBuilder
from podium_tinker.env import PodiumEnv, WorkersFailedError

__all__ = ["PodiumDataset", "PodiumDatasetBuilder", "PodiumEnv", "PodiumGroupBuilder", "WorkersFailedError"]
