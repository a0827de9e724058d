"""Draws how the accuracy on training questions rose in trainings.

    python runs/curves.py OUT.svg NAME RUN [RUN ...] [, NAME RUN [RUN ...]]

Each NAME stands for the runs after it, which are seeds of one training; "," ends them. The accuracy is that of sampled
plans, as metrics.jsonl has it.
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path

from podium.evals.charts import training_curves


def points(run: str) -> list[tuple[float, float]]:
    """The accuracy of each iteration of a run."""
    rows = map(json.loads, (Path(run) / "metrics.jsonl").read_text().splitlines())
    return [(float(row["iteration"]), float(row["accuracy"])) for row in rows]


if __name__ == "__main__":
    out, *arguments = sys.argv[1:]
    groups = [list(group) for comma, group in groupby(arguments, lambda a: a == ",") if not comma]
    Path(out).write_text(training_curves({name: [*map(points, runs)] for name, *runs in groups}) + "\n")
