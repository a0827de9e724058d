"""Configuration: TOML files and `key=value` overrides, read into pydantic models.

Stands just above the values that every floor shares; knows no particular model. Whatever cannot be used is
one sentence in a `ConfigError`: the file and line, or the override, the key, the value, the way out. Values of
keys that look secret are never repeated.
"""

from podium.config.explain import nearest, suggestion
from podium.config.source import Settings, Source, build, load

__all__ = ["Settings", "Source", "build", "load", "nearest", "suggestion"]
