"""Random tiny models, their tokenizer, and checkpoints of them in ordinary Hugging Face form."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

VOCABULARY = 320

CHAT = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}<|assistant|>"

CHAT_WITHOUT_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + CHAT
)


def make_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(
        ["model_id = [0, 1]", "subtasks", "access_list = [[], ['all']]"] * 4, trainer
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )


def make_model(kind: str, **changes: Any) -> PreTrainedModel:
    """A random model; larger initial weights than usual, so that its logits differ and its text varies."""
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 48,
        "intermediate_size": 80,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "initializer_range": 0.2,
        "max_position_embeddings": 256,
        "bos_token_id": 1,
        "eos_token_id": 2,
    } | changes
    if kind == "llama":
        return LlamaForCausalLM(LlamaConfig(**sizes))
    if kind == "qwen2":
        model = Qwen2ForCausalLM(Qwen2Config(**sizes))
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):  # zero at first, and zeros would hide their loss
                torch.nn.init.normal_(parameter, std=0.5)
        return model
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCABULARY,
            n_embd=32,
            n_layer=2,
            n_head=2,
            n_positions=256,
            bos_token_id=1,
            eos_token_id=2,
            initializer_range=0.2,
        )
    )


MakeCheckpoint = Callable[..., Path]


@pytest.fixture
def make_checkpoint(tmp_path: Path) -> MakeCheckpoint:
    """Saves `make_model` with its tokenizer; gives the folder."""

    def make(
        kind: str = "llama",
        *,
        dtype: torch.dtype = torch.float32,
        podium: dict[str, Any] | None = None,
        chat: str | None = None,
        name: str = "tiny",
        **changes: Any,
    ) -> Path:
        folder = tmp_path / name
        make_model(kind, **changes).to(dtype).save_pretrained(folder)
        tokenizer = make_tokenizer()
        tokenizer.chat_template = chat
        tokenizer.save_pretrained(folder)
        if podium is not None:
            (folder / "podium.json").write_text(json.dumps(podium))
        return folder

    return make
