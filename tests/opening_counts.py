"""Runs commands of podium, each in a fork of one process that has loaded it, and prints as JSON what each opened: how
often each file was read and each table validated, and how many of Podium's frames lie on the way to the first call of a
policy and of a worker."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from importlib import import_module
from types import FrameType
from typing import Any

from podium.cli import run
from podium.cli.app import VERBS
from podium.config.source import SettingsSource

SOURCE = f"{os.sep}src{os.sep}podium{os.sep}"
REACHED = {
    "WorkerPolicy.complete": "policy",
    "LocalPolicy.complete": "policy",
    "ScriptedWorker.answer": "worker",
}


def main(tokens: list[str], *, framed: bool) -> int:
    """Run a command. `framed`: count frames too, for which each call costs several times as much."""
    reads: Counter[str] = Counter()
    validations = 0
    frames: dict[str, list[str]] = {}
    began: dict[FrameType, list[str]] = {}
    """By the frame of a task's coroutine: the frames that started the task."""

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        # `open` raises the event; its opener raises it again, without a mode.
        if event == "open" and isinstance(arguments[0], str) and arguments[1] is not None:
            reads[os.path.basename(arguments[0])] += arguments[0].endswith((".toml", ".json", ".txt"))

    def stack(frame: FrameType | None) -> list[str]:
        names: list[str] = []
        while frame is not None:
            if SOURCE in frame.f_code.co_filename:
                names.append(frame.f_code.co_qualname)
            if frame in began:
                return names + began[frame]
            frame = frame.f_back
        return names

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code.co_name == "create_task" and "base_events" in code.co_filename:
            coroutine = getattr(frame.f_locals.get("coro"), "cr_frame", None)
            if coroutine is not None:
                began[coroutine] = stack(frame.f_back)
        elif SOURCE in code.co_filename and (reached := REACHED.get(code.co_qualname)):
            frames.setdefault(reached, stack(frame))

    def into(source: SettingsSource, *arguments: Any) -> Any:
        nonlocal validations
        validations += 1
        return validate(source, *arguments)

    validate, SettingsSource.into = SettingsSource.into, into  # type: ignore[method-assign,assignment]
    sys.addaudithook(audit)
    if framed:
        sys.setprofile(profile)
    status = run(tokens)
    sys.setprofile(None)
    counted = {
        "reads": {name: count for name, count in reads.items() if count},
        "validations": validations,
        "frames": frames,
    }
    print(json.dumps(counted), file=sys.stderr)
    return status


if __name__ == "__main__":
    commands, framed = json.loads(sys.argv[1])
    for verb in VERBS:
        if any(tokens[0] == verb.words for tokens in commands):
            import_module(verb.path.partition(":")[0])
    for tokens in commands:
        if (child := os.fork()) == 0:
            sys.exit(main(tokens, framed=tokens in framed))
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(f"failed: {tokens}")
