"""The scoring service: runs, grades and rewards plans for every trainer, rank and environment."""

from podium.scoring.client import ScoringClient
from podium.scoring.protocol import RolloutRequest, Score, ScoringBackend, SessionInfo
from podium.scoring.session import ScoringSession, open_session
from podium.scoring.settings import ScoringSettings

__all__ = [
    "RolloutRequest",
    "Score",
    "ScoringBackend",
    "ScoringClient",
    "ScoringSession",
    "ScoringSettings",
    "SessionInfo",
    "open_session",
]
