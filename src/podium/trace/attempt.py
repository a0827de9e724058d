"""The attempt: one try of a call, of a step's worker or of the model that plans."""

from __future__ import annotations

from podium.types import FrozenModel, Spent


class Attempt(FrozenModel):
    """One try of a call of a worker."""

    worker: str
    started_s: float
    ended_s: float
    error_kind: str | None = None
    """The kind of the error. None if the try succeeded."""
    error: str | None = None
    spent: Spent = Spent()
    """Tokens and dollars that the try took although it gave no answer."""
    hedge: bool = False
    """Whether the try is a second request that was made because the first was slow."""
