"""Podium as a verifiers v1 environment: `vf-eval podium_verifiers`, or a source of prime-rl.

verifiers asks the policy and records what it wrote; a scoring session asks for plans, runs them over the pool and
rewards them. Nothing here trains.
"""

from podium_verifiers.env import PodiumEnv
from podium_verifiers.harness import PodiumHarness
from podium_verifiers.taskset import PodiumTaskset

__all__ = ["PodiumEnv", "PodiumHarness", "PodiumTaskset"]
