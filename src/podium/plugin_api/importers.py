"""For the group `podium.importers`: a source of recordings."""

from podium.recordings.importers import ImportReport
from podium.recordings.writer import RecordingWriter

__all__ = ["ImportReport", "RecordingWriter"]
