"""Runs all attacks on one isolation, many at once. As a script: on the strongest one here, with outcomes as JSON.

Run as a script by root it becomes an ordinary user first.
"""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from attacks import ATTACKS, Attack
from bombs import BOMBS
from podium.sandbox import interpreter
from podium.sandbox.inside.run_limits import MIB, RunLimits
from podium.sandbox.isolation import Bubblewrap, Isolation, PlainProcess
from podium.sandbox.sandbox_pool import SandboxPool

TABLE = (*ATTACKS, *BOMBS)
ANONYMOUS = 65534
AT_ONCE = 8
LONG = RunLimits(
    cpu_s=60, wall_s=120, memory_bytes=256 * MIB, output_bytes=MIB, file_bytes=16 * MIB, processes=16
)
SHORT = LONG._replace(cpu_s=0.2, wall_s=0.8)


@dataclass(frozen=True)
class Outcome:
    reason: str
    escaped: str
    """What it printed, if that tells of an escape."""
    lives: bool
    """Whether the sandbox answered afterwards."""


@dataclass(frozen=True)
class AttackRun:
    user: int
    outcomes: Mapping[str, Outcome]
    visitors: int
    """Connections that the attacks made to listeners outside."""
    written: list[str]
    """Files and folders that were not there before."""
    left: list[str]
    """Processes that survived."""


def isolations_here() -> list[Isolation]:
    """Every isolation that works here, the strongest first."""
    tool = shutil.which("bwrap")
    return [Bubblewrap(tool), PlainProcess()] if tool is not None and strong() else [PlainProcess()]


@cache
def strong() -> bool:
    """Whether bubblewrap works here."""

    async def tried() -> bool:
        async with aclosing(SandboxPool()) as pool:
            return not (await pool.isolation()).weak

    return asyncio.run(tried())


async def run_attacks(isolation: Isolation) -> AttackRun:
    """Run every attack that this isolation claims to stop."""
    attacks = [attack for attack in TABLE if attack.weak or not isolation.weak]
    os.environ["OUR_SECRET"] = "ESCAPED"
    with ExitStack() as stack:
        outside = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (outside / "secret").write_text("the answer")
        listeners, places = _listen(stack, outside)
        before = set(os.listdir(outside))
        temporary = stack.enter_context(_temporary_folder())
        async with aclosing(SandboxPool(isolation, slots=AT_ONCE)) as pool:
            outcomes = await asyncio.gather(*(_attempt(pool, attack, places) for attack in attacks))
        return AttackRun(
            os.getuid(),
            {attack.name: outcome for attack, outcome in zip(attacks, outcomes, strict=True)},
            sum(map(_visited, listeners)),
            sorted({*os.listdir(outside), *os.listdir(temporary)} - before),
            left(),
        )


async def _attempt(pool: SandboxPool, attack: Attack, places: Mapping[str, object]) -> Outcome:
    async with pool.acquire(allow_weak=True) as (sandbox,):
        ended = await sandbox.run(
            attack.source.format(**places), "", SHORT if "time" in attack.ends else LONG
        )
        again = await sandbox.run("print('alive')", "", LONG)
    printed = ended.output.decode(errors="replace")
    return Outcome(ended.reason, printed if "ESCAPED" in printed else "", again.output == b"alive\n")


@contextmanager
def _temporary_folder() -> Iterator[str]:
    """A folder of our own for what is temporary, so that what is left is seen."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        tempfile.tempdir = folder
        try:
            yield folder
        finally:
            tempfile.tempdir = before


def _listen(stack: ExitStack, outside: Path) -> tuple[list[socket.socket], dict[str, object]]:
    path = str(outside / "listens")
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    named, unnamed = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
    for listener, place in ((named, path), (unnamed, f"\0{path}")):
        listener.bind(place)
        listener.listen()
    places = {
        "outside": str(outside),
        "secret": str(outside / "secret"),
        "home": str(Path.home()),
        "kept": tuple(map(str, interpreter.folders())),
        "port": server.getsockname()[1],
        "path": path,
    }
    return [server, named, unnamed], places


def _visited(listener: socket.socket) -> bool:
    listener.setblocking(False)
    try:
        listener.accept()
    except BlockingIOError:
        return False
    return True


def left(seconds: int = 86399) -> list[str]:
    """Processes that an attack has left behind, by the odd time that they sleep."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(seconds).encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


def as_ordinary_user() -> list[str]:
    """The command that runs this script as an ordinary user, where root may see to it that it can be read."""
    command = [shutil.which("bwrap") or "bwrap", "--dev-bind", "/", "/"]
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)  # $HOME may be another, and this one closed to others
    seen = [*interpreter.folders(), interpreter.ROOT, Path(__file__).resolve().parent]
    hidden = [path for path in seen if path.is_relative_to(home)]
    if hidden:
        command += ["--perms", "0755", "--tmpfs", str(home)]
    for path in hidden:
        for parent in list(reversed(path.parents))[1:]:
            command += ["--perms", "0755", "--dir", str(parent)] if parent.is_relative_to(home) else []
        command += ["--ro-bind", str(path), str(path)]
    return [*command, sys.executable, "-B", __file__]


def may_be_ordinary() -> bool:
    """Whether this script can be run so."""
    if os.getuid() != 0 or not strong():
        return False
    return subprocess.run([*as_ordinary_user(), "look"], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(ANONYMOUS, ANONYMOUS, ANONYMOUS)
        os.setresuid(ANONYMOUS, ANONYMOUS, ANONYMOUS)
        os.environ["HOME"] = "/nowhere"
    if sys.argv[1:] == ["look"]:
        subprocess.run([sys.executable, "-c", ""], check=True)
    else:
        print(json.dumps(asdict(asyncio.run(run_attacks(isolations_here()[0])))))
