"""Guided (constrained) decoding: a guide says which tokens must not follow those that a policy has written.

A checkpoint's prompt settings name its guide, so the policy is guided in the same way in training and in use. Installed
packages bring the guides, each by an entry point of the group "podium.guides" that names a `GuideKind`.
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
        """The tokens that must not follow a completion's tokens so far, as ids, or None if any may follow."""
        ...


GuideKind: TypeAlias = Callable[[Callable[[Sequence[int]], str], int], Guide]
"""(the text of some tokens, the number of tokens that the policy knows) -> its guide."""

_GUIDES = PluginGroup[GuideKind]("podium.guides", "guide", Callable)


def open_guide(
    prompt: PromptSettings, decode: Callable[[Sequence[int]], str], vocabulary: int
) -> Guide | None:
    """The guide of a policy with these prompt settings, or None if it is not guided.

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
