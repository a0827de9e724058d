"""The engine for any other checkpoint: transformers and torch, on a GPU where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from podium.conductor.chat_codec import ChatCodec
from podium.conductor.checkpoint import Checkpoint, PlanSettings
from podium.conductor.codec import Codec
from podium.conductor.engine import Logits, Passage
from podium.errors import CheckpointError
from podium.types import Message


class _KVCache:
    """The KV cache of one text, in the model's own form."""

    key_values: Any = None


class TorchEngine:
    """An `Engine` over `AutoModelForCausalLM`: float32 on a CPU, on a GPU the type that the checkpoint was saved in.

    Each text has a forward pass of its own. To serve many users, serve the checkpoint with vLLM or another server.
    """

    batch = 8
    sharing = None
    """None, since the KV cache of a model may have any form."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """
        Raises:
            CheckpointError: transformers cannot load the folder.
        """
        on_gpu = torch.cuda.is_available()
        self._device = torch.device("cuda" if on_gpu else "cpu")
        try:
            # Without the last, transformers asks on the terminal whether to run the checkpoint's own code.
            tokenizer: Any = AutoTokenizer.from_pretrained(checkpoint.path, trust_remote_code=False)
            model: Any = AutoModelForCausalLM.from_pretrained(
                checkpoint.path,
                dtype="auto" if on_gpu else torch.float32,
                use_safetensors=True,
                trust_remote_code=False,
            )
        except (OSError, ValueError, KeyError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise CheckpointError(f"transformers cannot load {checkpoint.path}: {reason}") from error
        self._model = model.eval().to(self._device)
        plan = checkpoint.plan or PlanSettings()
        self._codec = (
            ChatCodec(tokenizer, plan.chat_template_kwargs) if checkpoint.chats else Codec.of(checkpoint)
        )
        self.context = checkpoint.context
        self.ends = checkpoint.ends

    def encode(self, messages: Sequence[Message]) -> list[int]:
        return self._codec.encode(messages)

    def decode(self, tokens: Sequence[int]) -> str:
        return self._codec.decode(tokens)

    def start(self, capacity: int) -> _KVCache:
        del capacity  # the model's own cache grows
        return _KVCache()

    @torch.inference_mode()
    def read(self, passages: Sequence[Passage]) -> list[Logits]:
        return [self._read(passage.cache, passage.tokens) for passage in passages]

    def _read(self, cache: _KVCache, tokens: Sequence[int]) -> Logits:
        ids = torch.tensor([list(tokens)], device=self._device)
        output = self._model(
            input_ids=ids, past_key_values=cache.key_values, use_cache=True, logits_to_keep=1
        )
        cache.key_values = output.past_key_values
        logits: Logits = output.logits[0, -1:].float().cpu().numpy()
        return logits
