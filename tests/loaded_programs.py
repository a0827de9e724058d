"""`podium`, `inspect` and `python` without the time to load what they import: every command is a fork of one process.

That process loads the modules of a command when it is first asked for it, and later what earlier commands of the same
verb have loaded while they ran. The fork runs the function that the installed program runs, in a process of its own,
with the folder, the environment and the streams of the small program that a shell starts instead. It gets that
program's signals, and it is killed when that program is.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import socketserver
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from podium.cli.app import VERBS

PROGRAMS = {
    "podium": "podium.cli:main",
    "inspect": "inspect_ai._cli.main:main",
    "python": f"{__name__}:python",
}
"""As their packages' entry points have them."""
_LATE = {
    "podium train": (
        "podium.train.grpo_run",
        "podium.train.sft_run",
        "podium.train.shared_prefix.grpo",
        "sympy",
    ),
    "podium study": ("sklearn.cluster", "sklearn.feature_extraction.text", "sklearn.linear_model"),
    "podium replay": ("pyarrow.parquet", "pandas"),
    "inspect eval": (
        "podium.inspect_provider.provider",
        "IPython",
        "acp",
        "anthropic",
        "openai.types.responses",
    ),
}
"""What some commands load only when they run, and would load in all that run at once."""
_PROGRAM = """#!{python} -IS
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
order = json.dumps([{name!r}, sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(order).to_bytes(4, "big")], [0, 1, 2])
server.sendall(order)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, frame: server.sendall(bytes([number])))
status = server.recv(1)
sys.exit(status[0] if status else 1)
"""


@cache
def loaded_programs() -> Path:
    """The folder with the small programs, for the front of a PATH; what they load is loaded once for all tests of this
    process."""
    until_the_end = ExitStack()
    atexit.register(until_the_end.close)
    folder = Path(until_the_end.enter_context(TemporaryDirectory()))
    address, programs = folder / "socket", folder / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        text = _PROGRAM.format(python=sys.executable, address=str(address), name=name)
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    # Read when it is loaded, and no command of the tests asks the hub.
    offline = os.environ | {"HF_HUB_OFFLINE": "1"}
    server = until_the_end.enter_context(
        subprocess.Popen([sys.executable, __file__, str(address)], env=offline)
    )
    until_the_end.callback(server.kill)
    while not address.exists():
        assert server.poll() is None, "it did not start"
        time.sleep(0.02)
    return programs


def loaded_podium() -> str:
    """The program `podium` of these."""
    return str(loaded_programs() / "podium")


def loaded_python() -> str:
    """The program `python` of these, for a file, a module or a program after -c."""
    return str(loaded_programs() / "python")


class _Server(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    _tests = os.getppid()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Load what the command needs, then fork."""
        del client_address
        size, streams, _, _ = socket.recv_fds(request, 4, 3)
        order = json.loads(_read(request, int.from_bytes(size, "big")))
        late = Path(str(self.server_address)).with_name(f"late {order[0]} {' '.join(order[1][1:2])}")
        earlier = late.read_text().split() if late.exists() else []
        for module in [*_modules(*order[:2]), *earlier]:
            # The command says it itself, if it needs the module; others were in a folder of its own.
            with suppress(ImportError):
                if module not in sys.modules:
                    importlib.import_module(module)
        gc.freeze()  # A fork that searches for garbage would copy all that is loaded.
        super().process_request(request, (order, streams, late))
        for stream in streams:
            os.close(stream)

    def service_actions(self) -> None:
        """End with the tests."""
        super().service_actions()
        if os.getppid() != self._tests:
            sys.exit()


class _Command(socketserver.BaseRequestHandler):
    """In a fork of the server: watches the command, which is a fork of this one."""

    def handle(self) -> None:
        command = get_context("fork").Process(target=_run, args=self.client_address)
        command.start()
        while command.sentinel not in wait([command.sentinel, self.request]):
            signals = self.request.recv(16)
            for number in signals or [signal.SIGKILL]:
                os.kill(command.pid or 0, number)
            if not signals:
                break
        command.join()
        status = command.exitcode or 0
        self.request.sendall(bytes([status if status >= 0 else 128 - status]))


def _run(order: Any, streams: list[int], late: Path) -> None:
    name, words, folder, environment = order
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", 1)  # noqa: SIM115 - until its end
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = words
    module, _, function = PROGRAMS[name].partition(":")
    known = set(sys.modules)
    try:
        sys.exit(getattr(sys.modules[module], function)())
    finally:
        # But for what lies in the command's own folder, which another folder may have too.
        paths = {found: str(getattr(module, "__file__", "")) for found, module in sys.modules.items()}
        new = [found for found in paths if found not in known and not paths[found].startswith(folder)]
        # A command that has become another user may not write there.
        with suppress(PermissionError), late.open("a") as file:
            file.writelines(f"{found}\n" for found in new)


def python() -> None:
    """Run a file, a module after -m or a program after -c, as Python's own program does."""
    *option, program = sys.argv[1:3] if sys.argv[1] in ("-m", "-c") else sys.argv[1:2]
    sys.argv = sys.argv[1 + len(option) :]
    sys.path.insert(0, os.getcwd())  # Where the files of documents are, too.
    if option == ["-c"]:
        exec(program, {"__name__": "__main__"})
    elif option:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(program, run_name="__main__")


def _modules(name: str, words: list[str]) -> list[str]:
    command = " ".join([name, *words[1:], ""])
    verbs = {f"podium {verb.words}": (verb.path,) for verb in VERBS}
    entries = [PROGRAMS[name]]
    for start, modules in [*verbs.items(), *_LATE.items()]:
        if command.startswith(f"{start} "):
            entries += modules
    return [entry.partition(":")[0] for entry in entries]


def _read(request: socket.socket, size: int) -> bytes:
    with request.makefile("rb") as file:
        return file.read(size)


if __name__ == "__main__":
    with _Server(sys.argv[1], _Command) as server:
        server.serve_forever()
