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
    """What the figure is compared with. None if nothing comparable exists."""
    peer_figure: float | None = None
    goal: float | str | None = None
    """A number, or text with the figure's unit such as "≤ 15 s": of the figure. Other text: of the ratio, or of the
    figure where there is no peer."""
    higher_is_better: bool = True

    @property
    def ratio(self) -> float | None:
        """Our figure divided by the peer's. None if there is no peer, or its figure is 0."""
        return self.figure / self.peer_figure if self.peer_figure else None


def differing(answers: Sequence[str], others: Sequence[str]) -> list[tuple[str, str]]:
    """The answers that are unlike the other one at the same place, each with that."""
    pairs = zip(answers, others, strict=True)
    return [(one, other) for one, other in pairs if one.strip() != other.strip()]


def report(rows: Sequence[Row], file: Path | None) -> None:
    """Print the rows as a table, and write them to `file`."""
    lines = [("work", "Podium", "unit", "peer", "", "ratio", "goal")]
    for row in rows:
        theirs = "" if row.peer_figure is None else f"{row.peer_figure:,.4g}"
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
        lines.append(
            (row.work, f"{row.figure:,.4g}", row.unit, row.peer or "", theirs, ratio, str(row.goal or ""))
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    write(rows, file)


def write(rows: Sequence[Row], file: Path | None) -> None:
    """Write the rows to `file`, if there is one."""
    if file is not None:
        rows_written = [asdict(row) | {"ratio": row.ratio} for row in rows]
        file.write_text(json.dumps(rows_written, indent=1, ensure_ascii=False) + "\n")
