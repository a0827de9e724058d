"""Runs the real `vf-eval` in a process of its own, and what its policies write."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from podium.scoring import ScoringSettings
from scripted_team import Sums, write_calculators, write_sums

PLANS = tuple(f'model_id = [{worker}]\nsubtasks = ["Solve it."]\naccess_list = [[]]' for worker in (0, 4))
ACCEPT = "model_id = []\nsubtasks = []\naccess_list = []"
LATER = "Plan of round 1"


def lay(folder: Path, **settings: Any) -> ScoringSettings:
    """A session over the scripted team and a table of sums, whose files are written."""
    tasks = write_sums(folder / "sums.jsonl", 3, ("train",))
    pool = write_calculators(folder / "pool.toml", list(Sums("train", size=3)))
    return ScoringSettings(tasks=str(tasks), pool=str(pool), **settings)


def options_of(settings: ScoringSettings) -> list[str]:
    """The same settings for `vf-eval`."""
    named = {key: getattr(settings, key) for key in settings.model_fields_set}
    return [word for key, value in named.items() for word in (f"--env.taskset.scoring.{key}", str(value))]


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
