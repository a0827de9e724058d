"""Pools, policies and model loaders of installed packages are used by their names."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from installed_package import install_package
from podium.conductor.checkpoint import Checkpoint
from podium.conductor.loaded_model import INSTALLED_LOADERS
from podium.errors import ConfigError
from podium.plugins import shipped_checkpoint, shipped_checkpoints, shipped_pool
from podium.team.team_file import open_pool
from podium.workers.pool import pool_file

ENTRIES = """
[podium.assets]
toys = toy_team.{folder}
[podium.model_loaders]
toy = toy_team.loading:LOADER
"""
LOADER = """
from podium.conductor.loaded_model import ModelLoader

LOADER = ModelLoader(lambda checkpoint: checkpoint.config["model_type"] == "toy", lambda checkpoint: None)
"""


def install(monkeypatch: pytest.MonkeyPatch, site: Path, folder: str = "assets") -> Path:
    assets = site / "toy_team" / "assets"
    (assets / "pools").mkdir(parents=True)
    (assets / "toy-policy").mkdir()
    (assets / "pools" / "toys.toml").write_text('[[worker]]\nname = "ball"\nkind = "calculator"\n')
    (assets / "toy-policy" / "podium.json").write_text("{}")
    (assets / "toy-policy" / "config.json").write_text(json.dumps({"model_type": "toy"}))
    (assets / "toy-policy" / "model.safetensors").touch()
    (assets / "toy-policy" / "tokenizer.json").touch()
    (site / "toy_team" / "__init__.py").touch()
    (site / "toy_team" / "loading.py").write_text(LOADER)
    install_package(monkeypatch, site, "toy_team", ENTRIES.format(folder=folder))
    for module in [name for name in sys.modules if name.startswith("toy_team")]:
        monkeypatch.delitem(sys.modules, module)
    return assets


def test_a_pool_and_a_policy_of_a_package_have_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assets = install(monkeypatch, tmp_path)
    assert open_pool(pool_file("toys")).names == ("ball",)
    assert shipped_pool("no-toys") is None
    assert shipped_checkpoint("toy-policy") == assets / "toy-policy"
    assert "toy-policy" in shipped_checkpoints()
    assert Checkpoint.read("toy-policy").name == "toy-policy"


def test_a_path_is_never_the_name_of_an_installed_pool(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, tmp_path)
    for name in ("pools/toys", "toys.toml", "../pools/toys", ""):
        assert shipped_pool(name) is None
    assert pool_file("toys.toml", tmp_path) == tmp_path / "toys.toml"


def test_assets_that_are_not_there_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, folder="nowhere")
    with pytest.raises(ConfigError, match=r"'toys' is toy_team\.nowhere, which is no folder"):
        shipped_pool("toys")


def test_a_loader_of_a_package_is_for_the_checkpoints_that_it_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, tmp_path)
    toy = dict(INSTALLED_LOADERS.items())["toy"]
    assert toy.loads(Checkpoint.read("toy-policy"))
