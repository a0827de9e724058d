"""A Llama- or Qwen2-shaped model in NumPy: enough to run a small policy without torch.

RMSNorm, rotary positions, grouped-query attention, SwiGLU, biases where the checkpoint has them, tied or
untied embeddings; float32, batch of one, a cache of keys and values for each reading. Tested equal to
transformers. It neither samples nor knows of text.

Shapes: T new tokens, S tokens so far, H hidden, D head, N query heads, K key heads, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from podium.errors import CheckpointError

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Shape:
    """The numbers of config.json that the computation needs."""

    layers: int
    heads: int
    key_heads: int
    head_dim: int
    hidden: int
    rope_theta: float
    norm_eps: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """From a Hugging Face configuration, of transformers 4 or 5.

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
            rope_theta=float(rope.get("rope_theta", 10_000.0)),
            norm_eps=config["rms_norm_eps"],
        )


def is_llama(config: Mapping[str, Any]) -> bool:
    """Whether this module computes exactly what the configuration says."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    return (
        config.get("model_type") in ("llama", "qwen2")
        and config.get("hidden_act", "silu") == "silu"
        and rope.get("rope_type", rope.get("type", "default")) == "default"
        and not config.get("use_sliding_window", False)
    )


class _Linear(NamedTuple):
    weight: Array
    bias: Array | None

    def __call__(self, x: Array) -> Array:
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias


class _Layer(NamedTuple):
    norm_in: Array
    queries_keys_values: _Linear
    out: _Linear
    norm_mlp: Array
    gate_up: _Linear
    down: _Linear


class Reading:
    """One text being read: keys and values of every layer so far. Belongs to one caller."""

    def __init__(self, shape: Shape, capacity: int) -> None:
        self.length = 0
        size = (shape.layers, shape.key_heads, capacity, shape.head_dim)
        self.keys: Array = np.empty(size, np.float32)
        self.values: Array = np.empty(size, np.float32)
        powers = np.arange(0, shape.head_dim, 2, dtype=np.float32) / shape.head_dim
        frequencies = (1.0 / shape.rope_theta**powers).astype(np.float32)
        angles = np.outer(np.arange(capacity, dtype=np.float32), frequencies)
        self.cos, self.sin = np.cos(angles), np.sin(angles)


class Llama:
    """The weights, and what they compute. Not changed after construction, so threads may share it."""

    def __init__(self, shape: Shape, weights: Mapping[str, Array]) -> None:
        """
        Raises:
            CheckpointError: a tensor is missing or has another size than the configuration says.
        """
        self.shape = shape

        def tensor(name: str) -> Array:
            if name not in weights:
                raise CheckpointError(
                    f"The checkpoint's weights lack {name}, which its config.json promises; save it again."
                )
            return weights[name]

        def linear(*names: str) -> _Linear:
            biases = [weights[f"{name}.bias"] for name in names if f"{name}.bias" in weights]
            return _Linear(
                np.concatenate([tensor(f"{name}.weight") for name in names]),
                np.concatenate(biases) if biases else None,
            )

        def layer(prefix: str) -> _Layer:
            attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
            return _Layer(
                norm_in=tensor(f"{prefix}.input_layernorm.weight"),
                queries_keys_values=linear(*(f"{attention}.{part}_proj" for part in "qkv")),
                out=linear(f"{attention}.o_proj"),
                norm_mlp=tensor(f"{prefix}.post_attention_layernorm.weight"),
                gate_up=linear(f"{mlp}.gate_proj", f"{mlp}.up_proj"),
                down=linear(f"{mlp}.down_proj"),
            )

        self._embedding = tensor("model.embed_tokens.weight")
        self._layers = [layer(f"model.layers.{index}") for index in range(shape.layers)]
        self._norm = tensor("model.norm.weight")
        self._head = weights.get("lm_head.weight", self._embedding)
        self._check_sizes()

    @property
    def vocabulary(self) -> int:
        """Tokens that the model knows."""
        return len(self._embedding)

    def start(self, capacity: int) -> Reading:
        """Begin a text of at most `capacity` tokens."""
        return Reading(self.shape, capacity)

    def read(self, tokens: Sequence[int], reading: Reading) -> Array:
        """Read further tokens of a text; (T, H), the state after each of them."""
        start, end = reading.length, reading.length + len(tokens)
        x = self._embedding[np.asarray(tokens)]
        # Token i of the new ones may look at everything up to itself.
        mask = np.triu(np.full((end - start, end), -np.inf, np.float32), k=start + 1)
        for index, layer in enumerate(self._layers):
            x = x + self._attend(layer, index, self._normed(x, layer.norm_in), reading, mask)
            gate, up = np.split(layer.gate_up(self._normed(x, layer.norm_mlp)), 2, axis=-1)
            # SwiGLU. The sigmoid by tanh: exp would overflow, and warn, for very negative gates.
            x = x + layer.down(gate * (0.5 + 0.5 * np.tanh(0.5 * gate)) * up)
        reading.length = end
        return self._normed(x, self._norm)

    def logits(self, states_T_H: Array) -> Array:
        """(..., V) for states (..., H)."""
        logits: Array = states_T_H @ self._head.T
        return logits

    def _attend(self, layer: _Layer, index: int, x: Array, reading: Reading, mask: Array) -> Array:
        heads, key_heads, dim = self.shape.heads, self.shape.key_heads, self.shape.head_dim
        start, count = reading.length, len(x)
        end, group = start + count, heads // key_heads
        mixed = layer.queries_keys_values(x).reshape(count, heads + 2 * key_heads, dim).swapaxes(0, 1)
        turned = _rotate(mixed[: heads + key_heads], reading.cos[start:end], reading.sin[start:end])
        reading.keys[index, :, start:end] = turned[heads:]
        reading.values[index, :, start:end] = mixed[heads + key_heads :]
        keys, values = reading.keys[index, :, :end], reading.values[index, :, :end]  # (K, S, D)
        queries = turned[:heads].reshape(key_heads, group * count, dim)
        scores: Array = (queries @ keys.swapaxes(1, 2)) * np.float32(dim**-0.5)
        if count > 1:
            scores = (scores.reshape(heads, count, end) + mask).reshape(key_heads, group * count, end)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        seen: Array = (scores @ values).reshape(heads, count, dim).swapaxes(0, 1)
        return layer.out(seen.reshape(count, heads * dim))

    def _normed(self, x: Array, weight: Array) -> Array:
        mean_square = np.einsum("th,th->t", x, x)[:, None] / np.float32(self.shape.hidden)
        normed: Array = x / np.sqrt(mean_square + np.float32(self.shape.norm_eps)) * weight
        return normed

    def _check_sizes(self) -> None:
        shape, width = self.shape, self.shape.heads * self.shape.head_dim
        expected = (width + 2 * shape.key_heads * shape.head_dim, shape.hidden)
        for layer in self._layers:
            found = layer.queries_keys_values.weight.shape
            if found != expected or layer.out.weight.shape != (shape.hidden, width):
                raise CheckpointError(
                    f"The checkpoint's attention weights have the size {found}, but its config.json asks for "
                    f"{expected}; the two files do not belong together."
                )


def _rotate(x: Array, cos: Array, sin: Array) -> Array:
    """Rotary positions on (heads, T, D), with (T, D / 2) angles: the first half pairs with the second."""
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return np.concatenate((first * cos - second * sin, second * cos + first * sin), axis=-1)
