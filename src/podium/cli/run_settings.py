"""Reads the settings of a training, for `podium train` and `podium score-server`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from podium.config import Settings, build, load

S = TypeVar("S", bound=Settings)
_FILES = ("tasks", "pool")
"""Keys that may name a file beside the settings."""


def read_run_settings(config: Path | None, model: type[S], overrides: Sequence[str]) -> S:
    """The settings of a file, or the defaults, after the overrides.

    Questions and a pool that the file names are looked for in the working folder, and then in the file's own.
    """
    if config is None:
        return build({}, model, overrides, source="command line")
    return with_files_beside(load(config, model, overrides), config, overrides)


def with_files_beside(settings: S, config: Path, overrides: Sequence[str]) -> S:
    """The settings with the questions and the pool that lie beside their file, if the working folder lacks them."""
    keys = {text.partition("=")[0].strip() for text in overrides}
    beside = {
        key: str(path)
        for key in _FILES
        if (name := getattr(settings, key, "")) and key not in keys and not Path(name).exists()
        if (path := (config.parent / name).absolute()).is_file()
    }
    return settings.model_copy(update=beside)
