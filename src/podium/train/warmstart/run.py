"""Making the warm-started policy: tokenizer, lessons, gate, and a checkpoint folder that anyone can load."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.prompt import PromptSettings
from podium.errors import RunMismatchError
from podium.rollout.run_folder import RunFolder, replace_file
from podium.train.checkpoints import StoredDtype, read_model, write_model
from podium.train.model import PolicyModel
from podium.train.runtime import resolve_dtype
from podium.train.warmstart.material import Reports, open_material
from podium.train.warmstart.pretraining import (
    WarmStartSettings,
    make_model,
    make_tokenizer,
    train_stage,
)
from podium.train.warmstart.vocabulary import BEGIN_ID, END_ID, PAD_ID, save_tokenizer

_ROW_EVERY = 20
"""Steps that a row of metrics is the mean of."""
_STAGES = "stages"
"""The folder of policies as finished stages left them."""


def run_warmstart(
    settings: WarmStartSettings,
    folder: Path,
    *,
    show: Callable[[dict[str, Any]], None] = lambda row: None,
    tell: Callable[[str], None] = lambda note: None,
    gate_cases: int = 1000,
) -> Reports:
    """Make a policy in the run folder: `policy/`, `metrics.jsonl` and `gate.json`.

    A run that was killed goes on after the last stage that it finished.

    Args:
        show: told of each row of metrics.
        tell: told of what is left out of the questions, a sentence each.
        gate_cases: cases of each kind in the gate; questions and made-up teams are new.

    Returns:
        The gate's reports: of embedded lessons over the pool that is known, and over made-up teams.

    Raises:
        CheckpointError: `start` is no checkpoint.
        ConfigError: what lessons are about cannot be read.
        RunMismatchError: the folder belongs to another configuration, or already holds a policy.
    """
    policy = folder / "policy"
    if policy.exists():
        raise RunMismatchError(f"{policy} is there already; choose a new folder, or use the policy in it.")
    material = open_material(settings.recorded, tell)
    start = None if settings.start is None else Checkpoint.read(settings.start)
    run = RunFolder.open(folder, settings)
    tokenizer = make_tokenizer(settings, material) if start is None else start.tokenizer()
    finished = max((int(stage.name) for stage in folder.glob(f"{_STAGES}/[0-9]*")), default=0)
    if finished:
        model = read_model(Checkpoint.read(folder / _STAGES / f"{finished}"))
    elif start is not None:
        model = read_model(start)
    else:
        model = make_model(settings, tokenizer.get_vocab_size())
    model.dtype = resolve_dtype(settings.dtype)
    rows = run.rows()
    rows.truncate(sum(math.ceil(stage.steps / _ROW_EVERY) for stage in settings.stages[:finished]))
    began = time.perf_counter() - max((row["seconds"] for row in rows.read()), default=0.0)
    for place in range(finished, len(settings.stages)):
        course = train_stage(model, tokenizer, settings, material, place)
        while steps := list(islice(course, _ROW_EVERY)):
            row = {
                "step": steps[-1].step,
                "loss": sum(step.loss for step in steps) / len(steps),
                "seconds": time.perf_counter() - began,
            }
            rows.append(row)
            show(row)
        _keep(model, tokenizer, material.prompt, folder / _STAGES / f"{place + 1}", dtype="float32")
    reports = material.examine(
        model, tokenizer, made_up=settings.made_up, cases=gate_cases, seed=settings.seed
    )
    measured = {what: asdict(report) for what, report in reports.items()}
    replace_file(folder / "gate.json", json.dumps(measured, indent=2).encode() + b"\n")
    _keep(model, tokenizer, material.prompt, policy)
    shutil.rmtree(folder / _STAGES)
    return reports


def _keep(
    model: PolicyModel,
    tokenizer: Tokenizer,
    prompt: PromptSettings,
    folder: Path,
    *,
    dtype: StoredDtype = "bfloat16",
) -> None:
    """Write a policy so that a kill leaves all of it or none."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    write_policy(model, tokenizer, prompt, part, dtype=dtype)
    part.rename(folder)


def write_policy(
    model: PolicyModel,
    tokenizer: Tokenizer,
    prompt: PromptSettings,
    folder: Path,
    *,
    dtype: StoredDtype = "bfloat16",
) -> None:
    """Write a policy of this tokenizer as a checkpoint folder. Half precision halves what is shipped."""
    config = model.shape.config(bos=BEGIN_ID, eos=END_ID, pad=PAD_ID, dtype=dtype)
    write_model(model, folder, config=config, companions=(), dtype=dtype)
    save_tokenizer(tokenizer, folder)
    asked = json.dumps({"prompt": prompt.model_dump(exclude_none=True)}, indent=2)
    (folder / "podium.json").write_text(asked + "\n", encoding="utf-8")
