"""The scoring service: runs, grades and rewards plans for every trainer, rank and environment."""

from podium.scoring.client import Client
from podium.scoring.protocol import RolloutRequest, Score, ScoringBackend, SessionInfo
from podium.scoring.session import ScoringSession, open_session
from podium.scoring.settings import ScoringSettings

__all__ = [
    "Client",
    "RolloutRequest",
    "Score",
    "ScoringBackend",
    "ScoringSession",
    "ScoringSettings",
    "SessionInfo",
    "open_session",
]
