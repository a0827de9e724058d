"""What the server is told when it is started: who plans, within what limits, what requests may be like.

Values alone; `podium serve` fills them from its options.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from podium.config import Settings
from podium.orchestrator.planner_settings import PlannerSettings
from podium.types import Budget


class ServeSettings(Settings):
    """How requests are served."""

    planner: PlannerSettings = PlannerSettings()
    """Whom the model `podium` stands for."""
    budget: Budget = Budget()
    """The most that one question may take; a request may ask for less. Its rounds are those of a request that does
    not say how many."""
    most_rounds: int = Field(default=5, ge=1)
    """That a request may ask for."""
    max_steps: int = Field(default=5, ge=1)
    """Of a plan, where the request does not say."""
    most_steps: int = Field(default=20, ge=1)
    """That a request may ask for."""
    early_stop: bool = False
    """Whether votes ask for no more responses once they are certain, where the request does not say."""
    runs: Path = Path("runs")
    """Folder of the run folders that the viewer shows."""
    origins: tuple[str, ...] = ()
    """Web pages of these origins may ask from a browser (CORS)."""
    body_bytes: int = Field(default=20 * 2**20, ge=1)
    """Of a request at most; images may be part of it."""
    body_seconds: float = Field(default=30.0, gt=0)
    """Within which a request's body has to come."""
    header_bytes: int = Field(default=32 * 2**10, ge=1)
    """Of a request's headers at most."""
    depth: int = Field(default=32, ge=1)
    """Lists and objects within one another that the JSON of a request may have."""
    values: int = Field(default=30_000, ge=1)
    """Members that all its lists and objects may have together: as many as are checked in some 20 ms, in which nobody
    else is answered. A conversation as long as is taken, with every tool that is, has less."""
    request_seconds: float = Field(default=600.0, gt=0)
    """That a request may take that asks something; then what it asked is cancelled."""
    drain_seconds: float = Field(default=30.0, ge=0)
    """That questions in flight have to end when the server ends; then they are cancelled and recorded so."""
    viewer: bool = True
    """Whether the viewer is served at `/`."""
