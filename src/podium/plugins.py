"""What installed packages add to Podium, found by their entry points, and the pools and policies that come by name.

A package names what it adds in its `pyproject.toml`:

    [project.entry-points."podium.workers"]
    shout = "my_package.workers:KIND"

Each group is a `PluginGroup`, which stands beside the table of Podium's own things of that sort. Nothing is imported
until it is named, so an unused package costs nothing but the search of its metadata.

An entry point of the group "podium.assets" names a folder as a package, such as `podium_lab.assets`. The folder has
pools as `pools/NAME.toml`, and each policy in a folder of its name. Nothing here reads these files.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from podium.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True)  # With slots, PluginGroup[Verb](...) fails in Python 3.11.
class PluginGroup(Generic[T]):
    """A group of entry points, all of which name things of one sort."""

    group: str
    """The name of the group in a `pyproject.toml`, such as "podium.workers"."""
    noun: str
    """What one of them is, for messages, such as "kind of worker"."""
    expected: Any = object
    """The class of what an entry point names."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that installed packages use, in alphabetical order."""
        return tuple(sorted(self._entries))

    def find(self, name: str) -> T | None:
        """What an installed package adds under this name, or None if none does. What cannot be loaded, or is not of the
        expected class, is a `ConfigError`."""
        entry = self._entries.get(name)
        return None if entry is None else self._load(entry)

    def items(self) -> Iterator[tuple[str, T]]:
        """The name and the thing of each entry point, in alphabetical order. Imports the packages, as `find` does."""
        return ((name, self._load(self._entries[name])) for name in self.names)

    def module(self, name: str) -> str:
        """The module that an entry point of `names` is in, without importing it."""
        return self._entries[name].module

    def refusal(self, name: str, problem: str) -> ConfigError:
        """The error of an entry point that cannot be used. The problem goes on after "which", as "is no WorkerKind"."""
        entry = self._entries[name]
        return ConfigError(f"The {self.noun} {name!r} is {entry.value}, which {problem}; fix that package.")

    @property
    def _entries(self) -> Mapping[str, EntryPoint]:
        return _search(self.group, tuple(sys.path))

    def _load(self, entry: EntryPoint) -> T:
        try:
            found: T = entry.load()
        except Exception as error:  # another package's code, which may raise anything
            raise self.refusal(entry.name, f"cannot be loaded ({error})") from error
        if not isinstance(found, self.expected):
            raise self.refusal(entry.name, f"is no {self.expected.__name__}")
        return found


@cache
def _search(group: str, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """The entry points of a group on a module path. To search takes 20 ms or more, so each path is searched once. Two
    packages that use one name are a `ConfigError`."""
    del path
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise ConfigError(
                f"Two entry points of {group} are named {entry.name!r}, {other.value} and {entry.value}; "
                "uninstall one of their packages."
            )
    return MappingProxyType(found)


_OWN_ASSETS = Path(__file__).parent / "assets"
_ASSET_NAME = re.compile(r"[A-Za-z0-9_-]+")
"""Anything else is a path. For a path, the installed packages are not searched."""


def shipped_pool(name: str) -> Path | None:
    """The file of the pool that comes under this name, or None if there is none."""
    return next((path for path in _candidate_paths(name, f"pools/{name}.toml") if os.path.isfile(path)), None)


def shipped_checkpoint(name: str) -> Path | None:
    """The folder of the policy that comes under this name, or None if there is none."""
    return next((path for path in _candidate_paths(name, name) if os.path.isfile(path / "podium.json")), None)


def shipped_checkpoints() -> tuple[str, ...]:
    """The names of all policies that come with Podium and installed packages, in alphabetical order."""
    return tuple(
        sorted(path.parent.name for folder in _asset_folders() for path in folder.glob("*/podium.json"))
    )


def _candidate_paths(name: str, inside: str) -> Iterator[Path]:
    return (folder / inside for folder in _asset_folders()) if _ASSET_NAME.fullmatch(name) else iter(())


def _asset_folders() -> Iterator[Path]:
    yield _OWN_ASSETS
    assets = PluginGroup[object]("podium.assets", "package of assets")
    for name in assets.names:
        try:
            found = find_spec(assets.module(name))
        except ImportError:
            found = None
        if found is None or not found.submodule_search_locations:
            raise assets.refusal(name, "is no folder of an installed package")
        yield from map(Path, found.submodule_search_locations)
