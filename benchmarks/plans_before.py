"""Seconds in which the release of Podium that PYTHONPATH names writes plans, sixteen at a time.

`plans.py` runs this over the sources of an older commit, so it uses only what that commit has. It reads a checkpoint's
folder and the prompts as JSON, and writes the seconds and the texts.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from podium.conductor import Checkpoint, Policy, Sampling, open_policy
from podium.types import Message


async def write_all(policy: Policy, prompts: list[str]) -> list[str]:
    """The plans."""
    free = asyncio.Semaphore(16)

    async def write(prompt: str) -> str:
        async with free:
            return (await policy.complete((Message(role="user", content=prompt),), Sampling())).text

    return await asyncio.gather(*map(write, prompts))


if __name__ == "__main__":
    given = json.load(sys.stdin)
    opened = open_policy(Checkpoint.read(given["checkpoint"]))
    began = time.perf_counter()
    texts = asyncio.run(write_all(opened, given["prompts"]))
    print(json.dumps({"seconds": time.perf_counter() - began, "texts": texts}))
