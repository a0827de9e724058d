"""What TRL's trainers of both stages are set up with beside their arguments: an adapter, a quantisation, trackers.

What TRL, peft and transformers refuse becomes a ConfigError, before a run begins if it can be known then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from transformers.integrations.integration_utils import get_reporting_integration_callbacks

from podium.errors import ConfigError, PodiumError, collecting_errors
from podium.train.settings import TrainSettings


def setup_problems(settings: TrainSettings) -> list[PodiumError]:
    """The reasons why no trainer of TRL can train: an adapter, a quantisation or a tracker that cannot be used."""
    problems: list[PodiumError] = []
    with collecting_errors(problems):
        lora_config(settings)
    with collecting_errors(problems):
        quantization_config(settings)
    if settings.quantization is not None and find_spec("bitsandbytes") is None:
        needed = "[quantization] needs bitsandbytes; install it with: pip install bitsandbytes, or leave the table out."
        problems.append(ConfigError(needed, ("quantization",)))
    reports = settings.trl.get("report_to", "none")
    if reports in ("none", ["none"], []):
        return problems
    try:
        for tracker in get_reporting_integration_callbacks(reports):  # type: ignore[no-untyped-call]
            tracker()  # Raises if the tracker's package is missing.
    except (RuntimeError, ValueError, ImportError) as error:
        problems.append(ConfigError(f"trl.report_to = {reports!r} cannot be used: {error}"))
    return problems


@contextmanager
def refused_arguments_as_config_errors(settings: TrainSettings) -> Iterator[None]:
    """The block makes TRL's trainer. What TRL, peft and transformers refuse is raised as a ConfigError."""
    try:
        yield
    except (ValueError, TypeError, ImportError, OSError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConfigError(f"The trainer cannot be set up with {settings.start}: {reason}") from error


@contextmanager
def missing_packages_as_config_errors() -> Iterator[None]:
    """The block trains. An optimiser or a kernel under `[trl]` whose package is missing is raised as a ConfigError."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"A setting under [trl] cannot be used: {str(error).strip()}", ("trl",)) from error


def lora_config(settings: TrainSettings) -> Any:
    """peft's LoraConfig. None if all weights are trained.

    Raises:
        ConfigError: peft is not installed, or refuses an argument.
    """
    whole = {"task_type": "CAUSAL_LM", "target_modules": "all-linear"}
    return None if settings.lora is None else _config_of("peft", "LoraConfig", "lora", whole | settings.lora)


def quantization_config(settings: TrainSettings) -> Any:
    """transformers' BitsAndBytesConfig. None if weights are not quantised.

    Raises:
        ConfigError: bitsandbytes is not installed, or refuses an argument.
    """
    table = settings.quantization
    return None if table is None else _config_of("transformers", "BitsAndBytesConfig", "quantization", table)


def _config_of(package: str, name: str, key: str, arguments: Mapping[str, Any]) -> Any:
    try:
        return getattr(import_module(package), name)(**arguments)
    except (ImportError, TypeError, ValueError) as error:
        raise ConfigError(f"[{key}] cannot be used: {error}") from None
