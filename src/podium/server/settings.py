"""The settings of a server: its planner, the limits of a question, and the limits of a request.

Values alone; `podium serve` fills them from its options.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from podium.config import Settings
from podium.orchestrator.planner_settings import PlannerSettings
from podium.trace.background_table import MOST_LEASE_S
from podium.types import Budget


class ServeSettings(Settings):
    """How the server answers requests."""

    planner: PlannerSettings = PlannerSettings()
    """The planner behind the model `podium`."""
    plan_processes: int = Field(default=1, ge=1)
    """How many processes write the plans of a small local policy. 1: the server's own alone, on one core, which is
    enough unless questions wait for plans."""
    budget: Budget = Budget()
    """The limits of one question; a request may set lower ones. Its rounds are the default of a request that does not
    say how many."""
    most_rounds: int = Field(default=5, ge=1)
    """Rounds that a request may ask for."""
    max_steps: int = Field(default=5, ge=1)
    """Steps of a plan, where the request does not say."""
    most_steps: int = Field(default=20, ge=1)
    """Steps that a request may ask for."""
    early_stop: bool = False
    """Whether votes stop once their result is certain, where the request does not say."""
    prompt_cache_s: float = Field(default=300.0, ge=0)
    """Seconds for which providers keep a conversation in their prompt caches. Until then its next turn stays with its
    worker where a move would cost more than it gains. 0: every plan is run as it is."""
    right_answer_usd: float | None = Field(default=None, ge=0)
    """What a right answer is worth, to weigh such a move against ratings; None: any higher accuracy is worth it."""
    runs: Path = Path("runs")
    """Folder of the run folders that the viewer shows."""
    origins: tuple[str, ...] = ()
    """Origins whose web pages may call the server from a browser (CORS)."""
    body_bytes: int = Field(default=20 * 2**20, ge=1)
    """Bytes of a request body at most, images included."""
    body_seconds: float = Field(default=30.0, gt=0)
    """Seconds within which a request's body must arrive."""
    header_bytes: int = Field(default=32 * 2**10, ge=1)
    """Bytes of a request's headers at most."""
    depth: int = Field(default=32, ge=1)
    """Nesting of lists and objects that a request's JSON may have."""
    values: int = Field(default=30_000, ge=1)
    """Values in all its lists and objects together: as many as are checked in about 20 ms, while no other request
    is answered. The longest conversation with the most tools has fewer."""
    request_seconds: float = Field(default=600.0, gt=0)
    """Seconds after which a question is cancelled."""
    drain_seconds: float = Field(default=30.0, ge=0)
    """Seconds for running questions to end at shutdown; then they are cancelled and recorded so."""
    lease_seconds: float = Field(default=15.0, gt=0, le=MOST_LEASE_S)
    """Seconds after which another server takes over the background responses of one that was killed."""
    strict: bool = False
    """Whether a hint that cannot be honoured is refused; otherwise it is ignored, and the reply names it."""
    viewer: bool = True
    """Whether the viewer is served at `/`."""
