"""Configuration: TOML files and `key=value` overrides, read into pydantic models.

This package knows no particular model. An unusable value is a `ConfigError` of one sentence: the file and line or the
override, the key, the value, and what to do. Values of keys that look secret are never repeated.
"""

from podium.config.explain import nearest, suggestion
from podium.config.source import Settings, Source, build, load

__all__ = ["Settings", "Source", "build", "load", "nearest", "suggestion"]
