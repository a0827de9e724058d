"""Guided (constrained) decoding: a guide says which tokens must not come next in a policy's completion.

A checkpoint's prompt settings name its guide, so the policy is guided in the same way in training and in use. Installed
packages provide the guides. Each guide has an entry point of the group "podium.guides" that names a `GuideKind`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from podium.conductor.prompt import PromptSettings
from podium.errors import CheckpointError
from podium.plugins import PluginGroup

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Guide(Protocol):
    """Guides the completions of one policy."""

    def forbidden(self, tokens: Sequence[int]) -> NDArray[np.int64] | None:
        """The ids of the tokens that must not follow the tokens of a completion so far. None if any token may
        follow."""
        ...


GuideKind: TypeAlias = Callable[[Callable[[Sequence[int]], str], int], Guide]
"""A function that makes a guide. Its arguments are a function that decodes tokens, and the size of the vocabulary."""

_GUIDES = PluginGroup[GuideKind]("podium.guides", "guide", Callable)


def open_guide(
    prompt: PromptSettings, decode: Callable[[Sequence[int]], str], vocabulary: int
) -> Guide | None:
    """The guide of a policy with these prompt settings. None if the policy is not guided.

    Raises:
        CheckpointError: no installed package has the guide.
        ConfigError: the guide cannot be loaded.
    """
    if not prompt.guide:
        return None
    kind = _GUIDES.find(prompt.guide)
    if kind is None:
        raise CheckpointError(
            f"The policy is guided by {prompt.guide!r}, which no installed package brings; install the package "
            "that its training used."
        )
    return kind(decode, vocabulary)
