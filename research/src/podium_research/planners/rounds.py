"""What planners of several rounds ask of their rounds and responses."""

from __future__ import annotations

import json
import re
from itertools import islice
from random import Random
from typing import Any

from podium.plugin_api.planners import PlanRequest
from podium.types import SEED_PREFIX_CHARS

_MAX_STARTS = 50
"""How many opening braces of a response are tried: a hostile text may have thousands, each slow to decode."""


def all_rounds(request: PlanRequest) -> int:
    """How many rounds the question has in total, also those that are over."""
    return len(request.earlier_rounds) + request.rounds_left


def question_random(request: PlanRequest, name: str) -> Random:
    """A generator that draws the same in every round of a question."""
    return Random(f"{name}/{request.question.text[:SEED_PREFIX_CHARS]}")


def first_json_object(response: str | None) -> dict[str, Any] | None:
    """The first JSON object in a response, which may have text around it, or None if there is none."""
    text = response or ""
    for start in islice((match.start() for match in re.finditer("{", text)), _MAX_STARTS):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    return None
