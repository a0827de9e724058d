"""A small policy, loaded: a Llama or Qwen2 model in NumPy and its tokenizer, without torch and transformers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import PlainTextCodec, PromptCodec
from podium.conductor.loaded_model import Logits, PrefixSharing, TokenChunk
from podium.errors import CheckpointError
from podium_lab.inference.llama import KVCache, Llama, NewTokens, Shape, read_weights


class NumpyModel:
    """A `LoadedModel` that needs neither torch nor a GPU."""

    batch = 32

    def __init__(self, checkpoint: Checkpoint) -> None:
        """
        Raises:
            CheckpointError: the folder's files are damaged or do not belong together.
        """
        try:
            shape = Shape.of(checkpoint.config)
        except KeyError as error:
            raise CheckpointError(
                f"{checkpoint.path / 'config.json'} lacks {error}; save the checkpoint again."
            ) from error
        self._llama = Llama(shape, read_weights(checkpoint.path / "model.safetensors"))
        tokenizer = checkpoint.tokenizer()
        if tokenizer.get_vocab_size() > self._llama.vocabulary:
            raise CheckpointError(
                f"The tokenizer of {checkpoint.path} has {tokenizer.get_vocab_size()} tokens, but its model "
                f"knows {self._llama.vocabulary}; the two do not belong together."
            )
        self.codec: PromptCodec = PlainTextCodec(tokenizer, checkpoint.bos_token_id)
        self.context = checkpoint.context
        self.eos_token_ids = checkpoint.eos_token_ids

    def start(self, capacity: int) -> KVCache:
        return self._llama.start(capacity)

    @property
    def sharing(self) -> PrefixSharing | None:
        return self

    def copy(self, cache: KVCache, length: int, capacity: int) -> KVCache:
        return self._llama.copy(cache, length, capacity)

    def cut(self, cache: KVCache, length: int) -> None:
        cache.length = length

    def read(self, chunks: Sequence[TokenChunk]) -> list[Logits]:
        texts = [NewTokens(chunk.cache, chunk.tokens, chunk.logits_for_last) for chunk in chunks]
        logits = self._llama.logits(self._llama.read_batch(texts))
        return np.split(logits, np.cumsum([text.states_for_last for text in texts])[:-1])
