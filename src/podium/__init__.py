"""Podium: an open Conductor, a small language model that leads a team of others.

The names of `podium.library` can be imported from here: `podium.Team`, `podium.SyncTeam`, `podium.evaluate` and others.
They are loaded when one is first used, so `import podium` alone loads nothing heavy.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.library import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'podium' has no attribute {name!r}")
    library = importlib.import_module("podium.library")
    if name not in library.__all__:
        raise AttributeError(f"module 'podium' has no attribute {name!r}; see podium.library for the names")
    return getattr(library, name)


def __dir__() -> list[str]:
    return ["__version__", *importlib.import_module("podium.library").__all__]
