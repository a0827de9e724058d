"""The script that makes a run's policy the shipped one: the old one stays until the new one is whole."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from podium.conductor.checkpoint import checkpoint_folder

SCRIPT = Path(__file__).parent.parent / "runs" / "ship-conductor.sh"
ASSETS = Path("lab/src/podium_lab/assets")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A tree with the script, a Python where it looks for one, a conductor that ships, and an empty run."""
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "lab" / "runs").mkdir(parents=True)
    shutil.copy(SCRIPT, tmp_path / "lab" / "runs")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (tmp_path / ASSETS / "conductor").mkdir(parents=True)
    (tmp_path / ASSETS / "conductor" / "old").write_text("shipped before")
    return tmp_path


def ship(repository: Path, name: str = "conductor") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [repository / "lab" / "runs" / "ship-conductor.sh", "runs/mine", name],
        capture_output=True,
        text=True,
        check=False,
    )


def kept(repository: Path) -> list[str]:
    assets = repository / ASSETS
    return sorted(str(file.relative_to(assets)) for file in assets.rglob("*") if file.is_file())


def complete(run: Path) -> None:
    shutil.copytree(checkpoint_folder("world-warmstart"), run / "policy")
    for name in ("config.json", "metrics.jsonl"):
        (run / name).write_text("{}\n")


def test_unfinished_run_is_refused_and_the_old_policy_stays(repository: Path) -> None:
    refused = ship(repository)
    assert refused.returncode == 2
    assert refused.stderr == (
        "runs/mine has no policy/config.json; give the folder of a training run that has ended.\n"
    )
    assert kept(repository) == ["conductor/old"]


def test_a_policy_that_cannot_be_read_leaves_the_old_one(repository: Path) -> None:
    complete(repository / "runs" / "mine")
    (repository / "runs" / "mine" / "policy" / "model.safetensors").write_bytes(b"torn")
    assert ship(repository).returncode == 1
    assert kept(repository) == ["conductor/old"]


def test_finished_run_replaces_the_shipped_policy(repository: Path) -> None:
    complete(repository / "runs" / "mine")
    shipping = ship(repository)
    assert (shipping.returncode, shipping.stderr) == (0, "")
    names = {name.removeprefix("conductor/") for name in kept(repository)}
    assert {
        "model.safetensors",
        "podium.json",
        "tokenizer.json",
        "run/config.json",
        "run/metrics.jsonl",
    } <= names
    assert "old" not in names
    config = json.loads((repository / ASSETS / "conductor" / "config.json").read_text())
    assert config["dtype"] == "bfloat16"
    assert ship(repository, "world-conductor").returncode == 0
    assert {name.partition("/")[0] for name in kept(repository)} == {"conductor", "world-conductor"}
