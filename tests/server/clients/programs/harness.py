"""Runs the features of one client and prints what each gave, as one JSON object."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Callable
from typing import Any

URL = os.environ["PODIUM_URL"]
"""The server, without /v1."""
V1 = f"{URL}/v1"
BLUE = "Say only blue"
NAME, RECALL = "My name is Ada.", "What is my name?"
WEATHER, THANKS = "How is the weather in Oslo?", "Say only thanks"
TOWN = "name the town: Oslo"
UNKNOWN = "nobody"
"""No model has this name."""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
"""A PNG image of one pixel, in base64."""


def get_weather(town: str) -> str:
    """The weather in a town."""
    return f"snow in {town}"


WEATHER_TOOL = {
    "name": "get_weather",
    "description": "The weather in a town.",
    "parameters": {
        "type": "object",
        "properties": {"town": {"type": "string"}},
        "required": ["town"],
        "additionalProperties": False,
    },
}


def run(features: dict[str, Callable[[], Any]]) -> None:
    """Print {feature: text}; an exception becomes "ERROR" with its class and message."""
    found = {}
    for name, feature in features.items():
        try:
            value = feature()
            found[name] = str(asyncio.run(value) if inspect.iscoroutine(value) else value)
        except Exception as error:
            found[name] = f"ERROR {type(error).__name__}: {error}"
    print(json.dumps(found), file=sys.stdout, flush=True)
