"""Configuration: TOML files and `key=value` overrides, read into pydantic models.

This package does not know which models there are. An unusable value is a `ConfigError` of one sentence: the file and
line or the override, the key, the value, and what to do. Values of keys that look secret are never repeated.
"""

from podium.config.explain import closest_name, suggestion
from podium.config.source import Settings, SettingsSource, build, load, read_file, to_overrides

__all__ = [
    "Settings",
    "SettingsSource",
    "build",
    "closest_name",
    "load",
    "read_file",
    "suggestion",
    "to_overrides",
]
