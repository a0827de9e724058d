"""Makes a random language model of two layers with a chat template, for a training run that takes a minute.

    python runs/random_model.py FOLDER [qwen2|qwen3|llama|gemma2]

The weights are random, so the model learns little. The tokenizer is trained on the text of Podium's prompts.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    LlamaConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

from podium.conductor.examples import EXAMPLES
from podium.conductor.prompt import PromptSettings, build_prompt
from podium.planners.planner import PlanRequest
from podium.team.team_file import open_pool
from podium.types import Question

ARCHITECTURES = {"qwen2": Qwen2Config, "qwen3": Qwen3Config, "llama": LlamaConfig, "gemma2": Gemma2Config}
_END, _PAD, _BEGIN = "<|im_end|>", "<|endoftext|>", "<|im_start|>"
_TEMPLATE = (
    "{% for message in messages %}"
    + _BEGIN
    + "{{ message['role'] }}\n{{ message['content'] }}"
    + _END
    + "\n{% endfor %}{% if add_generation_prompt %}"
    + _BEGIN
    + "assistant\n{% endif %}"
)
_REFUSES_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
)
"""Put before the template, as in Gemma's: a system message is an error."""


def _texts() -> list[str]:
    pool = open_pool("open-models", ready=False).profiles
    texts = [example.question + example.completion for example in EXAMPLES]
    for example in EXAMPLES:
        messages = build_prompt(PlanRequest(Question(text=example.question), pool), PromptSettings())
        texts += [message.content for message in messages]
    return texts


def make_model(folder: Path, architecture: str = "qwen2") -> None:
    """Write the model, its tokenizer and its chat template; the same ones each time."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=[_PAD, _BEGIN, _END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(), trainer)
    chat = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=_END, pad_token=_PAD)
    chat.chat_template = (_REFUSES_SYSTEM if architecture == "gemma2" else "") + _TEMPLATE
    sizes = {"head_dim": 16} if architecture in ("qwen3", "gemma2") else {}
    config = ARCHITECTURES[architecture](
        vocab_size=len(chat),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=chat.eos_token_id,
        pad_token_id=chat.pad_token_id,
        **sizes,
    )
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    chat.save_pretrained(folder)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3 or sys.argv[2:] not in [[], *([name] for name in ARCHITECTURES)]:
        sys.exit(f"usage: python runs/random_model.py FOLDER [{'|'.join(ARCHITECTURES)}]")
    make_model(Path(sys.argv[1]), *sys.argv[2:])
