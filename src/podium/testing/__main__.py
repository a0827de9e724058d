"""`python -m podium.testing [RULES.toml] [--port 0] [key=value ...]`: a fault server in a process of its own.

Prints its address on a line, and runs until it is told to end (SIGTERM, SIGINT): status 0. Asked wrongly: 2.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from podium.config import build, load
from podium.errors import UsageError
from podium.testing.settings import ServerSettings


def main(words: Sequence[str]) -> int:
    """Run the server that `words` describe; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m podium.testing", description="An endpoint that fails as told."
    )
    parser.add_argument(
        "words", nargs="*", metavar="RULES.toml key=value", help="a file, and what to change in it"
    )
    parser.add_argument("--port", type=int, help="0: a free one")
    given = parser.parse_intermixed_args(words)
    overrides = [word for word in given.words if "=" in word]
    files = [Path(word) for word in given.words if "=" not in word]
    if given.port is not None:
        overrides.append(f"port={given.port}")
    try:
        if len(files) > 1:
            raise UsageError(f"One file of rules is enough, and {', '.join(map(str, files))} are more.")
        settings = (
            load(files[0], ServerSettings, overrides) if files else build({}, ServerSettings, overrides)
        )
        asyncio.run(_serve(settings))
    except UsageError as error:
        print(f"podium.testing: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"podium.testing: port {settings.port}: {error.strerror}; take another, or 0.", file=sys.stderr)
        return 2
    return 0


async def _serve(settings: ServerSettings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with settings.to_server() as server:
        print(server.url, flush=True)
        await stop.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
