"""Checkpoints: all of the state comes back, and a kill leaves none by halves."""

from __future__ import annotations

from pathlib import Path

import torch

from podium.train.runtime import named_generator
from podium.train.shared_prefix.checkpoints import Checkpoints, read_model, write_model
from podium.train.shared_prefix.update import adamw, optimizer_step
from tiny_run import write_start


def stepped(model: torch.nn.Module, optimizer: torch.optim.Optimizer, name: str) -> None:
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=named_generator(name))
    optimizer_step(optimizer, model, rate=1e-2)


def test_training_goes_on_exactly_from_a_checkpoint(tmp_path: Path) -> None:
    start = write_start(tmp_path / "start")
    kept = Checkpoints(tmp_path / "run", start, start.prompt)
    model = read_model(start)
    optimizer = adamw(model)
    stepped(model, optimizer, "one")
    kept.save(model, optimizer, 1)
    stepped(model, optimizer, "two")

    other = read_model(start)
    other_optimizer = adamw(other)
    latest = kept.latest()
    assert latest is not None
    assert kept.restore(latest, other, other_optimizer) == 1
    stepped(other, other_optimizer, "two")
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, other.state_dict()[name]), name


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
