"""Trains the shipped warm start with both engines and compares the policies.

    python runs/engines.py FOLDER [SEEDS] [ITERATIONS]

Each seed trains once with TRL, by configs/train/embedded.toml, and once with the small engine and its defaults, both
with 8 rollouts of 8 questions in an iteration. The policies then plan greedily for 600 validation questions of the
embedded laboratory. The script prints a table in Markdown, and draws the accuracy on training questions in
FOLDER/engines.svg. It does not repeat a run that has ended. Workers, accuracy and dollars are simulated; the seconds
are measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import podium
from podium.evals.charts import training_curves
from podium.evals.evaluation import Evaluation
from podium.evals.stats import paired_difference

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "train" / "embedded.toml"
ENGINES = {"trl": "TRL", "small": "small engine"}
PODIUM = (sys.executable, "-m", "podium")
QUESTIONS = 600


def train(run: Path, engine: str, seed: int, iterations: int) -> list[dict[str, object]]:
    """Train one policy, or resume its run; returns the rows of metrics.jsonl."""
    if not (run / "policy").is_dir():
        settings = {
            "trl": ("--config", str(CONFIG), f"seed={seed}"),
            "small": ("--config", str(CONFIG), "engine=small", "trl={}", "grpo.std_eps=0.1", f"seed={seed}"),
        }[engine]
        command = (*PODIUM, "train", "--run", str(run), *settings, f"grpo.iterations={iterations}")
        subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def measure(checkpoint: str | Path) -> Evaluation:
    """Greedy plans of a policy for validation questions."""
    with podium.SyncTeam.open("embedded", conductor={"checkpoint": str(checkpoint)}) as team:
        return team.evaluate("embedded", split="validation", questions=QUESTIONS)


def seconds_of(rows: list[dict[str, object]]) -> float:
    """The median seconds of an iteration: sampling, scoring and update."""
    times = sorted(sum(row["seconds"].values()) for row in rows)  # type: ignore[attr-defined]
    return times[len(times) // 2]


def main(folder: Path, seeds: int, iterations: int) -> None:
    curves: dict[str, list[list[tuple[float, float]]]] = {title: [] for title in ENGINES.values()}
    start = measure("warmstart")
    print(f"| policy | accuracy on {QUESTIONS} validation questions | seconds an iteration |\n|---|---|---|")
    print(f"| warm start | {shown(start)} | |")
    for seed in range(seeds):
        measured: dict[str, Evaluation] = {}
        for engine, title in ENGINES.items():
            run = folder / f"{engine}-{seed}"
            rows = train(run, engine, seed, iterations)
            curves[title].append([(float(row["iteration"]), float(row["accuracy"])) for row in rows])  # type: ignore[arg-type]
            measured[engine] = measure(run / "policy")
            print(
                f"| {title}, seed {seed} | {shown(measured[engine])} | {seconds_of(rows):.1f} |", flush=True
            )
        difference = paired_difference(*(list(measured[engine].right.values()) for engine in ENGINES))
        assert difference is not None
        print(
            f"| TRL minus small engine, seed {seed} | {difference.mean:+.1%} "
            f"[{difference.low:+.1%}, {difference.high:+.1%}] | |"
        )
    (folder / "engines.svg").write_text(training_curves(curves) + "\n")


def shown(evaluation: Evaluation) -> str:
    interval = evaluation.accuracy
    return f"{interval.mean:.1%} [{interval.low:.1%}, {interval.high:.1%}]"


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(
        Path(arguments[0]), *(int(number) for number in (*arguments[1:], *("3", "100")[len(arguments) - 1 :]))
    )
