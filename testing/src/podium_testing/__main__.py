"""`python -m podium_testing [RULES.toml] [--port 0] [key=value ...]`: a fault server in a process of its own.

It prints its address and runs until SIGTERM or SIGINT, then exits with status 0. Wrong usage is status 2.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from podium.config import Settings, build, load
from podium.errors import UsageError
from podium.types import ToolCall
from podium_testing.capable import capable
from podium_testing.completion import Answer, echo
from podium_testing.rule import Rule
from podium_testing.server import FaultServer


class AnswerSettings(Settings):
    """The answer of one model, with the fields of `Answer`."""

    text: str
    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    finish_reason: str = "stop"
    model: str | None = None
    reasoning: str = ""
    reasoning_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0)
    cache_write_tokens: int = Field(default=0, ge=0)
    tool_calls: tuple[ToolCall, ...] = ()
    logprobs: dict[str, Any] | None = None


def _from_text(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) else value


class ServerSettings(Settings):
    """The settings of a server in a file; `FaultServer` explains them."""

    answer: str | None = None
    """The text of every answer. Without it, the server repeats the beginning of the last message."""
    capable: bool = False
    """Whether the model does what a request asks (`podium_testing.capable`) where no answer is given."""
    models: dict[str, Annotated[AnswerSettings, BeforeValidator(_from_text)]] | None = None
    """The answer of each model, or only its text, by the model's name."""
    rule: tuple[Rule, ...] = ()
    keys: tuple[str, ...] | None = None
    rpm: int | None = Field(default=None, ge=1)
    tpm: int | None = Field(default=None, ge=1)
    minute: float = Field(default=60.0, gt=0)
    seed: str = "faults"
    tls: bool = False
    port: int = Field(default=0, ge=0, le=65535)

    def to_server(self) -> FaultServer:
        """A server with these settings, not started yet."""
        return FaultServer(
            (capable if self.capable else echo) if self.answer is None else self.answer,
            models=self.models and {name: Answer(**dict(answer)) for name, answer in self.models.items()},
            rules=self.rule,
            keys=self.keys,
            rpm=self.rpm,
            tpm=self.tpm,
            minute=self.minute,
            seed=self.seed,
            tls=self.tls,
            port=self.port,
        )


def main(words: Sequence[str]) -> int:
    """Run the server that `words` describe; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m podium_testing", description="An endpoint that fails as its rules say."
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="RULES.toml key=value",
        help="a file of settings, and settings that override it",
    )
    parser.add_argument("--port", type=int, help="the port; 0 takes a free one")
    arguments = parser.parse_intermixed_args(words)
    overrides = [word for word in arguments.words if "=" in word]
    files = [Path(word) for word in arguments.words if "=" not in word]
    if arguments.port is not None:
        overrides.append(f"port={arguments.port}")
    try:
        if len(files) > 1:
            raise UsageError(f"Give one file of rules, not {len(files)} ({', '.join(map(str, files))}).")
        settings = (
            load(files[0], ServerSettings, overrides) if files else build({}, ServerSettings, overrides)
        )
        asyncio.run(_serve(settings))
    except UsageError as error:
        print(f"podium_testing: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"podium_testing: port {settings.port}: {error.strerror}; take another, or 0.", file=sys.stderr)
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
