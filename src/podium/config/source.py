"""Reads settings from a TOML file or from parsed tables, with `key=value` overrides, into a pydantic model.

It finds the line or the override that an error is about.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from podium.config.explain import explain, item_name, show_value, suggestion
from podium.config.toml import Where, find_line, toml_key, toml_value, walk
from podium.errors import ConfigError


class Settings(BaseModel):
    """Base class of all models of configuration files: frozen; unknown keys, infinity and NaN are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class AppliedOverride:
    """An override that was applied to the tables."""

    key: str
    """As the user wrote it."""
    where: Where


_PART = re.compile(r'("(?:[^"\\]|\\.)*")|([^."]+)')
"""A part of the key of an override, in quotes or plain."""
_OVERRIDE = re.compile(r'((?:"(?:[^"\\]|\\.)*"|[^="])*)=(.*)', re.DOTALL)


def override(tables: dict[str, Any], text: str, source: str) -> AppliedOverride:
    """Apply one `key=value` to `tables`, which `source` names in messages. An item of a list of tables is addressed by
    its name or number."""
    found = _OVERRIDE.fullmatch(text)
    written, value = ("", "") if found is None else found.groups()
    parts = [_value(quoted) if quoted else plain for quoted, plain in _PART.findall(written.strip())]
    if not parts:
        raise ConfigError(f"Override {text!r} is not of the form key=value, as in train.lr=1e-4.")
    where = _locate(tables, parts, text, source)
    parent: Any = tables
    for key in where[:-1]:
        parent = parent.setdefault(key, {}) if isinstance(parent, dict) else parent[key]
    parent[where[-1]] = _value(value.strip())
    return AppliedOverride(written, where)


def _locate(tables: dict[str, Any], parts: list[str], text: str, source: str) -> Where:
    """The place that the parts of a key name, with the index of each item of a list."""
    where: Where = ()
    names: list[str] = []
    current: Any = tables
    while parts:
        if isinstance(current, dict):
            name, taken = parts[0], 1
            where += (name,)
            current = current.get(name, {})
        elif isinstance(current, list):
            index, taken = _item(current, parts, text, ".".join(names), source)
            name = item_name(current, index)
            where += (index,)
            current = current[index]
        else:
            raise ConfigError(
                f"Override {text!r}: {'.'.join(names)} is {show_value(names, current)}, which has no keys of its own."
            )
        names.append(name)
        parts = parts[taken:]
    return where


def _item(items: list[Any], parts: list[str], text: str, key: str, source: str) -> tuple[int, int]:
    """The index of the item that `parts` begin with, and how many of the parts its name takes."""
    names = [item_name(items, index) for index in range(len(items))]
    underscored = [name.replace("-", "_") for name in names]  # Inspect changes the keys of -M in this way.
    for known in (names, underscored):
        for taken in range(len(parts), 0, -1):  # a name may contain dots, as in gpt-4.1
            wanted = ".".join(parts[:taken])
            if wanted in known and (known is names or known.count(wanted) == 1):
                return known.index(wanted), taken
    if parts[0].isdecimal() and int(parts[0]) < len(items):
        return int(parts[0]), 1
    raise ConfigError(
        f"Override {text!r}: {source} has no {key} named {parts[0]!r}; {suggestion(parts[0], names)}"
    )


def _value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if list(parsed) == ["value"] else text


M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """Tables with their overrides applied, before validation."""

    name: str
    """The name of the file, for messages."""
    tables: Mapping[str, Any]
    text: str = ""
    """The text of the file; empty if the tables come from elsewhere."""
    overrides: tuple[AppliedOverride, ...] = ()
    base: SettingsSource | None = None
    """The settings that hold where these tables leave something out, if there are any."""
    folder: Path = Path()
    """Paths in the tables are relative to this folder, those of overrides to the working folder."""
    files: Mapping[Path, bytes] | None = None
    """Contents of files by absolute path, where no other file may be read. If it is None, files are read from the
    disk."""

    @classmethod
    def read(
        cls, path: Path, overrides: Sequence[str] = (), *, files: Mapping[Path, bytes] | None = None
    ) -> Self:
        """Read the TOML file at `path`, and apply `overrides` such as "train.lr=1e-4".

        Raises:
            ConfigError: the file is missing or not TOML, or an override cannot be applied.
        """
        text = _text(path, files)
        try:
            tables = tomllib.loads(text)
        # A number of thousands of digits is a plain ValueError.
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path}: is not valid TOML: {error}; correct that place.") from None
        return cls(str(path), {}, text, folder=path.parent, files=files).with_tables(tables, overrides)

    def with_tables(self, tables: Mapping[str, Any], overrides: Sequence[str] = ()) -> Self:
        """This source with a copy of other tables, to which `overrides` are applied. One that cannot be applied is a
        `ConfigError`."""
        # Copied through JSON: pydantic's strict mode for JSON fits TOML (a list may become a tuple, "1" is not a
        # number).
        copy = json.loads(json.dumps(tables, default=str))
        applied = tuple(override(copy, written, self.name) for written in overrides)
        return replace(self, tables=copy, overrides=applied)

    def into(self, model: type[M], context: object = None) -> M:
        """Validate the tables as a model, whose validators are told the context. An unknown or missing key or a value
        that cannot be used is a `ConfigError`."""
        try:
            read = model.model_validate_json(
                json.dumps(self.tables, default=str), strict=True, context=context
            )
        except ValidationError as error:
            # Unknown keys first: a misspelt key is also reported as a missing one.
            problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
            where, sentence = explain(problems[0], model, self.tables)
            unknown = problems[0]["type"] == "extra_forbidden"
            raise ConfigError(f"{self.location(where, unknown)}: {sentence}", where) from None
        for where, number in walk(self.tables):
            if isinstance(number, float | int) and abs(number) > MAX_NUMBER:
                key = ".".join(map(str, where))
                raise self.error_at(f"{key} is too large; give at most {MAX_NUMBER:,}.", *where)
        return read

    def error_at(self, message: object, *where: str | int) -> ConfigError:
        """An error about the value at `where`, with the line or the override before its message."""
        return ConfigError(f"{self.location(where)}: {message}", where)

    def location(self, where: Where, unknown: bool = False) -> str:
        """The override, or the file and line, that sets the value at `where`; the name of the file if neither does."""
        for applied in reversed(self.overrides):
            within = where[: len(applied.where)] == applied.where
            # An override such as a.b=1 creates the table a, which may be the unknown key.
            if within or (unknown and applied.where[: len(where)] == where):
                return f"Override {applied.key!r}"
        line = find_line(self.text, where)
        if line is None and self.base is not None and find_line(self.base.text, where) is not None:
            return self.base.location(where)
        return self.name if line is None else f"{self.name}, line {line}"


def load(path: Path, model: type[M], overrides: Sequence[str] = ()) -> M:
    """Read the TOML file at `path`, apply `overrides` such as "train.lr=1e-4", and validate it as `model`. What cannot
    be used is a `ConfigError`."""
    return SettingsSource.read(path, overrides).into(model)


def build(
    data: Mapping[str, Any], model: type[M], overrides: Sequence[str] = (), source: str = "settings"
) -> M:
    """The same as `load` for parsed tables; `source` names them in messages."""
    return SettingsSource(source, {}).with_tables(data, overrides).into(model)


def to_overrides(keys: Mapping[str, Any]) -> tuple[str, ...]:
    """Keys as overrides of the form `key=value`. The outer keys may be dotted. What is None is left out."""
    return tuple(text for key, value in keys.items() for text in _overrides(key, value))


def _overrides(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        for inner, item in value.items():
            yield from _overrides(f"{key}.{toml_key(str(inner))}", item)
    elif value is not None:
        yield f"{key}={toml_value(value)}"


MAX_NUMBER = 10**15
"""The largest number in a settings file or an option; no count, limit or amount is larger."""


MAX_FILE_BYTES = 2**26
"""Bytes that a file of settings, a plan or a tokenizer may have."""


def read_file(path: Path, most: int = MAX_FILE_BYTES) -> bytes:
    """The content of a regular file. A pipe would be waited for, and a device such as /dev/zero never ends.

    Raises:
        OSError: it cannot be read, is something else, or has more than `most` bytes; the reason is its `strerror`.
    """
    try:
        opened = open(path, "rb", opener=_open_now)  # noqa: SIM115 - closed below
    except ValueError:  # A null character, or half of a surrogate pair.
        raise OSError(errno.EINVAL, "no file can have this name", str(path)) from None
    with opened as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, and no file", str(path))
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return content


def _open_now(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _text(path: Path, files: Mapping[Path, bytes] | None) -> str:
    try:
        content = read_file(path) if files is None else files[path.absolute()]
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except (FileNotFoundError, KeyError):
        raise ConfigError(f"{path}: there is no such file; check the path.") from None
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({error.strerror}); give the path of a TOML file."
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text; save it as UTF-8.") from None
