"""The entry point `inspect_ai` of this package, through which Inspect finds Podium.

Importing it registers the provider, as Inspect requires of its extensions. No other import of Podium registers
anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspect_ai.model import modelapi

if TYPE_CHECKING:
    from inspect_ai.model import ModelAPI


@modelapi(name="podium")
def podium() -> type[ModelAPI]:
    """The provider of `podium/...` models, loaded when one is used."""
    # Inspect loads all extensions to find one.
    from podium.inspect_provider.provider import PodiumModelAPI  # noqa: PLC0415

    return PodiumModelAPI
