"""The table of task sets: each by the `set` under which task files and command lines name it.

To add a task set, add its class to `TASK_SETS`; or offer it from another package as an entry point of
`podium.task_sets`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from podium.tasks.plugins import tagged_union, with_plugins
from podium.tasks.sets.base import TaskSetSpec
from podium.tasks.sets.choice_sets import GPQA, MMLU, MMLUPro
from podium.tasks.sets.code_sets import MBPP, BigCodeBench, HumanEval
from podium.tasks.sets.custom import CustomSet
from podium.tasks.sets.inspect_task import InspectTask
from podium.tasks.sets.livecodebench import LiveCodeBench
from podium.tasks.sets.math_sets import AIME, GSM8K, MATH, MATH500
from podium.tasks.sets.reasoning_gym import ReasoningGym
from podium.tasks.sets.rlpr import RLPR

TASK_SETS: tuple[type[TaskSetSpec], ...] = (
    GSM8K,
    MATH,
    MATH500,
    AIME,
    MMLU,
    MMLUPro,
    GPQA,
    RLPR,
    LiveCodeBench,
    BigCodeBench,
    HumanEval,
    MBPP,
    ReasoningGym,
    CustomSet,
    InspectTask,
)

_ALL = with_plugins(TASK_SETS, TaskSetSpec, group="podium.task_sets", tag="set")
NAMED_SETS: Mapping[str, type[TaskSetSpec]] = MappingProxyType(
    {spec.model_fields["set"].default: spec for spec in _ALL if spec.source}
)
"""Task sets that have a source of their own, and so need no settings, by name."""

if TYPE_CHECKING:
    AnyTaskSet = TaskSetSpec
else:
    AnyTaskSet = tagged_union(_ALL, "set")
    """Any task set, as a TOML table gives it; the key `set` says which."""
