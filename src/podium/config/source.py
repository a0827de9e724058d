"""Where settings are from: a TOML file or tables that are already read, and overrides of them.

It reads them into a model, and knows the line or the override that an error is about. Knows no particular model.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError

from podium.config.lines import Where, find_line
from podium.config.overrides import Placed, override
from podium.config.sentences import explain
from podium.errors import ConfigError

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Source:
    """Tables with their overrides, not yet judged."""

    name: str
    """Of the file, for errors."""
    tables: Mapping[str, Any]
    text: str
    """Of the file; empty where the tables are from none."""
    placed: tuple[Placed, ...]

    @classmethod
    def read(cls, path: Path, overrides: Sequence[str] = ()) -> Self:
        """The TOML file at `path`, after `overrides` such as "train.lr=1e-4".

        Raises:
            ConfigError: the file is missing or not TOML, or an override cannot be placed.
        """
        text = _text(path)
        try:
            tables = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise ConfigError(f"{path}: is not valid TOML: {error}; mend that place.") from None
        return cls.of(tables, overrides, str(path), text)

    @classmethod
    def of(cls, tables: Mapping[str, Any], overrides: Sequence[str], name: str, text: str = "") -> Self:
        """The same for tables that are already read; they are left as they are.

        Raises:
            ConfigError: an override cannot be placed.
        """
        # Through JSON: strict there means what TOML means (a list may become a tuple, "1" is not a number).
        copy = json.loads(json.dumps(tables, default=str))
        placed = tuple(override(copy, written, name) for written in overrides)
        return cls(name, copy, text, placed)

    def into(self, model: type[M]) -> M:
        """The tables as the model has them.

        Raises:
            ConfigError: a key is unknown or missing, or a value cannot be used.
        """
        try:
            return model.model_validate_json(json.dumps(self.tables, default=str), strict=True)
        except ValidationError as error:
            # An unknown key first: a misspelt one is also reported as missing under its right name.
            problems = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
            where, sentence = explain(problems[0], model, self.tables)
            unknown = problems[0]["type"] == "extra_forbidden"
            raise ConfigError(f"{self._place(where, unknown)}: {sentence}", where) from None

    def refuse(self, error: ConfigError) -> ConfigError:
        """The same error, with the line or the override that it is about in front."""
        return ConfigError(f"{self._place(error.where)}: {error}", error.where)

    def _place(self, where: Where, unknown: bool = False) -> str:
        for placed in reversed(self.placed):
            within = where[: len(placed.where)] == placed.where
            # An unknown key around the one that was overridden was made by the override.
            if within or (unknown and placed.where[: len(where)] == where):
                return f"Override {placed.key!r}"
        line = find_line(self.text, where)
        return self.name if line is None else f"{self.name}, line {line}"


def load(path: Path, model: type[M], overrides: Sequence[str] = ()) -> M:
    """Read the TOML file at `path` into `model`, after `overrides` such as "train.lr=1e-4".

    Raises:
        ConfigError: the file is missing or not TOML, a key is unknown, a value is of the wrong type.
    """
    return Source.read(path, overrides).into(model)


def build(
    data: Mapping[str, Any], model: type[M], overrides: Sequence[str] = (), source: str = "settings"
) -> M:
    """The same as `load` for tables that are already read; `source` names them in errors."""
    return Source.of(data, overrides, source).into(model)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file; check the path.") from None
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({error.strerror}); give the path of a TOML file."
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text; save it as UTF-8.") from None
