"""`command`: a program of the user's that reads one JSON object on its standard input and writes its answer.

The command is a list and no shell runs it. Each call is a new process. If the call is cancelled, that process and all
processes that it started are killed. This is not a sandbox.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from podium.errors import ConfigError, WorkerError, WorkerErrorKind
from podium.trace import Reply
from podium.workers.base import Request, Worker
from podium.workers.program import CompletedProgram, Program
from podium.workers.reply_form import read_form, text_reply
from podium.workers.spec import CommandSpec

_MAX_OUTPUT_BYTES = 16 * 2**20
"""The most bytes of an answer."""
_SHOWN_CHARS = 300
"""Characters of a program's standard error that a message repeats."""
_SHOWN_LINES = 3
"""Last lines of the standard error that a message repeats."""
_EX_TEMPFAIL = 75
"""EX_TEMPFAIL of sysexits.h."""
_RETRYABLE = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY}
"""Errors at the start of a program that may not happen again."""
_PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR")


class CommandWorker(Worker):
    """A program that is run for each call.

    Args:
        spec: the worker's settings. The program gets `max_tokens`, and may ignore it.
        folder: the program's working directory.
        named: the variables of `spec.env` with their values.
        scrub: removes secrets from the program's output.

    Raises:
        ConfigError: there is no such program, or it may not be run.
    """

    def __init__(
        self, spec: CommandSpec, folder: Path, named: dict[str, str], scrub: Callable[[str], str]
    ) -> None:
        self.profile = spec.to_profile()
        self.limits = spec.limits
        self.fallback = spec.fallback
        self._command = (find_program(spec.command[0], folder), *spec.command[1:])
        self._folder = folder
        self._environment = kept_environment(os.environ) | named
        self._output = spec.output
        self._scrub = scrub
        if spec.cache:
            self.identity = {
                "kind": "command",
                "command": list(spec.command),
                "folder": str(folder),
                "files": _digests(self._command, folder),
                "env": sorted(named),
                "output": spec.output,
                "max_tokens": spec.limits.max_tokens,
            }

    def __repr__(self) -> str:
        return f"CommandWorker({self.profile.name!r}, {self._command[0]!r})"

    async def answer(self, request: Request) -> Reply:
        """Run the program once.

        Raises:
            WorkerError: of kind "status" if the program failed, where a retry is useful only after exit status 75;
                "protocol" if its output is no answer; "connection" if it could not be started.
        """
        input_ = {
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "seed": request.seed,
            "repeat": request.earlier_calls,
            "sample": request.sample,
            "max_tokens": min(self.limits.max_tokens, request.options.max_tokens or self.limits.max_tokens),
        }
        try:
            program = Program(self._command, self._folder, self._environment)
        except OSError as error:
            raise self._error(
                f"cannot be started ({error.strerror})", "connection", retryable=error.errno in _RETRYABLE
            ) from None
        ended = await program.run(json.dumps(input_).encode() + b"\n", _MAX_OUTPUT_BYTES)
        if ended.cut:
            raise self._error(f"wrote more than {_MAX_OUTPUT_BYTES // 2**20} MiB", "protocol")
        if ended.status:
            raise self._error(
                f"{_exit_text(ended.status)}: {self._last_error_lines(ended)}",
                "status",
                retryable=ended.status == _EX_TEMPFAIL,
            )
        return self._read(ended.output, request)

    def _read(self, output: bytes, request: Request) -> Reply:
        try:
            text = output.decode()
        except UnicodeDecodeError:
            raise self._error("wrote an answer that is not UTF-8", "protocol") from None
        try:
            if self._output == "json":
                return read_form(self._scrub(text).encode(), request.messages)
            return text_reply(self._scrub(text).strip("\r\n"), request.messages)
        except ValueError as error:
            form = ' of the form {"text": "..."}' if self._output == "json" else ""
            raise self._error(f"wrote no answer{form} ({error})", "protocol") from None

    def _last_error_lines(self, ended: CompletedProgram) -> str:
        """The last lines of the standard error. Secrets are removed before the text is cut, since half a key is a
        secret too."""
        text = self._scrub(ended.errors.decode("utf-8", "replace"))
        lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
        shown = " / ".join(lines[-_SHOWN_LINES:]).rstrip(".")
        return (
            shown if len(shown) <= _SHOWN_CHARS else f"…{shown[-_SHOWN_CHARS:]}"
        ) or "(nothing on its standard error)"

    def _error(self, what: str, kind: WorkerErrorKind, *, retryable: bool = False) -> WorkerError:
        return WorkerError(f"The program {self._command[0]} {what}.", kind=kind, retryable=retryable)


def find_program(name: str, folder: Path) -> str:
    """The absolute path of a program. A name with a slash is relative to `folder`. Any other name is searched in PATH.

    Raises:
        ConfigError: there is no such program, or it may not be run.
    """
    local = os.sep in name
    program = shutil.which(str(folder.absolute() / name) if local else name)
    if program is not None:
        return os.path.abspath(program)
    if local and (folder / name).is_file():
        raise ConfigError(
            f"{folder / name} may not be run; make it executable, or name its interpreter first."
        )
    if local:
        raise ConfigError(
            f"there is no program {folder / name}; check the path, which is relative to `folder`."
        )
    way_out = f"; for the one in {folder} write ./{name}" if (folder / name).is_file() else ""
    raise ConfigError(f"there is no program {name!r} in PATH; install it, or give its path{way_out}.")


def kept_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The variables of Podium's environment that every program gets: the language and the usual folders."""
    return {key: value for key, value in ours.items() if key in _PASSED_ON or key.startswith("LC_")}


def _digests(command: Sequence[str], folder: Path) -> dict[str, str]:
    """SHA-256 of each part of a command that is a file: the program, its script."""
    return {part: _digest(folder / part) for part in command if part and (folder / part).is_file()}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _exit_text(status: int) -> str:
    if status > 0:
        return f"ended with the status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by the signal {-status}"
