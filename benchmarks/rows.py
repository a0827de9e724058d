"""The rows that a benchmark prints and writes: what was measured, beside a peer in the same run.

Each script of this folder that takes `--json FILE` writes its rows there, one JSON list of objects.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure."""

    work: str
    figure: float
    unit: str
    peer: str | None = None
    """What the figure is compared with; None: nothing comparable exists."""
    peer_figure: float | None = None
    goal: str = ""
    """The ratio or the figure that we want."""
    higher_is_better: bool = True

    @property
    def ratio(self) -> float | None:
        """Our figure divided by the peer's."""
        return None if self.peer_figure is None else self.figure / self.peer_figure


def report(rows: Sequence[Row], file: Path | None) -> None:
    """Print the rows as a table, and write them to `file`."""
    lines = [("work", "Podium", "unit", "peer", "", "ratio", "goal")]
    for row in rows:
        theirs = "" if row.peer_figure is None else f"{row.peer_figure:,.4g}"
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
        lines.append((row.work, f"{row.figure:,.4g}", row.unit, row.peer or "", theirs, ratio, row.goal))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    if file is not None:
        rows_written = [asdict(row) | {"ratio": row.ratio} for row in rows]
        file.write_text(json.dumps(rows_written, indent=1, ensure_ascii=False) + "\n")
