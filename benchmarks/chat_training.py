"""Both stages of training a small chat model, by the engine shared_prefix and by TRL, on the same questions.

    python benchmarks/chat_training.py START [--json FILE]

START is a folder with a Llama- or Qwen2-shaped chat model, such as `runs/published_models.py convert` writes. Settings
are those of configs/train/small-open.toml but for the size of a batch; both engines multiply in bf16 on a GPU and on a
processor that does so natively, else in fp32. The team is scripted, so all time is the engines'. Without a GPU hours
are of processor time, which other work on the machine changes less. A stage's first step, or iteration, warms up and is
left out. Beside the table stand the tokens that each engine writes and trains in a second, and the operations of its
update as a share of what the product of large matrices reaches; the prompt is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from podium.conductor.checkpoint import Checkpoint
from podium.train.grpo_run import run_grpo
from podium.train.runtime import resolve_device, resolve_dtype
from podium.train.settings import EngineName, TrainSettings
from podium.train.sft_run import run_sft
from podium.train.shape import ModelShape
from rows import Row, report

CONFIG = Path(__file__).parents[1] / "configs/train/small-open.toml"
DEVICE = resolve_device()
ON_GPU = DEVICE.type == "cuda"
EXAMPLES, QUESTIONS, GROUP = (16, 4, 16) if ON_GPU else (8, 1, 16)
"""Of a step of the supervised stage; of an iteration of GRPO."""


def main(start: Path, file: Path | None) -> None:
    """Measure, print, and write the rows to `file`."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_questions(folder)
        theirs, ours = (measure(start, folder, engine) for engine in ("trl", "shared_prefix"))
    for name, rate in ours.items():
        rows.append(Row(name, rate, "1/h", "TRL", theirs[name], "≥ 4"))
    report(rows, file)


def write_questions(folder: Path) -> None:
    """Sums as questions, and the names and profiles of small-open over scripted workers."""
    rows = [
        {"question": f"What is {number} plus {number}?", "answer": str(2 * number)} for number in range(64)
    ]
    (folder / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "sums.toml").write_text(
        '[[part]]\nset = "own"\nfiles = { train = "sums.jsonl" }\n[part.grader]\nkind = "math"\n'
    )
    pool = tomllib.loads((Path(__file__).parents[1] / "src/podium/assets/pools/small-open.toml").read_text())
    (folder / "pool.toml").write_text(
        "".join(
            f'[[worker]]\nname = "{worker["name"]}"\nkind = "scripted"\nreplies = ["2", "4"]\n'
            f"profile = {json.dumps(worker.get('profile', worker['name']))}\n"
            for worker in pool["worker"]
        )
    )


def measure(start: Path, folder: Path, engine: EngineName) -> dict[str, float]:
    """Steps of the supervised stage, and iterations of GRPO, in an hour."""
    native = resolve_dtype("auto", DEVICE.type) == torch.bfloat16
    checkpoint = Checkpoint.read(start)
    matrices = ModelShape.read(checkpoint.config, str(start)).matmul_parameters
    rate = matmul_rate()
    tables = tomllib.loads(CONFIG.read_text()) | {
        "engine": engine,
        "start": str(start),
        "tasks": str(folder / "sums.toml"),
        "pool": str(folder / "pool.toml"),
    }
    del tables["grpo"]["std_eps"]  # TRL has no such setting.
    tables["sft"] |= {"count": EXAMPLES, "batch": EXAMPLES, "epochs": 3, "save_every": 99}
    tables["grpo"] |= {"iterations": 2, "questions": QUESTIONS, "group": GROUP, "save_every": 99, "gate": {}}
    if engine == "trl":
        tables["trl"] = {"bf16": native, "gradient_checkpointing": False}
    run = folder / engine
    marks: list[float] = []

    def told(line: str) -> None:
        if ", loss " in line:  # After the first step, and after the last.
            marks.append(clock())

    run_sft(TrainSettings.model_validate(tables | {"stage": "sft"}), run / "form", say=told)
    form = marks[-1] - marks[0]
    marks.clear()

    def ended(row: Mapping[str, Any]) -> None:
        marks.append(clock())
        written, seconds = row["completion_tokens"] * QUESTIONS * GROUP, row["seconds"]
        share = 6 * matrices * written / seconds["update"] / rate
        print(
            f"{engine}: {written:.0f} tokens; writes {written / seconds['sample']:,.0f} a second, trains "
            f"{written / seconds['update']:,.0f} ({share:.1%} of {rate / 1e12:.2f} TFLOP/s)",
            flush=True,
        )

    asyncio.run(
        run_grpo(
            TrainSettings.model_validate(tables | {"start": str(run / "form/policy")}),
            run / "run",
            on_metrics=ended,
        )
    )
    return {
        f"supervised steps of {EXAMPLES} examples": 3600 * 2 / form,
        f"GRPO iterations of {QUESTIONS} x {GROUP} rollouts": 3600 / (marks[1] - marks[0]),
    }


def clock() -> float:
    """Seconds: by the clock on a GPU, else of processor time."""
    if not ON_GPU:
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def matmul_rate() -> float:
    """Operations a second of large matrices' product, in the dtype of the training."""
    size = 8192 if ON_GPU else 1024
    matrix = torch.randn(size, size, device=DEVICE, dtype=resolve_dtype("auto", DEVICE.type))
    times = []
    for _ in range(6):
        if ON_GPU:
            torch.cuda.synchronize()
        began = time.perf_counter()
        torch.mm(matrix, matrix)
        if ON_GPU:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return 2 * size**3 / min(times)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("start", type=Path)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    main(options.start, options.json)
