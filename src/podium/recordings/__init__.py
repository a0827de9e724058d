"""Recordings: answers of real models, kept with their verdicts, so that planners can be tried without a network.

Each answer was given to the bare question. A recording is faithful for choosing, combining, voting and stopping;
what a rewritten subtask or the sight of others' work would have changed, it cannot show.
"""

from podium.recordings.files import header_path
from podium.recordings.model import (
    SPLIT_NAMES,
    SPLITS,
    Header,
    RecordedQuestion,
    RecordedWorker,
    Response,
    split_by_hash,
    was_simulated,
)
from podium.recordings.recording import Recording
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
