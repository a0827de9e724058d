"""Finds and checks the model that a run starts from, and writes the folder of the trained policy with its podium.json.

transformers and peft load and save the weights; this file writes podium.json.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from podium.conductor.chat_codec import ChatCodec
from podium.conductor.checkpoint import Checkpoint, Conducts, PlanSettings, PodiumFile
from podium.conductor.codec import Codec
from podium.config import read_file
from podium.errors import CheckpointError, ConfigError
from podium.rollout.run_folder import replace_file
from podium.shipped import shipped_checkpoint
from podium.train.lm.rollouts import PromptCodec
from podium.train.lm.settings import LMExperiment
from podium.workers.pool import Pool

_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.gguf", "*.h5", "*.msgpack", "*.onnx*")
"""Files that a dry run does not fetch."""


def find_start(experiment: LMExperiment, *, weights: bool = True) -> Checkpoint:
    """The checkpoint that the run starts from; one on the Hugging Face hub is fetched, or taken from its cache.

    Args:
        weights: whether a model on the hub is fetched whole; else all but its weights.

    Raises:
        CheckpointError: there is none, it cannot be fetched, or it has no chat template where it needs one.
    """
    name = experiment.start
    if (
        shipped_checkpoint(name)
        or Path(name).is_dir()
        or name.count("/") != 1
        or name.startswith((".", "/", "~"))
    ):
        checkpoint = Checkpoint.read(name)
    elif weights:
        checkpoint = Checkpoint.read(_fetch(name, experiment.revision))
    else:
        path = _fetch(name, experiment.revision, ignore_patterns=_WEIGHTS)
        checkpoint = Checkpoint(
            path, AutoConfig.from_pretrained(path, trust_remote_code=False).to_dict(), experiment.prompt
        )
    if experiment.prompt.style == "full" and not (checkpoint.chats or experiment.chat_template):
        raise CheckpointError(
            f"{name} has no chat template: it is a base model. Start from its instruct variant, or give a template "
            "with chat_template = FILE and teach it the form first with --stage sft."
        )
    return checkpoint


def _fetch(name: str, revision: str | None, **which: Any) -> Path:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - transformers brings it
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415

    try:
        return Path(snapshot_download(name, revision=revision, **which))
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise CheckpointError(
            f"{name} is no folder here, and cannot be fetched from the hub: {reason} Check the name, or fetch it "
            f"first with: hf download {name}"
        ) from None


def open_tokenizer(experiment: LMExperiment, checkpoint: Checkpoint) -> Any:
    """The tokenizer of a checkpoint, with the run's chat template where it names one.

    Raises:
        CheckpointError: transformers cannot load it.
        ConfigError: the chat template cannot be read.
    """
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(checkpoint.path, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise CheckpointError(
            f"transformers cannot load the tokenizer of {checkpoint.path}: {reason}"
        ) from None
    if experiment.chat_template is not None:
        try:
            tokenizer.chat_template = read_file(Path(experiment.chat_template)).decode()
        except OSError as error:
            raise ConfigError(
                f"chat_template: {experiment.chat_template} cannot be read: {error.strerror}."
            ) from None
        except UnicodeDecodeError:
            raise ConfigError(
                f"chat_template: {experiment.chat_template} is not UTF-8 text; save it as UTF-8."
            ) from None
    return tokenizer


def open_codec(experiment: LMExperiment, checkpoint: Checkpoint, tokenizer: Any) -> PromptCodec:
    """The codec that encodes the run's prompts. Podium uses the same codec when it calls the trained policy."""
    if experiment.prompt.style == "brief":
        return Codec.of(checkpoint)
    return ChatCodec(tokenizer, experiment.chat_template_kwargs)


def podium_file(experiment: LMExperiment, pool: Pool) -> PodiumFile:
    """The podium.json of the trained policy: its prompt, its plans' limits, and what it was trained to conduct."""
    return PodiumFile(
        prompt=experiment.prompt,
        conducts=Conducts.trained(
            experiment.tasks,
            pool,
            anonymous=experiment.prompt.pool == "anonymous",
            random_pools=experiment.pool_draw.random,
        ),
        plan=PlanSettings(
            max_plan_tokens=experiment.grpo.max_tokens,
            rounds=experiment.rounds,
            max_steps=experiment.max_steps,
            chat_template_kwargs=experiment.chat_template_kwargs,
        ),
    )


_TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.model",
    "vocab.json", "merges.txt", "chat_template.jinja", "generation_config.json",
)  # fmt: skip


def write_policy(run: Path, experiment: LMExperiment, base: Checkpoint, pool: Pool) -> None:
    """Write `policy` in the run's folder, from the model or the adapter that the trainer saved in `trained`.

    An adapter is merged into `base`. A kill never leaves a part of the policy there.

    Raises:
        CheckpointError: the merged model would not write what the trained one does.
    """
    folder, saved = run / "policy", run / "trained"
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    if (saved / "adapter_config.json").is_file():
        _merged(base, saved).to(_stored_dtype(base)).save_pretrained(part)
    else:
        shutil.copytree(saved, part)
        for leftover in part.glob("training_args.bin"):
            leftover.unlink()
    for name in _TOKENIZER_FILES:  # As they were: what transformers writes may differ in added tokens.
        (part / name).unlink(missing_ok=True)
        if (base.path / name).is_file():
            shutil.copyfile(base.path / name, part / name)
    if experiment.chat_template is not None:
        shutil.copyfile(experiment.chat_template, part / "chat_template.jinja")
    about = podium_file(experiment, pool)
    replace_file(part / "podium.json", about.model_dump_json(indent=2, exclude_none=True).encode() + b"\n")
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    part.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _merged(base: Checkpoint, saved: Path) -> Any:
    """The start with the adapter merged into its weights, in float32."""
    from peft import PeftModel  # noqa: PLC0415 - for adapters alone

    start: Any = AutoModelForCausalLM.from_pretrained(base.path, dtype="auto", trust_remote_code=False)
    tied = start.config.tie_word_embeddings
    trained = PeftModel.from_pretrained(start.to(torch.float32), saved).eval()
    ids_BL = torch.linspace(0, start.get_input_embeddings().weight.shape[0] - 1, 32).long()[None]
    with torch.no_grad():
        expected_BLV = trained(ids_BL).logits
    _untie(trained)
    merged: Any = trained.merge_and_unload()
    embedding, head = merged.get_input_embeddings(), merged.get_output_embeddings()
    merged.config.tie_word_embeddings = tied and torch.equal(embedding.weight, head.weight)
    merged.tie_weights()
    with torch.no_grad():
        difference = float((merged(ids_BL).logits - expected_BLV).abs().max())
    if not difference <= 1e-3 * max(1.0, float(expected_BLV.abs().max())):
        raise CheckpointError(
            f"The adapter in {saved} cannot be merged into {base.path}: the merged model's logits differ by "
            f"{difference:.3g} from those that were trained. Train with another lora.target_modules or "
            "lora.modules_to_save."
        )
    return merged


def _untie(model: torch.nn.Module) -> None:
    """Give each module its own copy of the weights that it shares with another.

    An adapter of the embedding would else be merged into the output head too, which shares its weights.
    """
    seen: set[int] = set()
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False, remove_duplicate=False):
            if id(weight) in seen:
                setattr(module, name, torch.nn.Parameter(weight.detach().clone(), weight.requires_grad))
            seen.add(id(weight))


def _stored_dtype(checkpoint: Checkpoint) -> torch.dtype:
    """Of the start's weights: the merged policy has the same."""
    name = checkpoint.config.get("dtype") or checkpoint.config.get("torch_dtype") or "float32"
    return getattr(torch, str(name))  # type: ignore[no-any-return]
