"""The table of task sets: each by the `set` under which task files name it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, get_args

from pydantic import Field

from podium.tasks.sets.choice_sets import GPQA, MMLU, MMLUPro
from podium.tasks.sets.code_sets import MBPP, BigCodeBench, HumanEval
from podium.tasks.sets.custom import CustomSet
from podium.tasks.sets.inspect_task import InspectTask
from podium.tasks.sets.livecodebench import LiveCodeBench
from podium.tasks.sets.math_sets import AIME, GSM8K, MATH, MATH500
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
AnyTaskSet = Annotated[_Named | CustomSet | InspectTask, Field(discriminator="set")]
NAMED_SETS: Mapping[str, type[_Named]] = MappingProxyType(
    {spec.model_fields["set"].default: spec for spec in get_args(_Named)}
)
"""Sets that need no settings, by name."""
