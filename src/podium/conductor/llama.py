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
Turns = NDArray[np.complex64]


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
    """(inputs, outputs), in this order in memory: for a few rows that is up to four times as fast as the other."""
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
        heads = (shape.layers, shape.key_heads)
        # A column a token: so the product of a few queries with them takes half the time. BLAS may look at columns
        # behind the last and warn of what it finds there, hence zeros.
        self.keys: Array = np.zeros((*heads, shape.head_dim, capacity), np.float32)
        self.values: Array = np.empty((*heads, capacity, shape.head_dim), np.float32)


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

        def rows(name: str, size: tuple[int, int] | None = None) -> Array:
            """(outputs, inputs + 1) of a linear layer: the last column is its bias."""
            weight = tensor(f"{name}.weight")
            if size not in (None, weight.shape):
                raise CheckpointError(
                    f"The checkpoint's {name} has the size {weight.shape}, but its config.json asks for {size}; "
                    "the two files do not belong together."
                )
            return np.column_stack([weight, weights.get(f"{name}.bias", np.zeros(len(weight), np.float32))])

        def layer(prefix: str) -> _Layer:
            attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
            width, key_width = shape.heads * shape.head_dim, shape.key_heads * shape.head_dim
            queries = _paired(rows(f"{attention}.q_proj", (width, shape.hidden)), shape.head_dim)
            keys = _paired(rows(f"{attention}.k_proj", (key_width, shape.hidden)), shape.head_dim)
            values = rows(f"{attention}.v_proj", (key_width, shape.hidden))
            return _Layer(
                norm_in=tensor(f"{prefix}.input_layernorm.weight"),
                queries_keys_values=_linear(queries * np.float32(shape.head_dim**-0.5), keys, values),
                out=_linear(rows(f"{attention}.o_proj", (shape.hidden, width))),
                norm_mlp=tensor(f"{prefix}.post_attention_layernorm.weight"),
                gate_up=_linear(rows(f"{mlp}.gate_proj") * np.float32(0.5), rows(f"{mlp}.up_proj")),
                down=_linear(rows(f"{mlp}.down_proj")),
            )

        self._embedding = tensor("model.embed_tokens.weight")
        self._layers = [layer(f"model.layers.{index}") for index in range(shape.layers)]
        self._norm = tensor("model.norm.weight")
        self._rotary: Turns = np.empty((0, 0), np.complex64)
        self._future: Array = np.empty((0, 0), np.float32)
        self._head = np.ascontiguousarray(weights.get("lm_head.weight", self._embedding).T)

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
        copied.keys[..., :length] = reading.keys[..., :length]
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
        turns = self._turns(texts)
        for index, layer in enumerate(self._layers):
            mixed = layer.queries_keys_values(self._normed(x, layer.norm_in))
            seen = self._attend(mixed, turns, index, texts)
            if index == len(self._layers) - 1:
                # Nothing reads the last layer's states but the caller.
                x = _wanted(x, texts)
            x += layer.out(seen)
            x += layer.down(_swiglu(layer.gate_up(self._normed(x, layer.norm_mlp))))
        for text in texts:
            text.reading.length += len(text.tokens)
        return self._normed(x, self._norm)

    def logits(self, states_T_H: Array) -> Array:
        """(..., V) for states (..., H)."""
        logits: Array = states_T_H @ self._head
        return logits

    def _attend(self, mixed: Array, turns: Turns, index: int, texts: Sequence[NewTokens]) -> Array:
        """What the new tokens of each text see, in the last layer the wanted ones; keys and values of all are kept."""
        heads, key_heads, dim = self.shape.heads, self.shape.key_heads, self.shape.head_dim
        pairs = mixed[:, : (heads + key_heads) * dim].view(np.complex64)
        pairs *= turns
        by_head = mixed.reshape(len(mixed), heads + 2 * key_heads, dim).swapaxes(0, 1)
        queries, keys, values = np.split(by_head, [heads, heads + key_heads])
        seen, last = [], 0
        for text in texts:
            reading, first, last = text.reading, last, last + len(text.tokens)
            start, end = reading.length, reading.length + len(text.tokens)
            reading.keys[index, ..., start:end] = keys[:, first:last].swapaxes(1, 2)
            reading.values[index, :, start:end] = values[:, first:last]
            count = text.wanted if index == self.shape.layers - 1 else len(text.tokens)
            grouped = queries[:, last - count : last].reshape(key_heads, heads // key_heads * count, dim)
            scores = grouped @ reading.keys[index, ..., :end]
            if count > 1:
                scores.reshape(heads, count, end)[..., end - count :] += self._mask(count)
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            found = scores @ reading.values[index, :, :end]
            found /= scores.sum(axis=-1, keepdims=True)
            seen.append(found.reshape(heads, count, dim).swapaxes(0, 1).reshape(count, heads * dim))
        return np.concatenate(seen)

    def _mask(self, count: int) -> Array:
        """(count, count) that hides from each of the last tokens those that follow it."""
        future = self._future
        if len(future) < count:
            self._future = future = np.triu(np.full((count, count), -np.inf, np.float32), k=1)
        return future[:count, :count]

    def _turns(self, texts: Sequence[NewTokens]) -> Turns:
        """The rotary positions of all new tokens, (T, (N + K) D / 2): a rotation is a product of complex numbers."""
        rotary, ends = self._rotary, [text.reading.length + len(text.tokens) for text in texts]
        if len(rotary) < max(ends):
            powers = np.arange(0, self.shape.head_dim, 2, dtype=np.float32) / self.shape.head_dim
            frequencies = (1.0 / self.shape.rope_theta**powers).astype(np.float32)
            angles = np.outer(np.arange(2 * max(ends), dtype=np.float32), frequencies)
            rotary = (np.cos(angles) + 1j * np.sin(angles)).astype(np.complex64)
            # One assignment: another thread goes on with the shorter table, which is long enough for it.
            self._rotary = rotary = np.tile(rotary, self.shape.heads + self.shape.key_heads)
        return np.concatenate(
            [rotary[text.reading.length : end] for text, end in zip(texts, ends, strict=True)]
        )

    def _normed(self, x: Array, weight: Array) -> Array:
        mean_square = np.einsum("th,th->t", x, x)[:, None] / np.float32(self.shape.hidden)
        normed: Array = x / np.sqrt(mean_square + np.float32(self.shape.norm_eps))
        normed *= weight
        return normed


def _linear(*rows: Array) -> _Linear:
    """One linear layer that gives the outputs of several."""
    together = np.concatenate(rows)
    bias = together[:, -1].copy()
    return _Linear(np.ascontiguousarray(together[:, :-1].T), bias if bias.any() else None)


def _paired(rows: Array, dim: int) -> Array:
    """Each head's outputs in another order: those that rotate together lie side by side, as a complex number."""
    return rows.reshape(-1, 2, dim // 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def _wanted(x: Array, texts: Sequence[NewTokens]) -> Array:
    """The rows of the wanted tokens of each text."""
    ends = np.cumsum([len(text.tokens) for text in texts]).tolist()
    return np.concatenate([x[end - text.wanted : end] for end, text in zip(ends, texts, strict=True)])


def _swiglu(gate_up: Array) -> Array:
    """The sigmoid by tanh: exp would overflow, and warn, for very negative gates. The gates are halved already."""
    half, up = np.split(gate_up, 2, axis=-1)
    activated: Array = np.tanh(half)
    activated += 1
    activated *= half
    activated *= up
    return activated
