"""A policy of a few hundred weights, in ordinary Hugging Face form, that writes the plans that a test gives it.

Each plan is one token of its vocabulary. After any prompt all plans are equally likely, so at temperature 0 it writes
the first; after a plan it ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

BEGIN, END, PAD = "<s>", "</s>", "<pad>"
FIRST = 'model_id = [0]\nsubtasks = ["Answer the question."]\naccess_list = [[]]\n'
"""The first worker gets the question."""
BRIEF: Mapping[str, Any] = {"prompt": {"style": "brief"}}
"""A podium.json whose prompt has no chat template, and costs few tokens."""
_WIDTH = 8
_LOGIT = 8.0


def write_policy(
    folder: Path, *plans: str, podium: Mapping[str, Any] | None = BRIEF, positions: int = 8192
) -> Path:
    """Write the checkpoint; gives its folder.

    Args:
        plans: texts that it can write; none: `FIRST`.
        podium: what podium.json says. Without it, there is no such file.
        positions: the most tokens of prompt and completion.
    """
    folder.mkdir(parents=True)
    tokenizer = _tokenizer(plans or (FIRST,))
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"bos_token": BEGIN, "eos_token": END, "pad_token": PAD}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text(json.dumps(_config(tokenizer, positions)))
    save_file(_weights(tokenizer, plans or (FIRST,)), folder / "model.safetensors", metadata={"format": "pt"})
    if podium is not None:
        (folder / "podium.json").write_text(json.dumps(podium))
    return folder


def _tokenizer(plans: tuple[str, ...]) -> Tokenizer:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [PAD, BEGIN, END, *letters]
    made = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([PAD, BEGIN, END])
    made.add_tokens([AddedToken(plan, normalized=False) for plan in plans])
    return made


def _config(tokenizer: Tokenizer, positions: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": _WIDTH,
        "intermediate_size": _WIDTH,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": _WIDTH,
        "hidden_act": "silu",
        "max_position_embeddings": positions,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "bos_token_id": tokenizer.token_to_id(BEGIN),
        "eos_token_id": tokenizer.token_to_id(END),
        "pad_token_id": tokenizer.token_to_id(PAD),
        "dtype": "float32",
    }


def _weights(tokenizer: Tokenizer, plans: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The layer adds nothing, so the next token depends on the last one alone."""
    numbers = [tokenizer.token_to_id(plan) for plan in plans]
    embedding = np.zeros((tokenizer.get_vocab_size(), _WIDTH), np.float32)
    embedding[:, 0] = 1.0
    embedding[numbers] = np.eye(_WIDTH, dtype=np.float32)[1]
    head = np.zeros_like(embedding)
    head[numbers, 0] = _LOGIT
    head[tokenizer.token_to_id(END), 1] = _LOGIT
    square, ones = np.zeros((_WIDTH, _WIDTH), np.float32), np.ones(_WIDTH, np.float32)
    layer = "model.layers.0."
    return {
        "model.embed_tokens.weight": embedding,
        "lm_head.weight": head,
        "model.norm.weight": ones,
        f"{layer}input_layernorm.weight": ones.copy(),
        f"{layer}post_attention_layernorm.weight": ones.copy(),
        **{f"{layer}self_attn.{name}_proj.weight": square.copy() for name in "qkvo"},
        **{f"{layer}mlp.{name}_proj.weight": square.copy() for name in ("gate", "up", "down")},
    }
