"""Sets that take their files from more than one dataset of the hub: by a setting, or split by split."""

from __future__ import annotations

from collections.abc import Iterator

from podium.rows import Row, read_rows
from podium.tasks.sets.hub import HubSet, locate


class VariantSet(HubSet):
    """A set of several datasets; `source` names the one that it is known by."""

    def source_of(self, split: str) -> str:
        """OWNER/NAME of the dataset that holds a split, under these settings."""
        return self.source

    def _rows(self, split: str) -> Iterator[Row]:
        for pattern in self.files[split]:
            for file in locate(self.source_of(split), pattern):
                yield from read_rows(file)
