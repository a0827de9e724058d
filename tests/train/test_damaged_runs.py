"""A run's folder that is full, read-only or damaged: one sentence, and no run that goes on with other metrics.

Add a row for every new damage that is found.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from podium.conductor.checkpoint import Checkpoint
from podium.config import build
from podium.errors import CheckpointError, ConfigError, RunMismatchError, StoreError
from podium.train.settings import TrainSettings
from small_disk import small_disk
from tiny_run import SHORT, make_settings, run, write_start


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """Random weights, from which runs only read."""
    return write_start(tmp_path_factory.mktemp("damaged") / "start")


@pytest.fixture(scope="module")
def finished(start: Checkpoint) -> Path:
    """The folder of a run, beside its start, of which each test damages a copy."""
    folder = start.path.with_name("run")
    asyncio.run(run(folder, start, SHORT))
    return folder


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _optimizer(run_folder: Path) -> Path:
    return next(run_folder.glob("checkpoints/*/optimizer.safetensors"))


DAMAGES: dict[str, tuple[Callable[[Path], object], type[Exception], str]] = {
    "optimiser cut": (lambda f: _cut(_optimizer(f)), CheckpointError, "cannot be read"),
    "optimiser missing": (lambda f: _optimizer(f).unlink(), CheckpointError, "cannot be read"),
    "a model as optimiser": (
        lambda f: shutil.copy(_optimizer(f).with_name("model.safetensors"), _optimizer(f)),
        CheckpointError,
        "is not the optimiser's state of this model",
    ),
    "weights cut": (
        lambda f: _cut(_optimizer(f).with_name("model.safetensors")),
        CheckpointError,
        "not a safetensors file",
    ),
    "state cut": (
        lambda f: _cut(_optimizer(f).with_name("training.json")),
        CheckpointError,
        "training.json is cut",
    ),
    "metrics cut": (lambda f: _cut(f / "metrics.jsonl"), RunMismatchError, "rows, and the checkpoint"),
    "metrics missing": (lambda f: (f / "metrics.jsonl").unlink(), RunMismatchError, "has 0 rows"),
    "metrics of another kind": (
        lambda f: (f / "metrics.jsonl").write_text("[\n" * SHORT.iterations),
        RunMismatchError,
        "line 1: this is no row",
    ),
}


@pytest.mark.parametrize(("damage", "kind", "says"), DAMAGES.values(), ids=DAMAGES)
async def test_a_damaged_run_is_refused_in_a_sentence(
    damage: Callable[[Path], object], kind: type[Exception], says: str, finished: Path, tmp_path: Path
) -> None:
    start = Checkpoint.read(finished.with_name("start"))
    shutil.copytree(finished, tmp_path / "run")
    damage(tmp_path / "run")
    with pytest.raises(kind, match=says) as refused:
        await run(tmp_path / "run", start, SHORT)
    assert "\n" not in str(refused.value)


async def test_full_disk_and_invalid_run_folder_raise_a_store_error(
    start: Checkpoint, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        await run(tmp_path / "file" / "run", start, SHORT)
    for size in (1500, 20_000):  # The first row of metrics does not fit, or the first checkpoint.
        with small_disk(size), pytest.raises(StoreError, match="cannot be written"):
            await run(tmp_path / f"full-{size}", start, SHORT)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "config.json").write_text(make_settings(start, SHORT).model_dump_json())
    (tmp_path / "taken" / "checkpoints").write_text("")
    with pytest.raises(StoreError, match="checkpoints"):
        await run(tmp_path / "taken", start, SHORT)


def test_infinite_settings_are_refused() -> None:
    of_grpo = [f"grpo.{name}" for name in ("lr", "temperature", "std_eps", "beta", "max_norm")]
    for key in (*of_grpo, "reward.cost", "reward.latency"):
        for value in ("inf", "-inf", "nan"):
            with pytest.raises(ConfigError, match=key):
                build({"start": "-"}, TrainSettings, [f"{key}={value}"])
