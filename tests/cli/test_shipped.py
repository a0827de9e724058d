"""What comes with the package and those installed beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podium.conductor.checkpoint import Checkpoint, checkpoint_folder
from podium.plugins import shipped_checkpoints


@pytest.mark.parametrize("name", shipped_checkpoints())
def test_a_shipped_checkpoint_is_small_and_says_how_it_was_made(name: str) -> None:
    folder = checkpoint_folder(name)
    checkpoint = Checkpoint.read(name)
    assert checkpoint.prompt.style == "brief"
    assert 1_000_000 <= (checkpoint.parameters() or 0) <= 5_000_000
    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) <= 8 * 2**20
    run = folder / "run"
    assert json.loads((run / "config.json").read_text())
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) > 10


def test_a_shipped_conductor_and_its_start_read_the_same_tokens() -> None:
    first, second = (
        checkpoint_folder(f"world-{name}") / "tokenizer.json" for name in ("warmstart", "conductor")
    )
    assert Path(first).read_bytes() == Path(second).read_bytes()
