"""Settings whose class a key of their table names, as `kind` does for a worker. Installed packages add classes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from podium.errors import ConfigError
from podium.plugins import PluginGroup


@dataclass(frozen=True, slots=True)
class OpenUnion:
    """An annotation of a setting: a union of classes, to which installed packages may add."""

    tag: str
    """The key whose value names the class."""
    find: Callable[[str], type[BaseModel] | None]
    """The class of this name, or None if there is none. A `ConfigError` says that it cannot be loaded."""
    names: Callable[[], Sequence[str]]
    """All names, for messages."""

    def class_of(self, table: Any) -> type[BaseModel] | None:
        """The class of a table. None if it names none."""
        name = table.get(self.tag) if isinstance(table, Mapping) else None
        return None if name is None else self.find(str(name))

    def __get_pydantic_core_schema__(self, base: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        del handler

        def read(value: Any, info: ValidationInfo) -> Any:
            return value if isinstance(value, base) else self._read(value, info)

        return core_schema.with_info_plain_validator_function(read)

    def _read(self, value: Any, info: ValidationInfo) -> BaseModel:
        if not isinstance(value, Mapping):
            raise PydanticKnownError("model_attributes_type")
        if self.tag not in value:
            raise PydanticKnownError("union_tag_not_found", {"discriminator": repr(self.tag)})
        try:
            found = self.class_of(value)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        if found is None:
            known = ", ".join(map(repr, self.names()))
            context = {"discriminator": repr(self.tag), "tag": str(value[self.tag]), "expected_tags": known}
            raise PydanticKnownError("union_tag_invalid", context)
        if info.mode == "json":  # Strict, as `SettingsSource.into` is: there a list may become a tuple.
            return found.model_validate_json(json.dumps(value), strict=True, context=info.context)
        return found.model_validate(value, context=info.context)


def extensible_union(
    table: Sequence[type[BaseModel]], base: type[BaseModel], *, group: str, tag: str
) -> OpenUnion:
    """The union of the classes of a table and of those of installed packages. Naming one imports its module alone; one
    that cannot be loaded, or is not derived from `base`, is a `ConfigError`.

    Args:
        group: the group of entry points.
        tag: the field whose default is the name in task files: "kind" of graders, "set" of task sets.
    """
    own = {_name(row, tag): row for row in table}
    installed = PluginGroup[Any](group, group.removeprefix("podium.").removesuffix("s").replace("_", " "))

    def find(name: str) -> type[BaseModel] | None:
        if name in own:
            return own[name]
        found: Any = installed.find(name)
        is_one = isinstance(found, type) and issubclass(found, base)
        if found is not None and not (is_one and _name(found, tag) == name):
            raise installed.refusal(name, f'is no {base.__name__} with the default {tag} = "{name}"')
        return found  # type: ignore[no-any-return]

    return OpenUnion(tag, find, lambda: tuple(dict.fromkeys((*own, *installed.names))))


def _name(spec: type[BaseModel], tag: str) -> str:
    field = spec.model_fields.get(tag)
    return field.default if field is not None and isinstance(field.default, str) else ""
