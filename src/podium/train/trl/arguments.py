"""Takes the arguments of TRL's configurations from the table `[trl]`, and refuses those that a run could not obey."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from types import NoneType
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.sft_config import SFTConfig

from podium.config import closest_name, suggestion
from podium.errors import ConfigError

_KNOWN: Mapping[str, Field[Any]] = {
    field.name: field for trainer_config in (GRPOConfig, SFTConfig) for field in fields(trainer_config)
}
"""The arguments of both stages' trainers. Those that `[trl]` may set have the same type in both."""
_SCALARS = {bool, int, float, NoneType}

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


def trl_arguments(table: Mapping[str, Any], config: type, ours: Mapping[str, str]) -> dict[str, Any]:
    """The arguments in `[trl]` that one stage's trainer takes.

    One file serves both stages, so arguments that only the other stage's trainer knows are left out.

    Args:
        config: GRPOConfig or SFTConfig.
        ours: the arguments that settings of Podium decide, each with its setting.

    Raises:
        ConfigError: `[trl]` has an argument that no trainer knows, that Podium decides, or that cannot have this value.
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
    field = _KNOWN[key]
    choices = [str(choice) for choice in field.metadata.get("choices", ())]
    if choices and value not in choices:
        raise ConfigError(f"trl.{key} cannot be {value!r}; {suggestion(str(value), choices)}", ("trl", key))
    type_: Any = field.type
    if not set(get_args(type_) or (type_,)) <= _SCALARS:
        return
    try:
        TypeAdapter(type_).validate_python(value, strict=True)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise ConfigError(f"trl.{key} cannot be {value!r}: {reason}.", ("trl", key)) from None
