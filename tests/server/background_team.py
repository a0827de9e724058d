"""A team of three steps in a server of its own, whose worker counts its calls, and waits where the test says."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openai import OpenAI

from chat_model import ChatModel, Say
from running_server import until

STEPS = ("alpha", "beta", "gamma")
"""What the three steps are told; each answers with its word in capitals."""
PLAN = (
    f"model_id = [0, 0, 0]\nsubtasks = {json.dumps([f'Say {word}.' for word in STEPS])}\n"
    'access_list = [[], ["all"], ["all"]]'
)
QUESTION = "Say three words."
INPUT_TOKENS = 400
CALL_USD = (INPUT_TOKENS * 1.0 + 5 * 2.0) / 1e6
"""Of each call: the tokens in, and 5 out, at the prices of `pool_file`."""


@dataclass
class Answers:
    """The worker's answers, to plans and to steps."""

    waits: set[str] = field(default_factory=set)
    """The calls that are not answered yet: "plan", or the word of a step."""

    def __call__(self, body: dict[str, Any]) -> Say:
        call = called(body)
        text = PLAN if call in ("plan", "check") else call.upper()
        return Say(text, wait=lambda number: call not in self.waits)


def called(body: dict[str, Any]) -> str:
    """Which call a request is: "plan", the word that its step is told to say, or "check", the server's own plan."""
    text = str(body["messages"][-1]["content"])
    if "Write your plan" in text:
        return "plan" if QUESTION in text else "check"
    return max(STEPS, key=lambda word: text.rfind(f"Say {word}."))


def calls(model: ChatModel) -> Counter[str]:
    """How often each call was made for questions."""
    made = Counter(called(body) for body in model.bodies)
    del made["check"]
    return made


def pool_file(folder: Path, url: str, *, name: str = "ada") -> Path:
    """A pool of one worker, which also plans; both have the same price."""
    path = folder / "pool.toml"
    price = "price = { input = 1.0, output = 2.0 }"
    path.write_text(
        f'[conductor]\nworker = "{name}"\nplans = "text"\n\n'
        f'[[worker]]\nname = "{name}"\nkind = "openai"\nmodel = "m-1"\nbase_url = "{url}"\n'
        f"{price}\nlimits = {{ retries = 0, timeout = 90, max_tokens = 100 }}\n"
    )
    return path


def ended(asking: OpenAI, id: str, statuses: Sequence[str] = ("queued", "in_progress")) -> Any:
    """The response once it is finished."""

    def look() -> Any:
        response = asking.responses.retrieve(id)
        return response if response.status not in statuses else None

    return until(look)


def pronounce_dead(path: Path) -> None:
    """As if the servers of all responses in the store had given no sign of life for long."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("UPDATE podium_background SET heartbeat = heartbeat - 3600")
