"""Finds the model that a run starts from, completes the settings from it, and writes the folder of the trained policy.

transformers and peft load and save the weights; this file writes podium.json.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podium.conductor.checkpoint import (
    Checkpoint,
    PlanLimits,
    PodiumFile,
    TrainingScope,
    checkpoint_folder,
    fetch_from_hub,
    is_hub_name,
    is_llama,
    read_podium_json,
)
from podium.conductor.codec import ChatCodec, PlainTextCodec, PromptCodec
from podium.conductor.prompt import PromptSettings
from podium.errors import CheckpointError, StoreError
from podium.files import atomic_folder, replace_file
from podium.rollout.run_folder import RunFolder
from podium.shipped import shipped_checkpoint
from podium.train.settings import TrainSettings
from podium.workers.base import has_costly_workers
from podium.workers.pool import Pool

TINY_PARAMETERS = 50_000_000
"""The most parameters of a policy that engine = "auto" trains with shared_prefix, on one core."""
_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.gguf", "*.h5", "*.msgpack", "*.onnx*")
"""Files of weights, which a dry run does not fetch."""

TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.model",
    "vocab.json", "merges.txt", "chat_template.jinja", "generation_config.json",
)  # fmt: skip
"""The files of a checkpoint that training copies unchanged, each if the checkpoint has it."""
POLICY_ROWS = "policy_rows"
"""The file in a run's folder that holds the number of rows that the run had when its policy was written."""


def name_without_folder(name: str) -> str:
    """The name of a file or folder without where it lies, which a published policy must not tell. Other names stay."""
    path = Path(name)
    return path.resolve().name if path.is_absolute() or name.startswith((".", "~")) or path.exists() else name


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


def podium_file(settings: TrainSettings, start: Checkpoint, pool: Pool) -> PodiumFile:
    """The podium.json of the trained policy: its prompt, the limits of its plans, and the pools that it may conduct."""
    offered = pool.subset(settings.pool_sampling.offered(pool))
    ratings = start.scope.ratings  # A policy that reads ratings may conduct real workers too.
    knows_numbers = settings.prompt.pool == "anonymous" and not settings.pool_sampling.random
    return PodiumFile(
        prompt=settings.prompt,
        conducts=TrainingScope(
            questions=f"the questions of {name_without_folder(settings.tasks)}",
            simulated=not ratings and not has_costly_workers(offered),
            ratings=ratings,
            workers=offered.names if knows_numbers else (),
        ),
        plan=PlanLimits(
            max_plan_tokens=settings.grpo.max_tokens,
            rounds=settings.rounds,
            max_steps=settings.max_steps,
            chat_template_kwargs=settings.chat_template_kwargs,
        ),
    )


@contextmanager
def saving(path: Path) -> Iterator[None]:
    """The block saves weights at `path`.

    Raises:
        StoreError: the disk is full or not writable.
    """
    from safetensors import SafetensorError  # noqa: PLC0415 - transformers brings it

    try:
        yield
    except OSError as error:
        raise StoreError.of_file(path, error) from None
    except SafetensorError as error:  # A full disk raises this error too.
        raise StoreError(
            f"{path} cannot be written ({error}); fix that, and run the same command again."
        ) from None


def write_policy(run: Path, settings: TrainSettings, base: Checkpoint, pool: Pool) -> None:
    """Write `policy` in the run's folder, from the model or the adapter that the trainer saved in `trained`.

    An adapter is merged into `base`. The weights have the dtype of `base`, unless rounding to it would lose what was
    learned. If the process is killed, no partial policy is left.

    Raises:
        CheckpointError: the merged model would not write the same text as the trained model.
        StoreError: the disk is full or not writable.
    """
    saved = run / "trained"
    with saving(run / "policy"), atomic_folder(run / "policy") as policy:
        from podium.train.trl.adapters import merge_adapter, round_weights  # noqa: PLC0415 - loads torch

        if (saved / "adapter_config.json").is_file():
            merge_adapter(base, saved, policy)
        else:
            # copytree's error has no number, so that it could not be told in a sentence.
            for file in sorted(path for path in saved.rglob("*") if path.is_file()):
                copy = policy / file.relative_to(saved)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
            (policy / "training_args.bin").unlink(missing_ok=True)
            round_weights(base, saved, policy)
        for name in TOKENIZER_FILES:  # Unchanged, since transformers may write other added tokens.
            (policy / name).unlink(missing_ok=True)
            if (base.path / name).is_file():
                shutil.copyfile(base.path / name, policy / name)
        about = podium_file(settings, base, pool)
        text = about.model_dump_json(indent=2, exclude_none=True)
        (policy / "podium.json").write_text(text + "\n", encoding="utf-8")
    rows = RunFolder(run).rows().read()
    replace_file(run / POLICY_ROWS, f"{len(rows)}\n".encode())
