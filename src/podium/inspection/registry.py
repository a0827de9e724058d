"""Where Inspect finds Podium: the entry point `inspect_ai` of this package names this module.

Importing it registers the provider, which is how Inspect's extensions work, and the one place where Podium does so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspect_ai.model import modelapi

if TYPE_CHECKING:
    from inspect_ai.model import ModelAPI


@modelapi(name="podium")
def podium() -> type[ModelAPI]:
    """The provider behind `podium/...`, loaded when one is asked for."""
    from podium.inspection.provider import Podium  # noqa: PLC0415 - Inspect loads all extensions to find one

    return Podium
