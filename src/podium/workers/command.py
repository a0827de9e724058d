"""`command`: a program of the user's that reads one JSON object on its standard input and writes its answer.

The command is a list and no shell runs it. Each call is a new process. When that process ends or the call is cancelled,
all processes that it started are killed. This is not a sandbox: a process that opens its own session escapes, and
Podium does not wait for it.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

from podium.errors import ConfigError, WorkerError, WorkerErrorKind
from podium.trace import Reply
from podium.workers.base import Request, Worker
from podium.workers.program_forms import read_form, request_form, text_reply
from podium.workers.spec import CommandSpec

_MAX_OUTPUT_BYTES = 16 * 2**20
"""The most bytes of an answer."""
_KEPT_ERROR_BYTES = 2**13
"""Bytes at the end of the standard error that are kept."""
_MAX_DEATH_S = 0.2
"""The longest wait until a killed process is gone and its pipes are read to their end."""
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
        folder: the program's working directory.
        named: the variables of `spec.env` with their values.
        scrub: removes secrets from the program's output.

    Raises:
        ConfigError: there is no such program, or it may not be run.
    """

    def __init__(
        self, spec: CommandSpec, folder: Path, named: dict[str, str], scrub: Callable[[str], str]
    ) -> None:
        self.profile, self.limits, self.fallback = spec.to_profile(), spec.limits, spec.fallback
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
                "files": {
                    part: _digest(folder / part) for part in self._command if (folder / part).is_file()
                },
                "env": sorted(named),
                "output": spec.output,
                "max_tokens": spec.limits.max_tokens,
            }

    async def answer(self, request: Request) -> Reply:
        """Run the program once.

        Raises:
            WorkerError: of kind "status" if the program failed, where a retry is useful only after exit status 75;
                "protocol" if its output is no answer; "connection" if it could not be started.
        """
        input_ = json.dumps(request_form(request, self.limits)).encode()
        program, status = await self._run(input_ + b"\n")
        if len(program.output) > _MAX_OUTPUT_BYTES:
            raise self._error(f"wrote more than {_MAX_OUTPUT_BYTES // 2**20} MiB", "protocol")
        if status:
            what = f"{_exit_text(status)}: {self._last_error_lines(program.errors)}"
            raise self._error(what, "status", retryable=status == _EX_TEMPFAIL)
        try:
            text = program.output.decode()
        except UnicodeDecodeError:
            raise self._error("wrote an answer that is not UTF-8", "protocol") from None
        try:
            if self._output == "json":
                return read_form(self._scrub(text).encode(), request.messages)
            return text_reply(self._scrub(text).strip("\r\n"), request.messages)
        except ValueError as error:
            form = ' of the form {"text": "..."}' if self._output == "json" else ""
            raise self._error(f"wrote no answer{form} ({error})", "protocol") from None

    async def _run(self, input_: bytes) -> tuple[_Program, int]:
        """Write `input_`, and wait until the program ends. Returns what it wrote, and its exit status, or the negative
        number of the signal that killed it."""
        transport, program = await self._start()
        try:
            # No check by class: the transports of uvloop do not derive from those of asyncio.
            stdin = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))
            stdin.write(input_)
            stdin.write_eof()
            await program.ended.wait()
        finally:
            await program.end(transport)
        status = transport.get_returncode()
        assert status is not None
        return program, status

    async def _start(self) -> tuple[asyncio.SubprocessTransport, _Program]:
        """Start the program. A call that is cancelled meanwhile waits for the start, to kill all: asyncio would kill
        the program alone, and wait until its children end too."""
        starting = asyncio.ensure_future(
            asyncio.get_running_loop().subprocess_exec(
                _Program, *self._command, cwd=self._folder, env=self._environment, start_new_session=True
            )
        )
        try:
            return await asyncio.shield(starting)
        except OSError as error:
            raise self._error(
                f"cannot be started ({error.strerror})", "connection", retryable=error.errno in _RETRYABLE
            ) from None
        except asyncio.CancelledError:
            with suppress(OSError):
                transport, program = await starting
                await program.end(transport)
            raise

    def _last_error_lines(self, errors: bytes) -> str:
        """The last lines of the standard error. Secrets are removed before the text is cut, since half a key is a
        secret too."""
        text = self._scrub(errors.decode("utf-8", "replace"))
        lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
        shown = " / ".join(lines[-_SHOWN_LINES:]).rstrip(".")
        return (
            shown if len(shown) <= _SHOWN_CHARS else f"…{shown[-_SHOWN_CHARS:]}"
        ) or "(nothing on its standard error)"

    def _error(self, what: str, kind: WorkerErrorKind, *, retryable: bool = False) -> WorkerError:
        return WorkerError(f"The program {self._command[0]} {what}.", kind=kind, retryable=retryable)


class _Program(asyncio.SubprocessProtocol):
    """A running program, in a process group of its own, and what it has written."""

    _group: int

    def __init__(self) -> None:
        self.output = bytearray()
        self.errors = b""
        self.ended, self.closed = asyncio.Event(), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._group = cast(asyncio.SubprocessTransport, transport).get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.errors = (self.errors + data)[-_KEPT_ERROR_BYTES:]
        elif len(self.output) <= _MAX_OUTPUT_BYTES:
            self.output += data
            if len(self.output) > _MAX_OUTPUT_BYTES:
                self.kill()

    def process_exited(self) -> None:
        self.ended.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()

    async def end(self, transport: asyncio.SubprocessTransport) -> None:
        """Kill what still runs, and wait for it and for what it wrote."""
        self.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(_MAX_DEATH_S):
                await self.closed.wait()
        transport.close()

    def kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, signal.SIGKILL)


def find_program(name: str, folder: Path) -> str:
    """The absolute path of a program. A name with a slash is relative to `folder`. Any other name is searched in PATH.

    Raises:
        ConfigError: there is no such program, or it may not be run.
    """
    here, local = folder / name, os.sep in name
    program = shutil.which(here.absolute() if local else name)
    if program is not None:
        return os.path.abspath(program)
    if not local:
        way_out = f"; for the one in {folder} write ./{name}" if here.is_file() else ""
        fault = f"there is no program {name!r} in PATH; install it, or give its path{way_out}."
    elif here.is_file():
        fault = f"{here} may not be run; make it executable, or name its interpreter first."
    else:
        fault = f"there is no program {here}; check the path, which is relative to `folder`."
    raise ConfigError(fault, ("command",))


def kept_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The variables of Podium's environment that every program gets: the language and the usual folders."""
    return {key: value for key, value in ours.items() if key in _PASSED_ON or key.startswith("LC_")}


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
