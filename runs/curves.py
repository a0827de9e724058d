"""Draws how the accuracy on training questions rose in trainings.

    python runs/curves.py OUT.svg NAME=RUN[,RUN...] ...

The runs of a NAME are seeds of one training. The accuracy is that of sampled plans, as metrics.jsonl has it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from podium.evals.charts import training_curves


def points(run: str) -> list[tuple[float, float]]:
    """The accuracy of each iteration of a run."""
    rows = map(json.loads, (Path(run) / "metrics.jsonl").read_text().splitlines())
    return [(float(row["iteration"]), float(row["accuracy"])) for row in rows]


if __name__ == "__main__":
    out, *named = sys.argv[1:]
    runs = {
        name: [*map(points, folders.split(","))] for name, _, folders in (n.partition("=") for n in named)
    }
    Path(out).write_text(training_curves(runs) + "\n")
