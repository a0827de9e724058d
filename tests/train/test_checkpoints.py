"""Checkpoints: all of the state comes back, and a kill leaves none by halves."""

from __future__ import annotations

from pathlib import Path

from podium.train.shared_prefix.checkpoints import Checkpoints, read_model, write_model
from podium.train.shared_prefix.update import adamw
from tiny_run import write_start


def test_only_the_newest_complete_checkpoint_is_kept(tmp_path: Path) -> None:
    start = write_start(tmp_path / "start")
    kept = Checkpoints(tmp_path / "run", start, start.prompt)
    assert kept.latest() is None
    model = read_model(start)
    optimizer = adamw(model)
    for iteration in (9, 10, 11):
        kept.save(model, optimizer, iteration)
    for part in (".part", "000012"):
        write_model(model, tmp_path / "run" / part, config=start.config, companions=[])
    latest = kept.latest()
    assert latest is not None
    assert latest.name == "000011"
    assert not (tmp_path / "run" / "000010").exists()
    assert kept.save(model, optimizer, 12).name == "000012"
