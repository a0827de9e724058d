"""Prints the tables of docs/scaling.md: what the recipes need, by formulas. Nothing is measured.

python runs/scaling.py
"""

from __future__ import annotations

from pathlib import Path

from podium.config import load
from podium.scoring import ScoringSettings
from podium.tasks import open_tasks
from podium.team.team_file import open_pool
from podium.train.run_estimate import GIB, GPUS, SHAPES, GPUEstimate, TrainingSize, estimate_workers
from podium.train.settings import TrainSettings

RECIPES = Path(__file__).parent.parent / "configs" / "train"
PROMPT_TOKENS = 2000
"""Of a prompt with four examples and a question of some length."""
PLANS = 200 * 4 * 64
"""Of the paper's run."""
ROWS = (
    ("0.5B", "conductor-3b", "Qwen/Qwen2.5-0.5B-Instruct", "RTX 4090", 1),
    ("3B", "conductor-3b", "Qwen/Qwen2.5-3B-Instruct", "H100", 1),
    ("4B, LoRA", "conductor-4b-lora-1gpu", "Qwen/Qwen3-4B-Instruct-2507", "RTX 4090", 1),
    ("7B", "conductor-7b", "Qwen/Qwen2.5-7B-Instruct", "H100", 8),
)
"""Name, recipe, model, and machine."""
TASKS = RECIPES.parent / "tasks" / "own.toml"
POOLS = ("paper-constrained", "open-models")


def machines() -> list[str]:
    """Memory and time of each recipe."""
    lines = [
        "| model | GPUs | plans an iteration | weights | gradients | moments | bf16 copy | activations | logits "
        "| generation | peak on each | write | update | the run's GPU hours |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, recipe, start, card, ranks in ROWS:
        experiment = load(RECIPES / f"{recipe}.toml", TrainSettings, [f"start={start}"])
        training = TrainingSize.of(experiment, SHAPES[start], PROMPT_TOKENS)
        gpu = next(gpu for gpu in GPUS if gpu.name == card)
        estimate = GPUEstimate(training, gpu, ranks)
        held = estimate.memory
        parts = (
            held.weights, held.gradients, held.moments, held.compute_copy, held.activations, held.logits,
            held.generation, held.peak,
        )  # fmt: skip
        hours = estimate.run_hours(experiment.grpo.iterations) * ranks
        cells = [
            name,
            f"{ranks} x {card} ({gpu.memory_gib:g} GiB)",
            str(experiment.batch),
            *(f"{part / GIB:.1f}" for part in parts),
            f"{estimate.generation_s:.0f} s",
            f"{estimate.update_s:.0f} s",
            f"{hours:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def dollars() -> list[str]:
    """What the workers of 200 iterations of 4 x 64 plans cost, over the questions of `TASKS`."""
    lines = [
        "| pool | 1 step | 2 steps | 3 steps | 4 steps | 5 steps | mean | from | to | seconds an iteration |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    tasks = list(open_tasks(str(TASKS), "train", size=100))
    for name in POOLS:
        pool = open_pool(name, ready=False)
        expected = estimate_workers(ScoringSettings(pool=name), pool, tasks, plans=PLANS, batch=256)
        cost = expected.cost_usd
        cells = [name, *(f"${usd:,.0f}" for usd in expected.cost_by_steps.values())]
        cells += [
            f"${cost.likely:,.0f}",
            f"${cost.low:,.0f}",
            f"${cost.high:,.0f}",
            f"{expected.iteration_s:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    print("\n".join([*machines(), "", *dollars()]))
