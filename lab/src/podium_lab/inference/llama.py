"""A Llama or Qwen2 model in NumPy: enough to run a small policy without torch.

It has RMSNorm, rotary positions, grouped-query attention, SwiGLU, biases where the checkpoint has them, and tied or
untied embeddings, in float32. Texts of different lengths share a batch, each with a KV cache of its own. Tests compare
it with transformers. It maps tokens to logits; it does not sample or tokenize.

Shapes: T new tokens of all texts, W wanted tokens of all texts, H hidden, D head, N query heads, K key heads, V
vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from podium.errors import CheckpointError

Array = NDArray[np.float32]
Rotations = NDArray[np.complex64]


@dataclass(frozen=True, slots=True)
class Shape:
    """The numbers of config.json that the computation needs."""

    layers: int
    heads: int
    key_heads: int
    head_dim: int
    hidden: int
    inner: int
    rope_theta: float
    norm_eps: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """The shape in a config.json of transformers 4 or 5.

        Raises:
            KeyError: a number is missing.
        """
        heads, hidden = config["num_attention_heads"], config["hidden_size"]
        rope = config.get("rope_parameters") or config
        return cls(
            layers=config["num_hidden_layers"],
            heads=heads,
            key_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or hidden // heads,
            hidden=hidden,
            inner=config["intermediate_size"],
            rope_theta=float(rope.get("rope_theta", 10_000.0)),
            norm_eps=config["rms_norm_eps"],
        )


class _Linear(NamedTuple):
    weight: Array
    """(inputs, outputs), C-contiguous: with a few rows of input this is up to four times as fast as the transpose."""
    bias: Array | None

    def __call__(self, x: Array) -> Array:
        y: Array = x @ self.weight
        if self.bias is not None:
            y += self.bias
        return y


class _Layer(NamedTuple):
    norm_in: Array
    queries_keys_values: _Linear
    out: _Linear
    norm_mlp: Array
    gate_up: _Linear
    down: _Linear


class KVCache:
    """The KV cache of one text: keys and values of every layer for the tokens read so far. One thread uses it.

    To forget the last tokens, set `length` to a smaller number.
    """

    def __init__(self, shape: Shape, capacity: int) -> None:
        self.length = 0
        heads = (shape.layers, shape.key_heads)
        # One column a token, since a few queries are then multiplied in half the time. BLAS may read columns after the
        # last one and warn of their values, so all begin as zeros.
        self.keys: Array = np.zeros((*heads, shape.head_dim, capacity), np.float32)
        self.values: Array = np.empty((*heads, capacity, shape.head_dim), np.float32)


class NewTokens(NamedTuple):
    """The next tokens of a text, for one pass."""

    cache: KVCache
    tokens: Sequence[int]
    states_for_last: int = 1
    """How many of the last tokens get states, at least one."""


class Llama:
    """The weights and the forward pass. Several threads may use it at once."""

    def __init__(self, shape: Shape, weights: Mapping[str, Array]) -> None:
        """
        Raises:
            CheckpointError: a tensor is missing or has another size than the configuration says.
        """
        self.shape = shape

        def tensor(name: str, *size: int | None) -> Array:
            """A tensor of this size; None stands for any number."""
            if name not in weights:
                raise CheckpointError(
                    f"The checkpoint's weights lack {name}, which its config.json promises; save it again."
                )
            stored = weights[name]
            if stored.shape != tuple(
                found if asked is None else asked for asked, found in zip_longest(size, stored.shape)
            ):
                raise CheckpointError(
                    f"The checkpoint's {name} has the size {stored.shape}, but its config.json asks for {size}; the "
                    "two files do not belong together."
                )
            return stored

        def rows(name: str, outputs: int, inputs: int) -> Array:
            """The weight of a linear layer with its bias as a last column: (outputs, inputs + 1)."""
            bias = f"{name}.bias"
            zeros = np.zeros(outputs, np.float32)
            return np.column_stack(
                [
                    tensor(f"{name}.weight", outputs, inputs),
                    tensor(bias, outputs) if bias in weights else zeros,
                ]
            )

        def layer(prefix: str) -> _Layer:
            attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
            width, key_width = shape.heads * shape.head_dim, shape.key_heads * shape.head_dim
            queries = _pair_rotating(rows(f"{attention}.q_proj", width, shape.hidden), shape.head_dim)
            keys = _pair_rotating(rows(f"{attention}.k_proj", key_width, shape.hidden), shape.head_dim)
            values = rows(f"{attention}.v_proj", key_width, shape.hidden)
            return _Layer(
                norm_in=tensor(f"{prefix}.input_layernorm.weight", shape.hidden),
                queries_keys_values=_linear(queries * np.float32(shape.head_dim**-0.5), keys, values),
                out=_linear(rows(f"{attention}.o_proj", shape.hidden, width)),
                norm_mlp=tensor(f"{prefix}.post_attention_layernorm.weight", shape.hidden),
                gate_up=_linear(
                    rows(f"{mlp}.gate_proj", shape.inner, shape.hidden) * np.float32(0.5),
                    rows(f"{mlp}.up_proj", shape.inner, shape.hidden),
                ),
                down=_linear(rows(f"{mlp}.down_proj", shape.hidden, shape.inner)),
            )

        self._embedding = tensor("model.embed_tokens.weight", None, shape.hidden)
        self._layers = [layer(f"model.layers.{index}") for index in range(shape.layers)]
        self._norm = tensor("model.norm.weight", shape.hidden)
        self._rotary: Rotations = np.empty((0, 0), np.complex64)
        self._future: Array = np.empty((0, 0), np.float32)
        head = self._embedding
        if "lm_head.weight" in weights:
            head = tensor("lm_head.weight", len(head), shape.hidden)
        self._head = np.ascontiguousarray(head.T)

    @property
    def vocabulary(self) -> int:
        """The number of tokens in the model's embedding."""
        return len(self._embedding)

    def start(self, capacity: int) -> KVCache:
        """Begin a text of at most `capacity` tokens."""
        return KVCache(self.shape, capacity)

    def copy(self, cache: KVCache, length: int, capacity: int) -> KVCache:
        """A new text that begins with the first `length` tokens of another; they are copied, not read again."""
        copied = KVCache(self.shape, capacity)
        copied.keys[..., :length] = cache.keys[..., :length]
        copied.values[:, :, :length] = cache.values[:, :, :length]
        copied.length = length
        return copied

    def read(self, tokens: Sequence[int], cache: KVCache) -> Array:
        """Read the next tokens of a text; returns the state of each, (T, H)."""
        return self.read_batch([NewTokens(cache, tokens, len(tokens))])

    def read_batch(self, texts: Sequence[NewTokens]) -> Array:
        """Read the next tokens of several texts at once; returns the wanted states, (W, H), text after text.

        The texts share the matrix products; attention runs for each text alone, so no text is padded.
        """
        x = self._embedding[np.concatenate([np.asarray(text.tokens) for text in texts])]
        rotations = self._rotations(texts)
        for index, layer in enumerate(self._layers):
            mixed = layer.queries_keys_values(self._normed(x, layer.norm_in))
            seen = self._attend(mixed, rotations, index, texts)
            if index == len(self._layers) - 1:
                # Of the last layer only the states that the caller wants are used.
                x = _wanted_rows(x, texts)
            x += layer.out(seen)
            x += layer.down(_swiglu(layer.gate_up(self._normed(x, layer.norm_mlp))))
        for text in texts:
            text.cache.length += len(text.tokens)
        return self._normed(x, self._norm)

    def logits(self, states_T_H: Array) -> Array:
        """The logits (..., V) of states (..., H)."""
        logits: Array = states_T_H @ self._head
        return logits

    def _attend(self, mixed: Array, rotations: Rotations, index: int, texts: Sequence[NewTokens]) -> Array:
        """The attention output of each text's new tokens, or in the last layer of its wanted ones.

        The keys and values of all new tokens go into the cache.
        """
        heads, key_heads, dim = self.shape.heads, self.shape.key_heads, self.shape.head_dim
        pairs = mixed[:, : (heads + key_heads) * dim].view(np.complex64)
        pairs *= rotations
        by_head = mixed.reshape(len(mixed), heads + 2 * key_heads, dim).swapaxes(0, 1)
        queries, keys, values = np.split(by_head, [heads, heads + key_heads])
        seen, last = [], 0
        for text in texts:
            cache, first, last = text.cache, last, last + len(text.tokens)
            start, end = cache.length, cache.length + len(text.tokens)
            cache.keys[index, ..., start:end] = keys[:, first:last].swapaxes(1, 2)
            cache.values[index, :, start:end] = values[:, first:last]
            count = text.states_for_last if index == self.shape.layers - 1 else len(text.tokens)
            grouped = queries[:, last - count : last].reshape(key_heads, heads // key_heads * count, dim)
            scores = grouped @ cache.keys[index, ..., :end]
            if count > 1:
                scores.reshape(heads, count, end)[..., end - count :] += self._mask(count)
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            attended = scores @ cache.values[index, :, :end]
            attended /= scores.sum(axis=-1, keepdims=True)
            seen.append(attended.reshape(heads, count, dim).swapaxes(0, 1).reshape(count, heads * dim))
        return np.concatenate(seen)

    def _mask(self, count: int) -> Array:
        """The causal mask of the last `count` tokens among each other, (count, count)."""
        future = self._future
        if len(future) < count:
            self._future = future = np.triu(np.full((count, count), -np.inf, np.float32), k=1)
        return future[:count, :count]

    def _rotations(self, texts: Sequence[NewTokens]) -> Rotations:
        """The rotary embedding of all new tokens, (T, (N + K) D / 2): to multiply by these numbers is to rotate."""
        rotary, ends = self._rotary, [text.cache.length + len(text.tokens) for text in texts]
        if len(rotary) < max(ends):
            powers = np.arange(0, self.shape.head_dim, 2, dtype=np.float32) / self.shape.head_dim
            frequencies = (1.0 / self.shape.rope_theta**powers).astype(np.float32)
            angles = np.outer(np.arange(2 * max(ends), dtype=np.float32), frequencies)
            rotary = (np.cos(angles) + 1j * np.sin(angles)).astype(np.complex64)
            # One assignment: a thread that still uses the shorter table can go on with it.
            self._rotary = rotary = np.tile(rotary, self.shape.heads + self.shape.key_heads)
        return np.concatenate(
            [rotary[text.cache.length : end] for text, end in zip(texts, ends, strict=True)]
        )

    def _normed(self, x: Array, weight: Array) -> Array:
        mean_square = np.einsum("th,th->t", x, x)[:, None] / np.float32(self.shape.hidden)
        normed: Array = x / np.sqrt(mean_square + np.float32(self.shape.norm_eps))
        normed *= weight
        return normed


def _linear(*rows: Array) -> _Linear:
    """Several linear layers joined into one; its output has theirs one after the other."""
    together = np.concatenate(rows)
    bias = together[:, -1].copy()
    return _Linear(np.ascontiguousarray(together[:, :-1].T), bias if bias.any() else None)


def _pair_rotating(rows: Array, dim: int) -> Array:
    """Reorder each head's outputs: two that rotate together become neighbours, as the parts of a complex number."""
    return rows.reshape(-1, 2, dim // 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def _wanted_rows(x: Array, texts: Sequence[NewTokens]) -> Array:
    """The rows of the wanted tokens of each text."""
    ends = np.cumsum([len(text.tokens) for text in texts]).tolist()
    return np.concatenate(
        [x[end - text.states_for_last : end] for end, text in zip(ends, texts, strict=True)]
    )


def _swiglu(gate_up: Array) -> Array:
    """silu(gate) * up. The sigmoid is computed by tanh, since exp overflows for very negative gates.

    `_linear` was given halved gate weights, as the tanh form needs them.
    """
    half, up = np.split(gate_up, 2, axis=-1)
    activated: Array = np.tanh(half)
    activated += 1
    activated *= half
    activated *= up
    return activated


def read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """All tensors of a safetensors file by name, as float32, without torch.

    Raises:
        CheckpointError: the file is not safetensors, or holds a type other than F32, F16 or BF16.
    """
    from safetensors import SafetensorError, deserialize  # noqa: PLC0415

    try:
        entries = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise CheckpointError(
            f"{path} is not a whole safetensors file; copy or save the checkpoint again."
        ) from error
    return {name: _array(name, entry, path) for name, entry in entries}


def _array(name: str, entry: dict[str, Any], path: Path) -> NDArray[np.float32]:
    match entry["dtype"]:
        case "BF16":  # NumPy has no bfloat16: its 16 bits are the upper half of a float32.
            halves = np.frombuffer(entry["data"], dtype="<u2")
            flat = (halves.astype(np.uint32) << 16).view(np.float32)
        case "F16":
            flat = np.frombuffer(entry["data"], dtype="<f2").astype(np.float32)
        case "F32":
            flat = np.frombuffer(entry["data"], dtype="<f4").astype(np.float32)
        case other:
            raise CheckpointError(
                f"{path} holds {name} as {other}; save the checkpoint as float32, float16 or bfloat16."
            )
    return flat.reshape(entry["shape"])
