"""Unions of settings whose members are found by name when a value names them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Union

from pydantic import BaseModel, Field, GetCoreSchemaHandler, TypeAdapter, ValidationInfo
from pydantic_core import CoreSchema, PydanticKnownError, core_schema


@dataclass(frozen=True, slots=True)
class OpenUnion:
    """An annotation of a setting: a discriminated union of classes, to which installed packages add."""

    tag: str
    """The key whose value names the class."""
    members: tuple[type[BaseModel], ...]
    """The classes that need no search."""
    find: Callable[[str], type[BaseModel] | None]
    """The class of this name, or None if there is none."""
    names: Callable[[], Sequence[str]]
    """All names, for messages."""

    def __get_pydantic_core_schema__(self, base: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        del handler

        def read(value: Any, info: ValidationInfo) -> Any:
            return value if isinstance(value, base) else self._read(value, info)

        return core_schema.with_info_plain_validator_function(read)

    def _read(self, value: Any, info: ValidationInfo) -> Any:
        name = value.get(self.tag) if isinstance(value, Mapping) else None
        found = self.find(name) if isinstance(name, str) else None
        if isinstance(name, str) and found is None:
            known = ", ".join(map(repr, self.names()))
            context = {"discriminator": repr(self.tag), "tag": name, "expected_tags": known}
            raise PydanticKnownError("union_tag_invalid", context)
        added = () if found is None or found in self.members else (found,)
        union = _union((*self.members, *added), self.tag)
        if info.mode == "json":  # Strict, as `SettingsSource.into` is: there a list may become a tuple.
            return union.validate_json(json.dumps(value), strict=True, context=info.context)
        return union.validate_python(value, context=info.context)


@cache
def _union(members: tuple[type[BaseModel], ...], tag: str) -> TypeAdapter[Any]:
    union: Any = Annotated[Union[members], Field(discriminator=tag)]  # noqa: UP007 - known only at run time
    return TypeAdapter(union)
