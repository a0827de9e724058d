"""Adds graders and task sets of other packages, found by entry point, to Podium's own tables.

Only the two tables (`graders.registry`, `sets.registry`) use it. A package names its class in its `pyproject.toml`,
under the name that task files give it:

    [project.entry-points."podium.graders"]
    mine = "my_package.graders:MyGrader"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from podium.config import Settings
from podium.config.open_union import OpenUnion
from podium.plugins import PluginGroup

Spec = TypeVar("Spec", bound=Settings)


class ExtensibleTable(Generic[Spec]):
    """The classes of a table, and the classes of installed packages. Naming one imports its module alone.

    Args:
        base: the class that each of them extends.
        group: the group of entry points.
        tag: the field whose default is the name in task files: "kind" of graders, "set" of task sets.
    """

    def __init__(self, table: Sequence[type[Spec]], base: type[Any], *, group: str, tag: str) -> None:
        self._table = {_name(row, tag): row for row in table}
        self._base, self._tag = base, tag
        noun = group.removeprefix("podium.").removesuffix("s").replace("_", " ")
        self._plugins = PluginGroup[Any](group, noun)

    @property
    def installed_names(self) -> tuple[str, ...]:
        """The names that installed packages add."""
        return tuple(name for name in self._plugins.names if name not in self._table)

    def find(self, name: str) -> type[Spec] | None:
        """The class of this name, or None if there is none.

        Raises:
            ConfigError: the entry point cannot be loaded, or is no class derived from `base` of that name.
        """
        if name in self._table:
            return self._table[name]
        found: Any = self._plugins.find(name)
        is_one = isinstance(found, type) and issubclass(found, self._base)
        if found is not None and not (is_one and _name(found, self._tag) == name):
            raise self._plugins.refusal(
                name, f'is no {self._base.__name__} with the default {self._tag} = "{name}"'
            )
        return found  # type: ignore[no-any-return]

    @property
    def union(self) -> OpenUnion:
        """The annotation of a setting that is any of these classes."""
        return OpenUnion(self._tag, self.find, lambda: (*self._table, *self.installed_names))


def _name(spec: type[Settings], tag: str) -> str:
    field = spec.model_fields.get(tag)
    return field.default if field is not None and isinstance(field.default, str) else ""
