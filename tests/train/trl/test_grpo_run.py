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
from tiny_run import SHAPE, write_start
from transformers import AutoModelForCausalLM

from podium.conductor.checkpoint import Checkpoint
from podium.errors import CheckpointError, ConfigError
from podium.store import TraceStore
from podium.tasks import open_tasks
from podium.train.publish import publish
from podium.train.trl.engine import latest_checkpoint
from podium.workers.failing import ENVIRONMENT

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


def test_the_prompt_of_a_second_round_has_the_answer_of_the_first(
    train: Any, settings: Settings, tmp_path: Path
) -> None:
    train(settings | {"rounds": 2, "grpo": settings["grpo"] | {"iterations": 1, "group": 8}})

    with TraceStore(tmp_path / "run" / "traces.sqlite", create=False) as store:
        later = [trace for trace in store.iterate() if len(trace.rounds) == 2]
    assert later
    assert all(trace.rounds[0].workflow is not None for trace in later)


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


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"trl": {"learning_rate": 1e-4}}, "trl.learning_rate is decided by grpo.lr; set that."),
        ({"trl": {"gradient_checkpoints": True}}, "GRPOConfig has no such argument"),
        ({"task_limit": 1, "tasks": "nothing"}, "There is no task set 'nothing'"),
        ({"lora": {"ranks": 3}}, "[lora] cannot be used"),
    ],
)
def test_unusable_settings_are_refused_before_any_call(
    train: Any, settings: Settings, change: Settings, sentence: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        train(settings | change)

    assert sentence in str(refusal.value)


def test_a_prompt_that_leaves_no_room_for_a_plan_is_refused(train: Any, settings: Settings) -> None:
    with pytest.raises(ConfigError, match="exceeds the 1,024 that the model can read"):
        train(settings | {"grpo": settings["grpo"] | {"max_tokens": 1000}})


def test_a_base_model_without_a_chat_template_is_refused(train: Any, settings: Settings) -> None:
    with pytest.raises(CheckpointError, match="has no chat template: it is a base model"):
        train(settings | {"prompt": {"style": "full"}})


def _changed(one: Path, other: Path) -> bool:
    first, second = (AutoModelForCausalLM.from_pretrained(path).state_dict() for path in (one, other))
    return any(not torch.equal(first[name], second[name]) for name in first)


def test_a_checkpoint_whose_optimiser_is_cut_is_refused(tmp_path: Path) -> None:
    newest = tmp_path / "checkpoint-4"
    newest.mkdir()
    (newest / "trainer_state.json").write_text("{}")
    torch.save({"state": {0: torch.zeros(100)}}, newest / "optimizer.pt")
    assert latest_checkpoint(tmp_path) == newest
    whole = (newest / "optimizer.pt").read_bytes()
    (newest / "optimizer.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match=r"optimizer\.pt is cut or damaged"):
        latest_checkpoint(tmp_path)
