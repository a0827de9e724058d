"""Adds graders and task sets of other packages, found by entry point, to Podium's own tables.

Only the two tables (`graders.registry`, `sets.registry`) use it. A package names its class in its `pyproject.toml`,
under the name that task files give it:

    [project.entry-points."podium.graders"]
    mine = "my_package.graders:MyGrader"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.config import Settings
from podium.config.open_union import OpenUnion
from podium.plugins import PluginGroup


def extensible_union(
    table: Sequence[type[Settings]], base: type[Settings], *, group: str, tag: str
) -> OpenUnion:
    """The union of the classes of a table and of those of installed packages. Naming one imports its module alone; one
    that cannot be loaded, or is not derived from `base`, is a `ConfigError`.

    Args:
        group: the group of entry points.
        tag: the field whose default is the name in task files: "kind" of graders, "set" of task sets.
    """
    own = {_name(row, tag): row for row in table}
    installed = PluginGroup[Any](group, group.removeprefix("podium.").removesuffix("s").replace("_", " "))

    def find(name: str) -> type[Settings] | None:
        if name in own:
            return own[name]
        found: Any = installed.find(name)
        is_one = isinstance(found, type) and issubclass(found, base)
        if found is not None and not (is_one and _name(found, tag) == name):
            raise installed.refusal(name, f'is no {base.__name__} with the default {tag} = "{name}"')
        return found  # type: ignore[no-any-return]

    return OpenUnion(tag, find, lambda: tuple(dict.fromkeys((*own, *installed.names))))


def _name(spec: type[Settings], tag: str) -> str:
    field = spec.model_fields.get(tag)
    return field.default if field is not None and isinstance(field.default, str) else ""
