"""What installed packages add is found by entry points, and a bad one is told in one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from installed_package import install_package
from podium.errors import ConfigError
from podium.plugins import PluginGroup

TOYS = PluginGroup[str]("podium.toys", "toy", str)


def install(monkeypatch: pytest.MonkeyPatch, site: Path, package: str, entries: str, code: str) -> None:
    install_package(monkeypatch, site, package, f"[podium.toys]\n{entries}\n", code)


def test_a_name_loads_its_own_module_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path / "1", "toys_one", "ball = toys_one:BALL", "BALL = 'a ball'")
    install(monkeypatch, tmp_path / "2", "toys_two", "top = toys_two:TOP", "TOP = 'a top'")
    assert (TOYS.names, TOYS.module("top")) == (("ball", "top"), "toys_two")
    assert TOYS.find("kite") is None
    assert TOYS.find("ball") == "a ball"
    assert "toys_two" not in sys.modules
    assert dict(TOYS.items()) == {"ball": "a ball", "top": "a top"}


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("", "cannot be loaded"),
        ("raise RuntimeError('broken')", r"cannot be loaded \(broken\)"),
        ("BALL = 3", "is no str"),
    ],
)
def test_unusable_plugin_is_reported_with_its_entry_point(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, problem: str
) -> None:
    install(monkeypatch, tmp_path, "toys_bad", "ball = toys_bad:BALL", code)
    with pytest.raises(ConfigError, match=rf"The toy 'ball' is toys_bad:BALL, which {problem}"):
        TOYS.find("ball")


def test_two_packages_with_one_name_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for package in ("toys_a", "toys_b"):
        install(monkeypatch, tmp_path / package, package, f"ball = {package}:BALL", "BALL = 'a ball'")
    with pytest.raises(ConfigError, match=r"toys_[ab]:BALL and toys_[ab]:BALL"):
        TOYS.names  # noqa: B018
