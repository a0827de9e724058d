"""Recordings: stored answers of real models with their verdicts, so that planners can be tried without a network.

Each worker answered the bare question. A recording is faithful for choosing, combining, voting and stopping. It cannot
show how an answer would change with a rewritten subtask or with other workers' responses in the prompt.
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
from podium.recordings.writer import RecordingWriter, unfinished_path

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
    "unfinished_path",
    "was_simulated",
]
