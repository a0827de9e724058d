"""Loads any checkpoint with transformers and torch, on a GPU if there is one."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import pad
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.cache_utils import DynamicCache, DynamicLayer

from podium.conductor.checkpoint import Checkpoint, PlanLimits
from podium.conductor.codec import ChatCodec, PlainTextCodec, PromptCodec
from podium.conductor.loaded_model import Logits, TokenChunk
from podium.errors import CheckpointError


class _KVCache:
    """The KV cache of one text."""

    length = 0
    key_values: Any = None
    """The keys and values in the model's own form. None for a row of `TorchModel`'s batch and before the first read."""


class TorchModel:
    """A `LoadedModel` over `AutoModelForCausalLM`: float32 on a CPU, on a GPU the type of the checkpoint's file.

    Each prompt has its own forward pass. After that, the next tokens of all texts are read in one pass, if every layer
    of the model keeps all keys and values. In a batch a text may differ from the same text written alone, if two tokens
    are equally likely within rounding. To serve many users, serve the checkpoint with vLLM or another server.
    """

    sharing = None
    """Prefixes are not shared, since the KV cache of a model may have any form."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Load the checkpoint's weights.

        Raises:
            CheckpointError: transformers cannot load the folder, or config.json describes a larger model than
                the weights.
        """
        on_gpu = torch.cuda.is_available()
        self.batch = 64 if on_gpu else 8
        self._device = torch.device("cuda" if on_gpu else "cpu")
        try:
            # Without the last argument, transformers asks on the terminal whether to run the checkpoint's own code.
            tokenizer: Any = AutoTokenizer.from_pretrained(checkpoint.path, trust_remote_code=False)
            _require_all_weights(checkpoint)
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
        parameters = inspect.signature(model.forward).parameters
        self._takes_positions = "position_ids" in parameters
        self._cache = "cache" if "cache" in parameters else "past_key_values"
        """The name of the argument for keys and values, which differs between versions of transformers."""
        self._rows: list[_KVCache] = []
        self._batch: Any = DynamicCache()
        """The keys and values of the batch (rows, heads, longest text, head size). Shorter texts are padded on the
        left."""
        plan = checkpoint.plan or PlanLimits()
        self.codec: PromptCodec = (
            ChatCodec(tokenizer, plan.chat_template_kwargs)
            if checkpoint.uses_chat_template
            else PlainTextCodec.of(checkpoint)
        )
        self.context = checkpoint.context
        self.eos_token_ids = checkpoint.eos_token_ids

    def start(self, capacity: int) -> _KVCache:
        del capacity  # the model's own cache grows
        return _KVCache()

    @torch.inference_mode()
    def read(self, chunks: Sequence[TokenChunk]) -> list[Logits]:
        rows = [chunk for chunk in chunks if self._can_batch(chunk)]
        logits = dict(zip(map(id, rows), self._read_rows(rows), strict=True)) if len(rows) > 1 else {}
        return [
            logits[id(chunk)] if id(chunk) in logits else self._read(chunk.cache, chunk.tokens)
            for chunk in chunks
        ]

    def _can_batch(self, chunk: TokenChunk) -> bool:
        """Whether the text can be a row of the batch: it reads one token after earlier tokens, and its cache can be
        padded."""
        cache = chunk.cache
        if len(chunk.tokens) != 1 or not self._takes_positions or cache.length == 0:
            return False
        key_values = self._batch if cache.key_values is None else cache.key_values
        return type(key_values) is DynamicCache and all(
            type(layer) is DynamicLayer for layer in key_values.layers
        )

    def _read_rows(self, chunks: Sequence[TokenChunk]) -> list[Logits]:
        self._join([chunk.cache for chunk in chunks])
        width = max(row.length for row in self._rows)
        mask = [[0] * (width - row.length) + [1] * (row.length + 1) for row in self._rows]
        logits, _ = self._forward(
            [list(chunk.tokens) for chunk in chunks],
            self._batch,
            attention_mask=torch.tensor(mask, device=self._device),
            position_ids=torch.tensor([[row.length] for row in self._rows], device=self._device),
        )
        for row in self._rows:
            row.length += 1
        return logits

    def _read(self, cache: _KVCache, tokens: Sequence[int]) -> Logits:
        if cache in self._rows:
            self._join([])
        (logits,), cache.key_values = self._forward([list(tokens)], cache.key_values)
        cache.length += len(tokens)
        return logits

    def _join(self, rows: list[_KVCache]) -> None:
        """Make these texts the batch. Texts that leave the batch get their keys and values back."""
        if rows == self._rows:
            return
        for number, row in enumerate(self._rows):
            row.key_values = DynamicCache()
            for index, layer in enumerate(self._batch.layers):
                parts = (part[number : number + 1, :, -row.length :] for part in (layer.keys, layer.values))
                row.key_values.update(*parts, index)
        width = max((row.length for row in rows), default=0)
        self._rows, self._batch = rows, DynamicCache()
        caches = [row.key_values.layers for row in rows]
        for index, layers in enumerate(zip(*caches, strict=True)):
            paddings = [(0, 0, width - row.length, 0) for row in rows]
            keys = torch.cat([pad(row.keys, padding) for row, padding in zip(layers, paddings, strict=True)])
            values = torch.cat(
                [pad(row.values, padding) for row, padding in zip(layers, paddings, strict=True)]
            )
            self._batch.update(keys, values, index)
        for row in rows:
            row.key_values = None

    def _forward(
        self, ids: list[list[int]], key_values: Any, **positions: torch.Tensor
    ) -> tuple[list[Logits], Any]:
        """The logits (1, V) after the last token of each text, and the keys and values with those of the new tokens."""
        output = self._model(
            input_ids=torch.tensor(ids, device=self._device),
            use_cache=True,
            logits_to_keep=1,
            **{self._cache: key_values},
            **positions,
        )
        return list(output.logits[:, -1:].float().cpu().numpy()), getattr(output, self._cache)


def _require_all_weights(checkpoint: Checkpoint) -> None:
    """Refuse a checkpoint that has too few weights, since transformers would invent the rest."""
    held = checkpoint.parameters()
    config: Any = AutoConfig.from_pretrained(checkpoint.path, trust_remote_code=False)
    if held is None or hasattr(config, "quantization_config"):
        return
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
            config, trust_remote_code=False
        )
    described = model.num_parameters()
    if described > held:
        raise CheckpointError(
            f"{checkpoint.path / 'config.json'} describes a model of {described:,} parameters, but its weights are "
            f"{held:,}; save the checkpoint again."
        )
