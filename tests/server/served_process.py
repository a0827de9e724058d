"""`podium serve` as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loaded_programs import loaded_podium

WAIT_S = 60


@dataclass
class Served:
    """A server that runs."""

    process: subprocess.Popen[str]
    url: str
    line: str
    """What it printed."""

    def tell(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def ended(self) -> tuple[int, str]:
        """Wait for its end: exit status, and what it said on stderr."""
        _, err = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, err

    def end(self) -> tuple[int, str]:
        """End it as an operator does."""
        self.tell(signal.SIGTERM)
        return self.ended()


def command(*tokens: str) -> list[str]:
    """`podium serve`: a process that is its own where it starts others, for they load what it has loaded."""
    alone = any("processes" in token for token in tokens)
    return [*([sys.executable, "-m", "podium"] if alone else [loaded_podium()]), "serve", *tokens]


@contextmanager
def served(folder: Path, *tokens: str, **variables: str) -> Iterator[Served]:
    """A server with its store and its state in `folder`, on a free port; killed in the end if it still runs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    environment |= {"PODIUM_STORE": str(folder / "traces.sqlite")} | variables
    with subprocess.Popen(
        command("--port", "0", *tokens),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://[^ ]+", line)
            assert found, (line, process.communicate(timeout=WAIT_S)[1])
            yield Served(process, found[0], line)
        finally:
            process.kill()


def pool_file(folder: Path, url: str) -> Path:
    """A pool of one worker at `url`, called ada, with a fixed price."""
    path = folder / "pool.toml"
    path.write_text(
        f'[[worker]]\nname = "ada"\nkind = "openai"\nmodel = "m-1"\nbase_url = "{url}"\n'
        "price = { input = 1.0, output = 2.0 }\nlimits = { concurrency = 64, retries = 0, timeout = 90 }\n"
    )
    return path


def processes_of(server: Served) -> set[int]:
    """The ids of the processes that answer the requests of `podium serve --processes N`."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes()
        except OSError:  # It has ended meanwhile.
            continue
        if parent == server.process.pid and b"spawn_main" in command:
            found.add(int(folder.name))
    return found
