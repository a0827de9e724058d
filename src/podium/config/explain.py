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
from pydantic_core import ErrorDetails

from podium.config.open_union import OpenUnion
from podium.config.toml import Where, walk


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


def show_value(key: Sequence[str], value: Any) -> str:
    """A value as TOML writes it, shortened; values of keys that look secret are hidden."""
    if key and re.search("key|secret|password|authorization|token$", key[-1], re.IGNORECASE):
        return "set to something unusable"
    if isinstance(value, dict):
        return "a table"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


_EXPECTED = {
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
    where, key, value = _locate(tables, problem["loc"], absent=kind == "missing")
    dotted = ".".join(key)
    if kind == "extra_forbidden":
        known = [name for table in _classes_at(model, tables, where[:-1]) for name in table.model_fields]
        return where, f"unknown key {dotted!r}; {suggestion(str(where[-1]), known)}"
    if kind == "missing":
        return where, f"the key {dotted!r} is missing; add it."
    if kind == "value_error":
        message = problem["msg"].removeprefix("Value error, ")
        return where + _path_named_in(message, value), f"{dotted + ': ' if dotted else ''}{message}"
    if kind == "union_tag_not_found":
        return where, f"{dotted} lacks the key {context['discriminator']}; add it."
    choices = re.findall(r"'([^']*)'", str(context.get("expected_tags") or context.get("expected") or ""))
    if kind == "union_tag_invalid":
        tag = str(context["discriminator"]).strip("'")
        where, key, value = (*where, tag), [*key, tag], context["tag"]
        dotted = ".".join(key)
    found = f"{dotted or 'the whole'} is {show_value(key, value)}"
    if choices:
        return where, f"{found}; {suggestion(str(value), choices)}"
    wanted = _EXPECTED.get(kind) or re.sub(r"^Input should be ", "", problem["msg"])
    return where, f"{found}, but it should be {wanted}."


def _path_named_in(sentence: str, table: Any) -> Where:
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


def _classes_at(annotation: Any, value: Any, where: Where) -> Iterator[type[BaseModel]]:
    """The classes that a type allows for the table at `where` in a value."""
    inner, *notes = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    for union in (note for note in notes if isinstance(note, OpenUnion)):
        inner = union.class_of(value)
    if get_origin(inner) in (Union, UnionType):
        for member in get_args(inner):
            yield from _classes_at(member, value, where)
    elif isinstance(inner, type) and issubclass(inner, BaseModel):
        if not where:
            yield inner
        elif (field := inner.model_fields.get(str(where[0]))) is not None:
            # Pydantic moves what an annotation says into the field.
            outer: Any = Annotated[field.annotation, *field.metadata, None]
            yield from _classes_at(outer, value[where[0]], where[1:])
    elif where:  # The last argument of a list, a tuple or a dictionary is the type of its items.
        items = [item for item in get_args(inner) if item is not Ellipsis]
        yield from _classes_at(items[-1] if items else None, value[where[0]], where[1:])
