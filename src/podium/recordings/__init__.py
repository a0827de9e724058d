"""Recordings: answers of real models, kept with their verdicts, so that planners can be tried without a network.

Each answer was given to the bare question. A recording is faithful for choosing, combining, voting and stopping;
what a rewritten subtask or the sight of others' work would have changed, it cannot show.
"""

from podium.recordings.model import (
    Header,
    RecordedQuestion,
    RecordedWorker,
    Response,
    was_simulated,
)
from podium.recordings.pair import header_path
from podium.recordings.recording import Recording
from podium.recordings.splits import SPLIT_NAMES, SPLITS, split_by_hash
from podium.recordings.writer import RecordingWriter

__all__ = [
    "SPLITS",
    "SPLIT_NAMES",
    "Header",
    "RecordedQuestion",
    "RecordedWorker",
    "Recording",
    "RecordingWriter",
    "Response",
    "header_path",
    "split_by_hash",
    "was_simulated",
]
