"""The table of task sets: each by the `set` under which task files and command lines name it.

To add a task set, add its class to `TASK_SETS`; or offer it from another package as an entry point of
`podium.task_sets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from podium.config.open_union import extensible_union
from podium.tasks.sets.base import TaskSetSpec
from podium.tasks.sets.custom import CustomSet
from podium.tasks.sets.inspect_task import InspectTask

TASK_SETS: tuple[type[TaskSetSpec], ...] = (CustomSet, InspectTask)

_UNION = extensible_union(TASK_SETS, TaskSetSpec, group="podium.task_sets", tag="set")

if TYPE_CHECKING:
    AnyTaskSet = TaskSetSpec
else:
    AnyTaskSet = Annotated[TaskSetSpec, _UNION]
    """Any task set, as a TOML table gives it; the key `set` says which."""


def installed_set_names() -> tuple[str, ...]:
    """The task sets that installed packages add."""
    return tuple(_UNION.names()[len(TASK_SETS) :])


def named_set(name: str) -> type[TaskSetSpec] | None:
    """The task set of this name if it has a source of its own, and so needs no settings; else None.

    Raises:
        ConfigError: it is of an installed package, and cannot be loaded.
    """
    spec: Any = _UNION.find(name)
    return spec if spec is not None and spec.source else None
