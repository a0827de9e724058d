"""The model that a run starts from: finds it, opens its tokenizer and codec, and completes the settings from it.

A model on the Hugging Face hub is fetched. Nothing here loads weights into memory: the engines do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from podium.conductor.checkpoint import (
    Checkpoint,
    checkpoint_folder,
    fetch_from_hub,
    is_hub_name,
    is_llama,
    read_podium_json,
)
from podium.conductor.codec import ChatCodec, PlainTextCodec, PromptCodec
from podium.conductor.prompt import PromptSettings
from podium.errors import CheckpointError
from podium.plugins import shipped_checkpoint
from podium.train.settings import TrainSettings

TINY_PARAMETERS = 50_000_000
"""The most parameters of a policy that engine = "auto" trains with shared_prefix, on one core."""
_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.gguf", "*.h5", "*.msgpack", "*.onnx*")
"""Files of weights, which a dry run does not fetch."""


def resolve(settings: TrainSettings) -> TrainSettings:
    """The settings of a run, with what their file leaves to the start: keys of the prompt, and the engine "auto".

    The podium.json of a start on the hub is fetched.

    Raises:
        CheckpointError: the start cannot be fetched or read.
    """
    prompt = prompt_of_start(settings.prompt, settings.start, settings.revision)
    engine = settings.engine
    if engine == "auto":
        engine = "shared_prefix" if _suits_shared_prefix(settings) else "trl"
    return settings.model_copy(update={"prompt": prompt, "engine": engine})


def _suits_shared_prefix(settings: TrainSettings) -> bool:
    """Whether the start is a small local checkpoint in the shape of Llama or Qwen2 that reads plain text, and no
    setting needs TRL."""
    if settings.trl or settings.lora or settings.quantization:
        return False
    if not (shipped_checkpoint(settings.start) or Path(settings.start).is_dir()):
        return False
    checkpoint = Checkpoint.read(settings.start)
    parameters = checkpoint.parameters()
    return (
        not checkpoint.uses_chat_template
        and is_llama(checkpoint.config)
        and parameters is not None
        and parameters <= TINY_PARAMETERS
    )


def find_start(settings: TrainSettings, *, weights: bool = True) -> Checkpoint:
    """The checkpoint that the run starts from. A model on the Hugging Face hub is fetched, or taken from the hub's
    cache.

    Args:
        weights: whether the weights of a model on the hub are fetched too.

    Raises:
        CheckpointError: there is no such checkpoint, it cannot be fetched, or it lacks a chat template that it needs.
    """
    name = settings.start
    if not _is_on_hub(name):
        checkpoint = Checkpoint.read(name)
    elif weights:
        checkpoint = Checkpoint.read(fetch_from_hub(name, settings.revision))
    else:
        from transformers import AutoConfig  # noqa: PLC0415 - loads torch

        path = fetch_from_hub(name, settings.revision, ignore_patterns=_WEIGHTS)
        checkpoint = Checkpoint(
            path, AutoConfig.from_pretrained(path, trust_remote_code=False).to_dict(), settings.prompt
        )
    if settings.prompt.style != "brief" and not checkpoint.uses_chat_template:
        raise CheckpointError(
            f"{name} has no chat template: it is a base model. Start from its instruct variant, or put a "
            "chat_template.jinja into its folder and teach it the form first with --stage sft."
        )
    return checkpoint


def prompt_of_start(prompt: PromptSettings, start: str, revision: str | None = None) -> PromptSettings:
    """The prompt settings, completed from the podium.json of the start, which is fetched if the start is on the hub.

    Raises:
        CheckpointError: it cannot be fetched.
    """
    if _is_on_hub(start):
        stated = fetch_from_hub(start, revision, allow_patterns=["podium.json"]) / "podium.json"
    else:
        stated = checkpoint_folder(start) / "podium.json"
    if not stated.is_file():
        return prompt
    own = {key: getattr(prompt, key) for key in prompt.model_fields_set}
    return read_podium_json(stated).prompt.model_copy(update=own)


def _is_on_hub(name: str) -> bool:
    return is_hub_name(name) and not shipped_checkpoint(name) and not Path(name).is_dir()


def open_tokenizer(checkpoint: Checkpoint) -> Any:
    """The tokenizer of a checkpoint.

    Raises:
        CheckpointError: transformers cannot load it.
    """
    from transformers import AutoTokenizer  # noqa: PLC0415 - loads torch

    try:
        return AutoTokenizer.from_pretrained(checkpoint.path, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise CheckpointError(
            f"transformers cannot load the tokenizer of {checkpoint.path}: {reason}"
        ) from None


def open_codec(settings: TrainSettings, checkpoint: Checkpoint, tokenizer: Any) -> PromptCodec:
    """The codec that encodes the run's prompts. Podium uses the same codec when it calls the trained policy."""
    if settings.prompt.style == "brief":
        return PlainTextCodec.of(checkpoint)
    return ChatCodec(tokenizer, settings.chat_template_kwargs)
