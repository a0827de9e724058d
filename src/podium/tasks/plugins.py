"""Adds graders and task sets of other packages, found by entry point, to Podium's own tables.

Only the two tables (`graders.registry`, `sets.registry`) call it. A package names its class in its `pyproject.toml`:

    [project.entry-points."podium.graders"]
    mine = "my_package.graders:MyGrader"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar, Union

from pydantic import Field

from podium.config import Settings
from podium.plugins import PluginGroup

Spec = TypeVar("Spec", bound=Settings)


def with_plugins(table: Sequence[type[Spec]], base: type[Any], *, group: str, tag: str) -> list[type[Spec]]:
    """The classes of a table, then the classes of installed packages.

    Args:
        base: the class that each of them extends.
        group: the group of entry points.
        tag: the field whose default is the name in task files: "kind" of graders, "set" of task sets.

    Raises:
        ConfigError: an entry point is not a class derived from `base`, or its name is taken.
    """
    known = {_name(row, tag): row for row in table}
    noun = group.removeprefix("podium.").removesuffix("s").replace("_", " ")
    plugins = PluginGroup[Any](group, noun)
    for entry, plugin in plugins.items():
        name = _name(plugin, tag) if isinstance(plugin, type) and issubclass(plugin, base) else ""
        if not name:
            raise plugins.refusal(entry, f"is no {base.__name__} with a default {tag}")
        if name in known:
            raise plugins.refusal(entry, f"has the {tag} {name!r}, which is taken")
        known[name] = plugin
    return list(known.values())


def tagged_union(classes: Sequence[type[Settings]], tag: str) -> Any:
    """The union of some classes, discriminated by the tag, as the type of a setting."""
    return Annotated[Union[tuple(classes)], Field(discriminator=tag)]  # noqa: UP007 - known only at run time


def _name(spec: type[Settings], tag: str) -> str:
    field = spec.model_fields.get(tag)
    return field.default if field is not None and isinstance(field.default, str) else ""
