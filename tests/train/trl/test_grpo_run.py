"""Reinforcement through TRL: whole runs on a tiny policy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from podium.conductor.checkpoint import Checkpoint
from podium.errors import CheckpointError
from podium.store import TraceStore
from podium.tasks import open_tasks
from podium.train.publish import publish
from podium.train.trl.checkpoints import latest_checkpoint
from podium.workers.replacements import ENVIRONMENT
from tiny_run import SHAPE, write_start

Settings = dict[str, Any]


def _rows(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_run_leaves_a_policy_its_metrics_and_a_trace_of_each_rollout(
    plain_run: Path, ground: dict[str, str]
) -> None:
    rows = _rows(plain_run)
    assert [row["iteration"] for row in rows] == [0, 1]
    assert all(0 < row["valid"] <= 1 and row["dropped"] == 0 for row in rows)
    with TraceStore(plain_run / "traces.sqlite", create=False) as store:
        assert len(store.list()) == 16
        asked = store.get(rows[0]["trace_id"]).metadata["task"]
    assert asked in {task.id for task in open_tasks(ground["tasks"], "train", size=20)}
    checkpoint = Checkpoint.read(plain_run / "policy")
    assert checkpoint.prompt.style == "brief"
    assert checkpoint.plan is not None
    assert checkpoint.plan.max_plan_tokens == 64
    assert checkpoint.scope.simulated
    assert _changed(plain_run / "policy", Path(ground["start"]))


def test_no_file_that_is_published_says_where_the_run_found_its_files(
    plain_run: Path, ground: dict[str, str], tmp_path: Path
) -> None:
    publish(plain_run, str(tmp_path / "published"))
    texts = "".join(
        path.read_text() for path in (tmp_path / "published").iterdir() if path.suffix in (".json", ".md")
    )
    assert "the questions of sums.jsonl" in texts
    assert str(Path(ground["tasks"]).parent) not in texts


def test_a_run_that_ended_early_goes_on_with_the_same_batches_and_weights(
    train: Any, settings: Settings, plain_run: Path, tmp_path: Path
) -> None:
    with pytest.raises(_CrashError):
        train(settings, "halves", on_metrics=_crash)
    assert len(_rows(tmp_path / "halves")) == 2  # The second one's weights are lost.

    halves = train(settings, "halves")

    def figures(run: Path) -> list[dict[str, Any]]:
        return [{key: value for key, value in row.items() if key != "seconds"} for row in _rows(run)]

    assert figures(tmp_path / "halves") == figures(plain_run)
    assert not _changed(plain_run / "policy", halves)


@pytest.mark.nightly
def test_a_run_that_its_minutes_ended_has_its_newest_weights(
    train: Any, settings: Settings, tmp_path: Path
) -> None:
    grpo = settings["grpo"] | {"iterations": 3, "lr": 1e-2}

    def start(**keys: Any) -> Path:
        return train(settings | {"grpo": grpo | keys})  # type: ignore[no-any-return]

    start(minutes=1e-9)
    assert len(_rows(tmp_path / "run")) == 1
    # It crashes in its third iteration, after the second checkpoint.
    crash = {"on_metrics": lambda row: _crash(row | {"iteration": row["iteration"] - 1})}
    with pytest.raises(_CrashError):
        train(settings | {"grpo": grpo}, **crash)
    for _ in range(2):
        policy = start(minutes=1e-9)
        assert len(_rows(tmp_path / "run")) == 2
        assert not _changed(policy, tmp_path / "run" / "checkpoints" / "checkpoint-2")
        (tmp_path / "run" / "trained" / "model.safetensors").unlink()  # As a kill leaves it.


class _CrashError(Exception):
    pass


def _crash(row: Mapping[str, Any]) -> None:
    """End the run in its second iteration, before the checkpoint of that is written."""
    if row["iteration"] == 1:
        raise _CrashError


def test_drawn_pools_failures_two_rounds_and_all_or_none_go_in_one_run(
    train: Any, settings: Settings, tmp_path: Path
) -> None:
    draw = {"random": True, "min_workers": 3, "max_workers": 6, "failure_probability": 0.5}
    grpo = settings["grpo"] | {"iterations": 1, "questions": 4, "group": 8}
    prompt = settings["prompt"] | {"access": "all_or_none"}
    train(settings | {"pool_sampling": draw, "prompt": prompt, "rounds": 2, "grpo": grpo})

    (row,) = _rows(tmp_path / "run")
    with TraceStore(tmp_path / "run" / "traces.sqlite", create=False) as store:
        traces = list(store.iterate())
    assert row["dropped"] == 0
    assert len({len(trace.pool) for trace in traces}) > 1
    assert {len(trace.rounds) for trace in traces} == {1, 2}
    kinds = {attempt.error_kind for trace in traces for span in trace.spans for attempt in span.attempts}
    assert {None, ENVIRONMENT} <= kinds
    assert all(
        len(span.reads) in (0, span.position)
        for trace in traces
        for span in trace.spans
        if span.status != "skipped"
    )


def test_merged_policy_computes_the_same_logits_as_its_trained_adapter(
    train: Any, settings: Settings, tmp_path: Path
) -> None:
    # Of the other start no attention layer has a gradient.
    start = write_start(tmp_path / "start", replace(SHAPE, positions=1024)).path
    settings |= {"start": str(start), "lora": {"r": 4}}
    policy = train(settings | {"grpo": settings["grpo"] | {"iterations": 1, "lr": 1e-2}})

    tokens = torch.arange(3, SHAPE.vocab)[None]
    with torch.no_grad():
        base = AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32)
        before = base(tokens).logits
        apart = PeftModel.from_pretrained(base, tmp_path / "run" / "trained")(tokens).logits
        merged = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)(tokens).logits
    torch.testing.assert_close(merged, apart, atol=1e-3, rtol=1e-3)
    assert (merged - before).abs().max() > 0.1


def _changed(one: Path, other: Path) -> bool:
    first, second = (AutoModelForCausalLM.from_pretrained(path).state_dict() for path in (one, other))
    return any(not torch.equal(first[name], second[name]) for name in first)


def _checkpoint(folder: Path) -> Path:
    folder.mkdir()
    torch.save({"state": {0: torch.zeros(100)}}, folder / "optimizer.pt")
    torch.save({"last_epoch": [0.0] * 100}, folder / "scheduler.pt")
    save_file({"weight": torch.zeros(100)}, folder / "model.safetensors")
    torch.save({"cpu": torch.zeros(100)}, folder / "rng_state_1.pth")
    (folder / "trainer_state.json").write_text('{"global_step": 4}')
    return folder


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "model.safetensors"])
def test_a_checkpoint_with_a_cut_file_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    newest = _checkpoint(tmp_path / "checkpoint-4")
    assert latest_checkpoint(tmp_path) == newest
    _cut(newest / name)
    with pytest.raises(CheckpointError, match=f"{name} is cut or damaged"):
        latest_checkpoint(tmp_path)


@pytest.mark.parametrize("name", ["trainer_state.json", "rng_state_1.pth"])
def test_a_checkpoint_that_a_kill_cut_gives_way_to_the_one_before(tmp_path: Path, name: str) -> None:
    before, newest = (_checkpoint(tmp_path / f"checkpoint-{step}") for step in (4, 12))
    assert latest_checkpoint(tmp_path) == newest
    _cut(newest / name)
    assert latest_checkpoint(tmp_path) == before
