"""Any task set, as a TOML table says it: told apart by `set`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, get_args

from pydantic import Field

from podium.tasks.sets.aime import AIME
from podium.tasks.sets.bigcodebench import BigCodeBench
from podium.tasks.sets.gpqa import GPQA
from podium.tasks.sets.gsm8k import GSM8K
from podium.tasks.sets.humaneval import HumanEval
from podium.tasks.sets.inspect_task import InspectTask
from podium.tasks.sets.livecodebench import LiveCodeBench
from podium.tasks.sets.math import MATH
from podium.tasks.sets.math500 import MATH500
from podium.tasks.sets.mbpp import MBPP
from podium.tasks.sets.mmlu import MMLU
from podium.tasks.sets.mmlu_pro import MMLUPro
from podium.tasks.sets.own import Own
from podium.tasks.sets.reasoning_gym import ReasoningGym
from podium.tasks.sets.rlpr import RLPR

_Named = (
    GSM8K
    | MATH
    | MATH500
    | AIME
    | MMLU
    | MMLUPro
    | GPQA
    | RLPR
    | LiveCodeBench
    | BigCodeBench
    | HumanEval
    | MBPP
    | ReasoningGym
)
AnySet = Annotated[_Named | Own | InspectTask, Field(discriminator="set")]
NAMED: Mapping[str, type[_Named]] = MappingProxyType(
    {spec.model_fields["set"].default: spec for spec in get_args(_Named)}
)
"""Sets that need no settings, by name."""
