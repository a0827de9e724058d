"""What comes with Podium and with installed packages, by name: pools of workers and trained policies.

Another package adds its own by an entry point of the group "podium.assets" that names a folder as a package, such as
`podium_lab.assets`. The folder has pools as `pools/NAME.toml`, and each policy in a folder of its name. The package's
code is not loaded, and a package that names a folder which is not there is a `ConfigError`. Nothing here reads the
files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from podium.plugins import PluginGroup

_OWN = Path(__file__).parent / "assets"
_NAME = re.compile(r"[A-Za-z0-9_-]+")
"""Anything else is a path. For a path, the installed packages are not searched."""


def shipped_pool(name: str) -> Path | None:
    """The file of the pool that comes under this name, or None if there is none."""
    return next((path for path in _candidate_paths(name, f"pools/{name}.toml") if os.path.isfile(path)), None)


def shipped_checkpoint(name: str) -> Path | None:
    """The folder of the policy that comes under this name, or None if there is none."""
    return next((path for path in _candidate_paths(name, name) if os.path.isfile(path / "podium.json")), None)


def shipped_checkpoints() -> tuple[str, ...]:
    """The names of all policies that come with Podium and installed packages, in alphabetical order."""
    return tuple(sorted(path.parent.name for folder in _folders() for path in folder.glob("*/podium.json")))


def _candidate_paths(name: str, inside: str) -> Iterator[Path]:
    return (folder / inside for folder in _folders()) if _NAME.fullmatch(name) else iter(())


def _folders() -> Iterator[Path]:
    yield _OWN
    assets = PluginGroup[object]("podium.assets", "package of assets")
    for name in assets.names:
        try:
            found = find_spec(assets.module(name))
        except ImportError:
            found = None
        if found is None or not found.submodule_search_locations:
            raise assets.refusal(name, "is no folder of an installed package")
        yield from map(Path, found.submodule_search_locations)
