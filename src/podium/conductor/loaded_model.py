"""The language model of a local policy, loaded with its tokenizer: it reads tokens and returns logits. A guide says
which tokens must not come next in a completion (guided, or constrained, decoding).

`torch_model` runs any checkpoint through transformers. An installed package may load some checkpoints in another way,
by an entry point of the group "podium.model_loaders" that names a `ModelLoader`, or bring a guide, by one of the group
"podium.guides" that names a `GuideKind`. A checkpoint's prompt settings name its guide, so the policy is guided in the
same way in training and in use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import PromptCodec
from podium.conductor.prompt import PromptSettings
from podium.errors import CheckpointError
from podium.plugins import PluginGroup

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Logits: TypeAlias = NDArray[np.float32]
else:
    Logits = Any


@dataclass(frozen=True, slots=True)
class TokenChunk:
    """The tokens of one text that one pass of the model reads."""

    cache: Any
    """The model's KV cache of the text, from `LoadedModel.start` or `PrefixSharing.copy`."""
    tokens: Sequence[int]
    logits_for_last: int = 1
    """How many of the last tokens get logits."""


class PrefixSharing(Protocol):
    """The methods of a model whose KV caches can be copied and cut."""

    def copy(self, cache: Any, length: int, capacity: int) -> Any:
        """Begin a text with a copy of the first `length` tokens of another text's cache."""
        ...

    def cut(self, cache: Any, length: int) -> None:
        """Forget all but the first `length` tokens."""
        ...


class LoadedModel(Protocol):
    """A loaded model with its tokenizer. One thread at a time uses it."""

    codec: PromptCodec
    context: int
    """The most tokens that prompt and completion have together."""
    eos_token_ids: frozenset[int]
    """The tokens that end a completion."""
    batch: int
    """The most texts in one pass."""

    @property
    def sharing(self) -> PrefixSharing | None:
        """Copies and cuts KV caches. If it is None, there is neither prefix sharing nor speculative decoding."""
        ...

    def start(self, capacity: int) -> Any:
        """Begin a text of at most `capacity` tokens."""
        ...

    def read(self, chunks: Sequence[TokenChunk]) -> Sequence[Logits]:
        """Read the next tokens of several texts. Returns the logits (logits_for_last, V) of each text."""
        ...


@dataclass(frozen=True, slots=True)
class ModelLoader:
    """Loads some checkpoints."""

    loads: Callable[[Checkpoint], bool]
    """Whether this loader runs the checkpoint better than transformers does."""
    load: Callable[[Checkpoint], LoadedModel]
    """Loads the checkpoint. Raises `CheckpointError` if its files are damaged or do not belong together."""


INSTALLED_LOADERS = PluginGroup[ModelLoader]("podium.model_loaders", "model loader", ModelLoader)


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
