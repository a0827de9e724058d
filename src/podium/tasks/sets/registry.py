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
from podium.tasks.sets.custom import CustomSet
from podium.tasks.sets.inspect_task import InspectTask

TASK_SETS: tuple[type[TaskSetSpec], ...] = (CustomSet, InspectTask)

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
