"""What a rollout draws beside its plans: its pool, its level of cost sensitivity, the seed of its calls."""

from __future__ import annotations

from random import Random

from podium.scoring.protocol import RolloutRequest


class Draws:
    """Draws that the seed of a rollout's group and its task name."""

    def pool(self, request: RolloutRequest) -> str:
        """Names the draw of the pool; the rollouts of a group have the same."""
        return f"{request.seed}/{request.task}"

    def level(self, request: RolloutRequest, levels: int) -> int:
        """One of so many levels of cost sensitivity; the rollouts of a group have the same."""
        return Random(f"cost sensitivity/{request.seed}/{request.task}").randrange(levels)

    def calls(self, request: RolloutRequest) -> str:
        """The seed of the workers' calls; each rollout has its own."""
        return f"{request.seed}/{request.task}/{request.rollout}"
