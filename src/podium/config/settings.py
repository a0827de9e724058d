"""The base of every model that a configuration file is read into."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """Base of everything that a configuration file may hold: frozen, unknown keys refused.

    A field that had another name once has `validation_alias=AliasChoices("new", "old")`, so that old files are read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
