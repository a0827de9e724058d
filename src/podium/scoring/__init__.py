"""The scoring service: runs, grades and rewards plans for every trainer, rank and environment."""

from podium.scoring.protocol import RewardParts, RolloutRequest, Score, Scoring
from podium.scoring.session import ScoringSession, open_session
from podium.scoring.settings import ScoringSettings

__all__ = [
    "RewardParts",
    "RolloutRequest",
    "Score",
    "Scoring",
    "ScoringSession",
    "ScoringSettings",
    "open_session",
]
