"""Runs the real `vf-eval` in a process of its own, and what its policies write."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

PLANS = tuple(f'model_id = [{worker}]\nsubtasks = ["Solve it."]\naccess_list = [[]]' for worker in (0, 5))
ACCEPT = "model_id = []\nsubtasks = []\naccess_list = []"
LATER = "Plan of round 1"


async def run_vf_eval(folder: Path, *options: str) -> tuple[list[dict[str, Any]], str]:
    """The traces of a run of `vf-eval podium_verifiers`, and what it printed."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("vf-eval")),
        *("podium_verifiers", "--model", "policy", *options),
        *("--no-push", "--no-rich", "--output-dir", str(folder), "--run.dir", "run"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    written = folder / "run" / "traces.jsonl"
    lines = written.read_text().splitlines() if written.exists() else []
    return [trace for line in lines for trace in json.loads(line)["traces"]], printed.decode()
