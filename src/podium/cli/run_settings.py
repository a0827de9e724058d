"""The settings of `podium train`, of each stage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from podium.config import Settings, build, load

S = TypeVar("S", bound=Settings)


def read_run_settings(config: Path | None, model: type[S], overrides: Sequence[str]) -> S:
    """The settings of a file, or the defaults, after the overrides."""
    if config is not None:
        return load(config, model, overrides)
    return build({}, model, overrides, source="command line")
