"""The draws of the engine small, by the names under which its published policies were trained."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from podium.scoring.protocol import RolloutRequest
from podium.scoring.session import Draws
from podium.train.schedule import ScheduledGroup


class IterationDraws(Draws):
    """Draws that a run's seed and the iteration name; other rollouts, such as those of evaluations, draw as elsewhere.

    Args:
        rows: of the run.
        seed: the run's.
    """

    def __init__(self, rows: Sequence[ScheduledGroup], seed: int) -> None:
        self._rows = {row.seed: row for row in rows}
        self._seed = seed

    def pool(self, request: RolloutRequest) -> str:
        """See `Draws.pool`."""
        row = self._rows.get(request.seed)
        return super().pool(request) if row is None else f"{self._seed}/{row.iteration}/{request.task}"

    def level(self, request: RolloutRequest, levels: int) -> int:
        """See `Draws.level`. The questions of an iteration draw one after the other."""
        row = self._rows.get(request.seed)
        if row is None:
            return super().level(request, levels)
        random = Random(f"train/{self._seed}/{row.iteration}/thrift")
        return [random.randrange(levels) for _ in range(row.question + 1)][-1]

    def calls(self, request: RolloutRequest) -> str:
        """See `Draws.calls`."""
        row = self._rows.get(request.seed)
        if row is None:
            return super().calls(request)
        name = f"train/{self._seed}/{row.iteration}"
        return f"{name}/{request.task}/{row.question}/{request.rollout}"
