"""Making the warm-started policy: tokenizer, lessons, gate, and a checkpoint folder that anyone can load."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from podium.errors import RunMismatchError
from podium.rollout.run_folder import RunFolder, replace_file
from podium.train.model import PolicyModel
from podium.train.warmstart.gate import GateReport, measure
from podium.train.warmstart.lessons import PROMPT
from podium.train.warmstart.pretraining import (
    WarmStartSettings,
    WarmStartStep,
    make_model,
    make_tokenizer,
    pretrain,
    teams_of,
)
from podium.train.warmstart.teams import Team
from podium.train.warmstart.vocabulary import BEGIN_ID, END_ID, PAD_ID, save_tokenizer
from podium.train.weights import StoredDtype, write_model

_ROW_EVERY = 20
"""Steps that a row of metrics is the mean of."""


def run_warmstart(
    settings: WarmStartSettings,
    folder: Path,
    *,
    show: Callable[[dict[str, Any]], None] = lambda row: None,
    gate_cases: int = 1000,
) -> dict[str, GateReport]:
    """Make a policy in the run folder: `policy/`, `metrics.jsonl` and `gate.json`.

    Args:
        show: told of each row of metrics.
        gate_cases: cases of each kind in the gate; questions and made-up teams are new.

    Returns:
        The gate's reports: over the pool that is known, and over made-up teams.

    Raises:
        RunMismatchError: the folder belongs to another configuration, or already holds a policy.
    """
    run = RunFolder.open(folder, settings.model_dump(mode="json"))
    policy = folder / "policy"
    if policy.exists():
        raise RunMismatchError(f"{policy} is there already; choose a new folder, or use the policy in it.")
    rows = run.rows()
    rows.truncate(0)  # a warm start is not resumed: what a killed one wrote is made again
    began = time.perf_counter()
    losses: list[float] = []

    def watch(step: WarmStartStep) -> None:
        losses.append(step.loss)
        if len(losses) == _ROW_EVERY or step.step == settings.steps:
            row = {
                "step": step.step,
                "loss": sum(losses) / len(losses),
                "seconds": time.perf_counter() - began,
            }
            rows.append(row)
            show(row)
            losses.clear()

    teams = teams_of(settings)
    tokenizer = make_tokenizer(settings, teams)
    model = make_model(settings, tokenizer.get_vocab_size())
    pretrain(model, tokenizer, settings, teams, watch=watch)
    part = folder / ".policy.part"
    write_policy(model, tokenizer, part)
    examined: dict[str, Team | None] = {}
    if settings.made_up < 1:
        examined[settings.pool] = teams.known
    if settings.made_up > 0:
        examined["made-up teams"] = None
    reports = measure(model, tokenizer, examined, cases=gate_cases, seed=settings.seed)
    measured = {what: asdict(report) for what, report in reports.items()}
    replace_file(folder / "gate.json", json.dumps(measured, indent=2).encode() + b"\n")
    part.rename(policy)
    return reports


def write_policy(
    model: PolicyModel, tokenizer: Tokenizer, folder: Path, *, dtype: StoredDtype = "bfloat16"
) -> None:
    """Write a policy of this tokenizer as a checkpoint folder. Half precision halves what is shipped."""
    config = model.shape.config(bos=BEGIN_ID, eos=END_ID, pad=PAD_ID, dtype=dtype)
    write_model(model, folder, config=config, companions=(), dtype=dtype)
    save_tokenizer(tokenizer, folder)
    prompt = json.dumps({"prompt": PROMPT.model_dump()}, indent=2)
    (folder / "podium.json").write_text(prompt + "\n", encoding="utf-8")
