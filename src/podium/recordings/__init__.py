"""Recordings: stored answers of real models with their verdicts, so that planners can be tried without a network.

Most responses were given to the bare question; they are faithful for choosing, combining, voting and stopping, and
cannot show how an answer would change with a rewritten subtask or with other workers' responses in the prompt. A
recording may also hold conditioned responses: those that a worker gave to such a context (`ShownContext`).
"""

from podium.recordings.recording import Recording
from podium.recordings.recording_model import (
    SPLIT_NAMES,
    SPLITS,
    RecordedQuestion,
    RecordedResponse,
    RecordedWorker,
    RecordingHeader,
    ShownContext,
    header_path,
    names_conditioned,
    reference,
    require_pyarrow,
    split_by_hash,
    unfinished_path,
)
from podium.recordings.writer import RecordingWriter

__all__ = [
    "SPLITS",
    "SPLIT_NAMES",
    "RecordedQuestion",
    "RecordedResponse",
    "RecordedWorker",
    "Recording",
    "RecordingHeader",
    "RecordingWriter",
    "ShownContext",
    "header_path",
    "names_conditioned",
    "reference",
    "require_pyarrow",
    "split_by_hash",
    "unfinished_path",
]
