"""Keys and values as errors show them; the value of a key that looks secret never is."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any


def item_name(items: list[Any], index: int) -> str:
    """What an item of a list is called: its own name, else its number."""
    item = items[index] if index < len(items) else None
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else str(index)


def show(key: Sequence[str], value: Any) -> str:
    """A value as TOML writes it, shortened; never a secret's."""
    if key and re.search("key|secret|password|authorization|token$", key[-1], re.IGNORECASE):
        return "set to something unusable"
    if isinstance(value, dict):
        return "a table"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
