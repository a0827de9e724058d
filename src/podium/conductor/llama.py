"""A Llama- or Qwen2-shaped model in NumPy: enough to run a small policy without torch.

RMSNorm, rotary positions, grouped-query attention, SwiGLU, biases where the checkpoint has them, tied or
untied embeddings; float32, texts of any lengths in one batch, a cache of keys and values for each. Tested equal to
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
    """(inputs, outputs), in this order in memory: for a few rows that is two to three times as fast as the other."""
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


class Reading:
    """One text being read: keys and values of every layer so far. Belongs to one caller.

    Setting `length` to less forgets the tokens behind it.
    """

    def __init__(self, shape: Shape, capacity: int) -> None:
        self.length = 0
        size = (shape.layers, shape.key_heads, capacity, shape.head_dim)
        self.keys: Array = np.empty(size, np.float32)
        self.values: Array = np.empty(size, np.float32)


class NewTokens(NamedTuple):
    """What a text goes on with."""

    reading: Reading
    tokens: Sequence[int]
    wanted: int = 1
    """So many of the last tokens whose states are returned, at least one."""


class Llama:
    """The weights, and what they compute. Threads may share it."""

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
                np.concatenate([tensor(f"{name}.weight").T for name in names], axis=1),
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
        self._rotary: tuple[Array, Array] = (np.empty((0, 0), np.float32), np.empty((0, 0), np.float32))
        self._head = np.ascontiguousarray(weights.get("lm_head.weight", self._embedding).T)
        self._check_sizes()

    @property
    def vocabulary(self) -> int:
        """Tokens that the model knows."""
        return len(self._embedding)

    def start(self, capacity: int) -> Reading:
        """Begin a text of at most `capacity` tokens."""
        return Reading(self.shape, capacity)

    def copy(self, reading: Reading, length: int, capacity: int) -> Reading:
        """A text of its own that begins with the first `length` tokens of another, which are not read again."""
        copied = Reading(self.shape, capacity)
        copied.keys[:, :, :length] = reading.keys[:, :, :length]
        copied.values[:, :, :length] = reading.values[:, :, :length]
        copied.length = length
        return copied

    def read(self, tokens: Sequence[int], reading: Reading) -> Array:
        """Read further tokens of a text; (T, H), the state after each of them."""
        return self.read_batch([NewTokens(reading, tokens, len(tokens))])

    def read_batch(self, texts: Sequence[NewTokens]) -> Array:
        """Read further tokens of several texts at once; (W, H), the states that they want, text after text.

        Texts go through the matrices together and attend apart, so none is padded.
        """
        x = self._embedding[np.concatenate([np.asarray(text.tokens) for text in texts])]
        for index, layer in enumerate(self._layers):
            # Nothing reads the last layer's states but the caller.
            asking = [text.wanted if index == len(self._layers) - 1 else len(text.tokens) for text in texts]
            mixed = layer.queries_keys_values(self._normed(x, layer.norm_in))
            x = _last(x, texts, asking) + layer.out(self._attend(mixed, index, texts, asking))
            gate, up = np.split(layer.gate_up(self._normed(x, layer.norm_mlp)), 2, axis=-1)
            x = x + layer.down(_swiglu(gate, up))
        for text in texts:
            text.reading.length += len(text.tokens)
        return self._normed(x, self._norm)

    def logits(self, states_T_H: Array) -> Array:
        """(..., V) for states (..., H)."""
        logits: Array = states_T_H @ self._head
        return logits

    def _attend(self, mixed: Array, index: int, texts: Sequence[NewTokens], asking: Sequence[int]) -> Array:
        """What the last `asking` tokens of each text see; keys and values of all new ones are kept."""
        heads, key_heads, dim = self.shape.heads, self.shape.key_heads, self.shape.head_dim
        mixed = mixed.reshape(len(mixed), heads + 2 * key_heads, dim)
        places = np.concatenate(
            [np.arange(text.reading.length, text.reading.length + len(text.tokens)) for text in texts]
        )
        cos, sin = self._angles(int(places.max()) + 1)
        turned = _rotate(mixed[:, : heads + key_heads], cos[places, None], sin[places, None])
        turned[:, :heads] *= np.float32(dim**-0.5)
        seen, last = [], 0
        for text, count in zip(texts, asking, strict=True):
            reading, first = text.reading, last
            start, end, last = reading.length, reading.length + len(text.tokens), first + len(text.tokens)
            reading.keys[index, :, start:end] = turned[first:last, heads:].swapaxes(0, 1)
            reading.values[index, :, start:end] = mixed[first:last, heads + key_heads :].swapaxes(0, 1)
            queries = turned[last - count : last, :heads].swapaxes(0, 1)
            grouped = queries.reshape(key_heads, heads // key_heads * count, dim)
            scores = grouped @ reading.keys[index, :, :end].swapaxes(1, 2)
            if count > 1:
                # Token i of the new ones may look at everything up to itself.
                by_head = scores.reshape(heads, count, end)
                by_head += np.triu(np.full((count, end), -np.inf, np.float32), k=end - count + 1)
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=-1, keepdims=True)
            found = (scores @ reading.values[index, :, :end]).reshape(heads, count, dim)
            seen.append(found.swapaxes(0, 1).reshape(count, heads * dim))
        return np.concatenate(seen)

    def _angles(self, length: int) -> tuple[Array, Array]:
        """Cosines and sines of the rotary positions, (at least `length`, D / 2)."""
        if len(self._rotary[0]) < length:
            powers = np.arange(0, self.shape.head_dim, 2, dtype=np.float32) / self.shape.head_dim
            frequencies = (1.0 / self.shape.rope_theta**powers).astype(np.float32)
            angles = np.outer(np.arange(2 * length, dtype=np.float32), frequencies)
            # One assignment: a thread that reads meanwhile has the shorter tables, which are long enough for it.
            self._rotary = np.cos(angles), np.sin(angles)
        return self._rotary

    def _normed(self, x: Array, weight: Array) -> Array:
        mean_square = np.einsum("th,th->t", x, x)[:, None] / np.float32(self.shape.hidden)
        normed: Array = x / np.sqrt(mean_square + np.float32(self.shape.norm_eps)) * weight
        return normed

    def _check_sizes(self) -> None:
        shape, width = self.shape, self.shape.heads * self.shape.head_dim
        expected = (shape.hidden, width + 2 * shape.key_heads * shape.head_dim)
        for layer in self._layers:
            found = layer.queries_keys_values.weight.shape
            if found != expected or layer.out.weight.shape != (width, shape.hidden):
                raise CheckpointError(
                    f"The checkpoint's attention weights have the size {found}, but its config.json asks for "
                    f"{expected}; the two files do not belong together."
                )


def _rotate(x: Array, cos: Array, sin: Array) -> Array:
    """Rotary positions on (T, heads, D), with (T, 1, D / 2) angles: the first half pairs with the second."""
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return np.concatenate((first * cos - second * sin, second * cos + first * sin), axis=-1)


def _last(x: Array, texts: Sequence[NewTokens], counts: Sequence[int]) -> Array:
    """The rows of the last so many new tokens of each text."""
    ends = np.cumsum([len(text.tokens) for text in texts]).tolist()
    return np.concatenate([x[end - count : end] for end, count in zip(ends, counts, strict=True)])


def _swiglu(gate: Array, up: Array) -> Array:
    """The sigmoid by tanh: exp would overflow, and warn, for very negative gates."""
    activated: Array = np.tanh(np.float32(0.5) * gate)
    activated += 1
    activated *= gate
    activated *= up
    activated *= np.float32(0.5)
    return activated
