"""Makes TRL's configurations from the table `[trl]`, and refuses arguments that a run could not obey."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from types import NoneType
from typing import Any, TypeVar, get_args

import torch
from pydantic import TypeAdapter, ValidationError
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainingArguments,
    get_scheduler,
)
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.sft_config import SFTConfig

from podium.config import closest_name, suggestion
from podium.errors import ConfigError
from podium.train.settings import TrainSettings

C = TypeVar("C", bound=TrainingArguments)

_KNOWN: Mapping[str, Field[Any]] = {
    field.name: field for trainer_config in (GRPOConfig, SFTConfig) for field in fields(trainer_config)
}
"""The arguments of both stages' trainers. Those that `[trl]` may set have the same type in both."""
_SCALARS = {bool, int, float, NoneType}
_LATE_CHOICES: Mapping[str, tuple[str, ...]] = {
    "importance_sampling_level": ("token", "sequence"),
    "multi_objective_aggregation": ("sum_then_normalize", "normalize_then_sum"),
    "vllm_importance_sampling_mode": ("token_truncate", "token_mask", "sequence_truncate", "sequence_mask"),
}
"""Values that GRPOTrainer names only when it computes a loss, which is after the first batch was paid for."""

_WHOLE_CHECKPOINTS = "Podium, which resumes from whole checkpoints"
_IN_EITHER_STAGE = {
    **dict.fromkeys((name for name in _KNOWN if "eval" in name), "grpo.eval_every"),
    **dict.fromkeys(
        ("do_predict", "load_best_model_at_end", "metric_for_best_model", "greater_is_better"),
        "grpo.eval_every",
    ),
    **dict.fromkeys(
        ("push_to_hub", *(name for name in _KNOWN if name.startswith("hub_"))), "podium train push"
    ),
    "resume_from_checkpoint": "--run",
    "save_only_model": _WHOLE_CHECKPOINTS,
    "ignore_data_skip": _WHOLE_CHECKPOINTS,
}
"""The arguments that neither stage leaves to `[trl]`, each with what decides it."""


def trainer_config(config: type[C], settings: TrainSettings, ours: Mapping[str, str], **values: Any) -> C:
    """The configuration of one stage's trainer: what `[trl]` sets, else our defaults, and `values`.

    Args:
        config: GRPOConfig or SFTConfig.
        ours: the arguments that settings of Podium decide, each with its setting.
        values: the values of these arguments.

    Raises:
        ConfigError: `[trl]` has an argument that no trainer knows, that Podium decides, or that cannot have this value.
    """
    for key in ("bf16", "fp16") if settings.dtype != "auto" else ():
        if key in settings.trl:
            raise ConfigError(f"trl.{key} is decided by dtype; leave it out of [trl].", ("trl", key))
    defaults: dict[str, Any] = {
        "bf16": settings.dtype == "bf16",
        "lr_scheduler_type": "cosine",
        "report_to": "none",
        "use_cpu": not torch.accelerator.is_available(),  # Otherwise it refuses bf16 on a processor.
        "save_total_limit": 2,
        "disable_tqdm": True,
    }
    arguments = defaults | trl_arguments(settings.trl, config, ours)
    try:
        made = config(**values, **arguments)
        _try_optimizer(made)
        if isinstance(made, GRPOConfig) and made.generation_kwargs and not made.use_vllm:
            _try_generating(made.generation_kwargs)
    except (ValueError, TypeError, KeyError, AttributeError, ImportError) as error:
        raise ConfigError(f"TRL refuses the configuration: {error}") from None
    return made


def trl_arguments(table: Mapping[str, Any], config: type, ours: Mapping[str, str]) -> dict[str, Any]:
    """The arguments in `[trl]` that one stage's trainer takes.

    One file serves both stages, so arguments that only the other stage's trainer knows are left out.

    Raises:
        ConfigError: see `trainer_config`.
    """
    decided = {**_IN_EITHER_STAGE, **ours}
    accepted = {field.name for field in fields(config)}
    for key, value in table.items():
        if key in decided:
            raise ConfigError(f"trl.{key} is decided by {decided[key]}; leave it out of [trl].", ("trl", key))
        if key not in _KNOWN:
            near = closest_name(key, _KNOWN)
            way_out = f"; did you mean {near!r}?" if near else "."
            raise ConfigError(f"trl.{key}: {config.__name__} has no such argument{way_out}", ("trl", key))
        _check(key, value)
    return {key: value for key, value in table.items() if key in accepted}


def _check(key: str, value: Any) -> None:
    """Refuse a value that is none of those that TRL names for the argument, or a text in place of a number or a truth
    value: `key=False` on the command line is the text "False", which counts as true.

    Raises:
        ConfigError: see above.
    """
    field, where = _KNOWN[key], ("trl", key)
    choices = [str(choice) for choice in _LATE_CHOICES.get(key) or field.metadata.get("choices", ())]
    if choices and value not in choices:
        raise ConfigError(f"trl.{key} cannot be {value!r}; {suggestion(str(value), choices)}", where)
    if key == "optim_args" and not all("=" in part for part in str(value).split(",")):
        raise ConfigError(f'trl.{key} cannot be {value!r}; give it as "name=value,name=value".', where)
    type_: Any = field.type
    if not set(get_args(type_) or (type_,)) <= _SCALARS:
        return
    try:
        TypeAdapter(type_).validate_python(value, strict=True)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise ConfigError(f"trl.{key} cannot be {value!r}: {reason}.", where) from None


def _try_optimizer(config: TrainingArguments) -> None:
    """Make the optimiser and the schedule for a single weight. They raise what they refuse."""
    if any(kind in config.optim for kind in ("galore", "apollo", "lomo")):
        return  # These need the model.
    optimizer, arguments = Trainer.get_optimizer_cls_and_kwargs(config)
    get_scheduler(
        config.lr_scheduler_type,
        optimizer([torch.nn.Parameter(torch.zeros(1))], **arguments),
        num_warmup_steps=1,
        num_training_steps=4,
        scheduler_specific_kwargs=config.lr_scheduler_kwargs,  # type: ignore[arg-type] # a text was parsed
    )


def _try_generating(arguments: Any) -> None:
    """Have a model of one layer write one token. transformers checks most arguments only when it generates."""
    make: Any = GenerationConfig
    sizes: dict[str, Any] = {
        "vocab_size": 8,
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
    }
    try:
        if unknown := make().update(**arguments):
            raise ValueError(f"transformers generates without {', '.join(unknown)}.")
        chosen = {"do_sample": True, "pad_token_id": 0} | arguments | {"max_new_tokens": 1}
        with torch.random.fork_rng(devices=[]):
            model = LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=1, num_key_value_heads=1))
            model.generate(torch.ones(1, 2, dtype=torch.long), generation_config=make(**chosen))
    except (ValueError, TypeError, ArithmeticError, RuntimeError) as error:
        raise ConfigError(
            f"trl.generation_kwargs cannot be used: {error}", ("trl", "generation_kwargs")
        ) from None
