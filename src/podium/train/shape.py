"""The shape of a language model, read from and written to a Hugging Face `config.json`. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium.conductor.checkpoint import is_llama
from podium.errors import CheckpointError

_ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The sizes of a dense decoder with grouped queries and a gated MLP: Qwen, Llama, Gemma, Mistral.

    The engine shared_prefix trains the shapes of Llama and Qwen2: pre-norm, rotary positions, SwiGLU (`read`).
    """

    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    inner: int
    """Width of the SwiGLU layer (`intermediate_size`)."""
    positions: int = 1024
    """The longest sequence, in tokens."""
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-5
    tied: bool = True
    """Whether the output matrix is the embedding."""
    qkv_bias: bool = False
    """Whether queries, keys and values have biases, as in Qwen2 but not in Llama."""

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} heads cannot share {self.kv_heads} key/value heads evenly")

    @property
    def queries_per_kv(self) -> int:
        """Query heads that share one key/value head."""
        return self.heads // self.kv_heads

    @property
    def linears(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of the seven matrices of a layer."""
        queries, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        attention = (
            (self.hidden, queries),
            (self.hidden, keys),
            (self.hidden, keys),
            (queries, self.hidden),
        )
        return (*attention, (self.hidden, self.inner), (self.hidden, self.inner), (self.inner, self.hidden))

    @property
    def matmul_parameters(self) -> int:
        """How many parameters each token is multiplied with, in the layers and the output matrix."""
        return self.layers * sum(a * b for a, b in self.linears) + self.vocab * self.hidden

    @property
    def parameters(self) -> int:
        """The number of parameters. Norms and biases are left out, since they are less than a thousandth."""
        return self.matmul_parameters + (0 if self.tied else self.vocab * self.hidden)

    @property
    def kv_values(self) -> int:
        """How many numbers the KV cache holds for each token."""
        return 2 * self.layers * self.kv_heads * self.head_size

    def lora_parameters(self, rank: int) -> int:
        """Parameters of a LoRA of this rank on all linear layers."""
        return self.layers * rank * sum(a + b for a, b in self.linears)

    def config(self, *, bos: int, eos: int, pad: int, dtype: str) -> dict[str, Any]:
        """The `config.json` of this shape. `dtype` is spelled as in Hugging Face."""
        kind = "qwen2" if self.qkv_bias else "llama"
        return {
            "architectures": [_ARCHITECTURES[kind]],
            "model_type": kind,
            "vocab_size": self.vocab,
            "hidden_size": self.hidden,
            "intermediate_size": self.inner,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_size,
            "hidden_act": "silu",
            "max_position_embeddings": self.positions,
            "rms_norm_eps": self.norm_eps,
            "rope_theta": self.rope_theta,
            "tie_word_embeddings": self.tied,
            "attention_bias": self.qkv_bias,
            "bos_token_id": bos,
            "eos_token_id": eos,
            "pad_token_id": pad,
            "initializer_range": 0.02,
            "use_cache": True,
            "dtype": dtype,
        }

    @classmethod
    def read(cls, config: Mapping[str, Any], source: str) -> ModelShape:
        """The shape that a `config.json` describes.

        Raises:
            CheckpointError: the file describes another architecture, or lacks a size.
        """
        kind = config.get("model_type")
        if kind not in _ARCHITECTURES:
            raise CheckpointError(
                f"{source} is a {kind!r} model; this trainer supports {' and '.join(sorted(_ARCHITECTURES))}."
            )
        rope = dict(config.get("rope_scaling") or {}) | dict(config.get("rope_parameters") or {})
        rope_type = rope.get("rope_type", rope.get("type", "default"))
        if rope_type != "default" or not is_llama(config):
            raise CheckpointError(
                f"{source} uses scaled rotary positions, sliding windows or an activation other than silu, which this "
                "trainer does not support."
            )
        try:
            return cls(
                **_sizes(config),
                positions=int(config.get("max_position_embeddings", 2048)),
                rope_theta=float(rope.get("rope_theta", config.get("rope_theta", 10_000.0))),
                norm_eps=float(config.get("rms_norm_eps", 1e-6)),
                qkv_bias=kind == "qwen2" or bool(config.get("attention_bias", False)),
            )
        except KeyError as missing:
            raise CheckpointError(f"{source} lacks the key {missing}.") from None

    @classmethod
    def of_dense_decoder(cls, config: Mapping[str, Any]) -> ModelShape | None:
        """The sizes of any dense decoder. None for another architecture, such as a mixture of experts."""
        if any("expert" in key for key in config):
            return None
        try:
            return cls(**_sizes(config))
        except (KeyError, TypeError, ValueError):
            return None


def _sizes(config: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes in a `config.json`, by the names of `ModelShape`. Raises KeyError if a size is missing."""
    heads = int(config["num_attention_heads"])
    return {
        "vocab": int(config["vocab_size"]),
        "hidden": int(config["hidden_size"]),
        "layers": int(config["num_hidden_layers"]),
        "heads": heads,
        "kv_heads": int(config.get("num_key_value_heads") or heads),
        "head_size": int(config.get("head_dim") or int(config["hidden_size"]) // heads),
        "inner": int(config["intermediate_size"]),
        "tied": bool(config.get("tie_word_embeddings", False)),
    }
