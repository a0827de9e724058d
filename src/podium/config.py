"""Configuration: TOML files and `key=value` overrides, read into pydantic models.

Stands just above the values that every floor shares; knows no particular model. Whatever cannot be used is
one sentence in a `ConfigError`: the file or override, the key, the value, the way out. Values of keys that
look secret are never repeated.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from podium.errors import ConfigError

M = TypeVar("M", bound=BaseModel)

_WANTED = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "string_too_short": "text that is not empty",
}


class Settings(BaseModel):
    """Base of everything that a configuration file may hold: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def load(path: Path, model: type[M], overrides: Sequence[str] = ()) -> M:
    """Read the TOML file at `path` into `model`, after `overrides` such as "train.lr=1e-4".

    Raises:
        ConfigError: the file is missing or not TOML, a key is unknown, a value is of the wrong type.
    """
    return build(_read(path), model, overrides, source=str(path))


def build(
    data: Mapping[str, Any], model: type[M], overrides: Sequence[str] = (), source: str = "settings"
) -> M:
    """The same as `load` for tables that are already read; `source` names them in errors."""
    # Through JSON: strict there means what TOML means (a list may become a tuple, "1" is not a number).
    tables = json.loads(json.dumps(data, default=str))
    placed = [_override(tables, text, source) for text in overrides]
    try:
        return model.model_validate_json(json.dumps(tables, default=str), strict=True)
    except ValidationError as error:
        # An unknown key first: a misspelt one is also reported as missing under its right name.
        problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
        raise ConfigError(_sentence(problems[0], model, tables, placed, source)) from None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was most likely meant to be, if any is close."""
    by_fold = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), by_fold, n=1)
    return by_fold[close[0]] if close else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """The way out of an unknown name: the nearest known one, else all of them."""
    names = list(known)
    close = nearest(name, names)
    if close is not None:
        return f"did you mean {close!r}?"
    return f"known: {', '.join(names)}." if names else "nothing is known by that name."


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file; check the path.") from None
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({error.strerror}); give the path of a TOML file."
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text; save it as UTF-8.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}; mend that place.") from None


# --- overrides -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Placed:
    """An override that was written into the tables."""

    text: str
    key: str
    """Dotted, items of lists by their name."""


def _override(tables: dict[str, Any], text: str, source: str) -> _Placed:
    """Write one `key=value` into `tables`. Items of a list of tables are addressed by name or number."""
    path, equals, value = text.partition("=")
    parts = [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|([^."]+)', path.strip())]
    if not equals or not parts:
        raise ConfigError(f"Override {text!r} is not of the form key=value, as in train.lr=1e-4.")
    place: Any = tables
    key: list[str] = []
    while parts:
        part: int | str = parts[0]
        name, taken = parts[0], 1
        if isinstance(place, list):
            part, taken = _item(place, parts, text, ".".join(key), source)
            name = _item_name(place, part)
        key.append(name)
        parts = parts[taken:]
        if not parts:
            place[part] = _value(value.strip())
        elif isinstance(place, dict):
            place = place.setdefault(part, {})
        else:
            place = place[part]
        if parts and not isinstance(place, dict | list):
            raise ConfigError(
                f"Override {text!r}: {'.'.join(key)} is {_show(key, place)}, which has no keys of its own."
            )
    return _Placed(text, ".".join(key))


def _item(items: list[Any], parts: list[str], text: str, key: str, source: str) -> tuple[int, int]:
    """Index of the item that the first of `parts` name, and how many of them its name takes up."""
    names = [_item_name(items, i) for i in range(len(items))]
    for taken in range(len(parts), 0, -1):  # a name may hold dots, as in gpt-4.1
        wanted = ".".join(parts[:taken])
        if wanted in names:
            return names.index(wanted), taken
    if parts[0].isdecimal() and int(parts[0]) < len(items):
        return int(parts[0]), 1
    raise ConfigError(
        f"Override {text!r}: {source} has no {key} named {parts[0]!r}; {suggestion(parts[0], names)}"
    )


def _item_name(items: list[Any], index: int) -> str:
    item = items[index] if index < len(items) else None
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else str(index)


def _value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if list(parsed) == ["value"] else text


# --- sentences -----------------------------------------------------------------------------------------


def _sentence(
    problem: ErrorDetails, model: type[BaseModel], tables: Any, placed: Sequence[_Placed], source: str
) -> str:
    key, value = _locate(tables, problem["loc"])
    dotted = ".".join(key)
    kind, context = problem["type"], problem.get("ctx", {})
    for override in placed:
        inner, outer = f"{dotted}.", f"{override.key}."
        if inner.startswith(outer) or (kind == "extra_forbidden" and outer.startswith(inner)):
            source = f"Override {override.text.partition('=')[0]!r}"
    if kind == "extra_forbidden":
        name = str(problem["loc"][-1])
        return f"{source}: unknown key {dotted!r}; {suggestion(name, _known(model, problem['loc']))}"
    if kind == "missing":
        return f"{source}: the key {dotted!r} is missing; add it."
    if kind == "value_error":
        return f"{source}: {dotted + ': ' if dotted else ''}{problem['msg'].removeprefix('Value error, ')}"
    if kind == "union_tag_not_found":
        return f"{source}: {dotted} lacks the key {context['discriminator']}; add it."
    choices = re.findall(r"'([^']*)'", str(context.get("expected_tags") or context.get("expected") or ""))
    if kind == "union_tag_invalid":
        key, value = [*key, str(context["discriminator"]).strip("'")], context["tag"]
        dotted = ".".join(key)
    found = f"{source}: {dotted or 'the whole'} is {_show(key, value)}"
    if choices:
        return f"{found}; {suggestion(str(value), choices)}"
    wanted = _WANTED.get(kind) or re.sub(r"^Input should be ", "", problem["msg"])
    return f"{found}, but it should be {wanted}."


def _locate(tables: Any, loc: tuple[int | str, ...]) -> tuple[list[str], Any]:
    """The dotted key and the value at a pydantic location, the tags of unions left out."""
    key: list[str] = []
    place = tables
    for depth, part in enumerate(loc):
        if isinstance(place, list) and isinstance(part, int) and part < len(place):
            key.append(_item_name(place, part))
            place = place[part]
        elif isinstance(place, dict) and (part in place or depth == len(loc) - 1):
            key.append(str(part))
            place = place.get(str(part))
    return key, place


def _show(key: Sequence[str], value: Any) -> str:
    """A value as TOML writes it, shortened; never a secret's."""
    if key and re.search("key|secret|password", key[-1], re.IGNORECASE):
        return "set to something unusable"
    if isinstance(value, dict):
        return "a table"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _known(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The keys that the table around the last part of `loc` may have."""
    places: list[Any] = [model]
    for part in loc[:-1]:
        places = [inner for place in places for single in _members(place) for inner in _inside(single, part)]
    return [
        name
        for place in places
        for single in _members(place)
        if isinstance(single, type) and issubclass(single, BaseModel)
        for name in single.model_fields
    ]


def _members(annotation: Any) -> Iterator[Any]:
    """The types that an annotation allows, unions and `Annotated` opened."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _members(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _members(member)
    else:
        yield annotation


def _inside(annotation: Any, part: int | str) -> Iterator[Any]:
    """What stands under `part` of a value of this type; `part` may also be the tag of a union."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields
        if part in fields:
            yield fields[str(part)].annotation
        elif any(
            get_origin(field.annotation) is Literal and part in get_args(field.annotation)
            for field in fields.values()
        ):
            yield annotation
    elif isinstance(part, int):
        yield from get_args(annotation)[:1]
    elif get_origin(annotation) is dict:
        yield get_args(annotation)[1]
