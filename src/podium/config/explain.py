"""Turns an error of pydantic into one sentence: the key, the value, and what to do.

It suggests the nearest known name, and never shows the value of a key that looks secret.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from podium.config.open_union import OpenUnion
from podium.config.toml_lines import Where, walk


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar to `name`, if any is similar."""
    by_fold = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), by_fold, n=1)
    return by_fold[close[0]] if close else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """What to do about an unknown name: the nearest known one, else all of them."""
    names = list(known)
    close = closest_name(name, names)
    if close is not None:
        return f"did you mean {close!r}?"
    return f"known: {', '.join(names)}." if names else "there are no names to choose from."


def item_name(items: list[Any], index: int) -> str:
    """The name of an item of a list in overrides and messages: its `name`, if that is one line, else its number."""
    item = items[index] if index < len(items) else None
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) and name.isprintable() else str(index)


def show(key: Sequence[str], value: Any) -> str:
    """A value as TOML writes it, shortened; values of keys that look secret are hidden."""
    if key and re.search("key|secret|password|authorization|token$", key[-1], re.IGNORECASE):
        return "set to something unusable"
    if isinstance(value, dict):
        return "a table"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


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


def explain(problem: ErrorDetails, model: type[BaseModel], tables: Any) -> tuple[Where, str]:
    """The path of a problem in `tables`, and a sentence about it."""
    kind, context = problem["type"], problem.get("ctx", {})
    parts, around = _untagged(model, problem["loc"])
    where, key, value = _locate(tables, parts, absent=kind == "missing")
    dotted = ".".join(key)
    if kind == "extra_forbidden":
        tables_there = (
            single for single in around if isinstance(single, type) and issubclass(single, BaseModel)
        )
        known = [name for table in tables_there for name in table.model_fields]
        return where, f"unknown key {dotted!r}; {suggestion(str(parts[-1]), known)}"
    if kind == "missing":
        return where, f"the key {dotted!r} is missing; add it."
    if kind == "value_error":
        message = problem["msg"].removeprefix("Value error, ")
        return where + _named(message, value), f"{dotted + ': ' if dotted else ''}{message}"
    if kind == "union_tag_not_found":
        return where, f"{dotted} lacks the key {context['discriminator']}; add it."
    choices = re.findall(r"'([^']*)'", str(context.get("expected_tags") or context.get("expected") or ""))
    if kind == "union_tag_invalid":
        tag = str(context["discriminator"]).strip("'")
        where, key, value = (*where, tag), [*key, tag], context["tag"]
        dotted = ".".join(key)
    found = f"{dotted or 'the whole'} is {show(key, value)}"
    if choices:
        return where, f"{found}; {suggestion(str(value), choices)}"
    wanted = _WANTED.get(kind) or re.sub(r"^Input should be ", "", problem["msg"])
    return where, f"{found}, but it should be {wanted}."


def _named(sentence: str, table: Any) -> Where:
    """The path to the first key of `table` that `sentence` names, such as "limits.rpm"; empty if it names none."""
    ways = {".".join(map(str, where)): where for where, _ in walk(table)}
    return next((ways[word] for word in re.findall(r"[\w.-]*\w", sentence) if word in ways), ())


def _locate(tables: Any, parts: Where, *, absent: bool) -> tuple[Where, list[str], Any]:
    """The path, the key as messages show it, and the value of a pydantic location. Parts that only name a member of a
    union are left out. `absent`: the last part names a missing key."""
    where: Where = ()
    key: list[str] = []
    value = tables
    for depth, part in enumerate(parts):
        if isinstance(value, list) and isinstance(part, int) and part < len(value):
            key.append(item_name(value, part))
            value = value[part]
        elif isinstance(value, dict) and (part in value or (absent and depth == len(parts) - 1)):
            key.append(str(part))
            value = value.get(str(part))
        else:
            continue
        where += (part,)
    return where, key, value


def _untagged(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[Where, list[Any]]:
    """A pydantic location without the tags of unions, which may look like keys, and the types of the table that its
    last part is in."""
    parts: Where = ()
    around: list[Any] = []
    annotations: list[Any] = [model]
    for part in loc:
        members = [member for annotation in annotations for member in _tagged(annotation, part)]
        if members:
            annotations = members
            continue
        parts += (part,)
        around = [single for annotation in annotations for single in _members(annotation)]
        annotations = [inner for single in around for inner in _inside(single, part)]
    return parts, around


def _tagged(annotation: Any, tag: int | str) -> Iterator[Any]:
    """The members of discriminated unions that an annotation allows and `tag` selects."""
    origin, (inner, *others) = get_origin(annotation), get_args(annotation) or (None,)
    if origin is Annotated:
        keys = [meta.discriminator for meta in others if isinstance(meta, FieldInfo)]
        for key in (key for key in keys if isinstance(key, str)):
            yield from (
                member for member in _members(inner) if tag in get_args(member.model_fields[key].annotation)
            )
            return
        unions = [meta for meta in others if isinstance(meta, OpenUnion)]
        yield from (member for union in unions if (member := union.find(str(tag))) is not None)
        yield from _tagged(inner, tag)
    elif origin in (Union, UnionType):
        for member in (inner, *others):
            yield from _tagged(member, tag)


def _members(annotation: Any) -> Iterator[Any]:
    """The types that an annotation allows: the members of unions, without `Annotated`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _members(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _members(member)
    else:
        yield annotation


def _inside(annotation: Any, part: int | str) -> Iterator[Any]:
    """The types of the value at `part` in a value of this type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if part in annotation.model_fields:
            field = annotation.model_fields[str(part)]
            # pydantic moves what an annotation says into the field.
            yield Annotated[field.annotation, field, *field.metadata]
    elif isinstance(part, int):
        yield from get_args(annotation)[:1]
    elif get_origin(annotation) is dict:
        yield get_args(annotation)[1]
