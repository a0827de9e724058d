"""The recordings of one pool: each file is opened once, however many workers it holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.recordings.recording import Recording


class Shelf:
    """Opens recordings whose paths are seen from one folder."""

    def __init__(self, folder: Path = Path()) -> None:
        self._folder = folder
        self._open: dict[Path, Recording] = {}

    def open(self, path: Path) -> Recording:
        """The recording at `path`, `ConfigError` when it cannot be read."""
        from podium.recordings.recording import Recording  # noqa: PLC0415 - pools without one need none of it

        place = self._folder / path
        if place not in self._open:
            self._open[place] = Recording.open(place)
        return self._open[place]
