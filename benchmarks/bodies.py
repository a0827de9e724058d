"""What others notice of a long or hostile body: how late they are answered, and what memory it takes.

python benchmarks/bodies.py [--of NAME] [--times 5] [--wait 40] [--json FILE] [--table FILE]

The bodies are those of tests/server/hostile_bodies.py. Each is sent by a process of its own to a server, while this one
asks `/healthz` every 2 ms over one connection. The longest of its waits is told, of the time in which the body did the
least harm: whatever else runs on this machine only adds to it. It stands beside the longest wait of a time in which
nothing was sent. Memory is the server's peak above what it had before.

`--json` writes the waits and the memory as `make bench` reads them. `--table` writes the table into a document, in
place of the one between `<!-- bodies -->` and `<!-- /bodies -->`.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "server"))

from hostile_bodies import HOSTILE, Hostile
from rows import Row, write
from served_process import Served, served

QUIET_S = 0.3
"""Before each time that a body is sent."""
WAIT_GOAL_MS = 50.0
MEMORY_GOAL_MIB = 400.0
"""What tests/server/test_request_bodies.py asserts."""


@dataclass(frozen=True)
class Noticed:
    """What one body did."""

    name: str
    megabytes: float
    answered_ms: float
    wait_ms: float
    """The longest that another request waited, of the time in which the body did the least harm."""
    quiet_ms: float
    """The same while nothing was sent."""
    more_mib: float

    def rows(self) -> list[Row]:
        """As `make bench` reads them."""
        wait, memory = f"{self.name}: others wait", f"{self.name}: memory"
        return [
            Row(
                wait, self.wait_ms, "ms", "nothing sent", self.quiet_ms, WAIT_GOAL_MS, higher_is_better=False
            ),
            Row(memory, self.more_mib, "MiB", goal=MEMORY_GOAL_MIB, higher_is_better=False),
        ]


def main() -> None:
    """Print a line for each body."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--of", default="", help="only bodies whose name has this in it")
    parser.add_argument("--times", type=int, default=5, help="that each is sent")
    parser.add_argument("--wait", type=float, default=40.0, help="seconds that one may take")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--table", type=Path, help="write the table into this document")
    given = parser.parse_args()
    load, found = os.getloadavg()[0], []
    print(f"{'body':40} {'MB':>5} {'answered ms':>11} {'others wait ms':>14} {'else ms':>7} {'more MiB':>8}")
    for hostile in HOSTILE:
        if given.of in hostile.name:
            # A server each: what one left behind is not the next one's.
            with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as server:
                found.append(measure(server, hostile, given.times, given.wait))
    write([row for noticed in found for row in noticed.rows()], given.json)
    if given.table is not None:
        text = given.table.read_text(encoding="utf-8")
        between = re.compile("(?<=<!-- bodies -->\n).*(?=<!-- /bodies -->)", re.DOTALL)
        given.table.write_text(between.sub(lambda _: table(found, given.times, load), text), encoding="utf-8")


def table(found: list[Noticed], times: int, load: float) -> str:
    """In Markdown, with when and how it was measured."""
    lines = [
        f"\nMeasured on {datetime.now(UTC):%d %B %Y}: {os.cpu_count()} processors, which other work shared (load "
        f"{load:.1f} before the run); each body was sent {times} times.",
        "",
        "| body | MB | refused or answered after | others wait | while nothing is sent | memory |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.name} | {one.megabytes:.1f} | {one.answered_ms:.0f} ms | {one.wait_ms:.1f} ms | {one.quiet_ms:.1f} ms "
        f"| {one.more_mib:.0f} MiB |"
        for one in found
    ]
    return "\n".join(lines) + "\n\n"


def measure(server: Served, hostile: Hostile, times: int, most_s: float) -> Noticed:
    """Send it so many times; print and return what was noticed."""
    host = server.url.removeprefix("http://")
    spawn = get_context("spawn")
    turns, told = spawn.Pipe()
    sender = spawn.Process(target=send, args=(host, hostile.name, told))
    sender.start()
    size = turns.recv()
    bystander = http.client.HTTPConnection(host, timeout=2 * most_s)
    quiet, noticed, took = [], [], []
    before = memory(server, "VmRSS")
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")
    for _ in range(times):
        quiet.append(longest_wait(bystander, lambda since: time.monotonic() - since > QUIET_S))
        began = time.monotonic()
        turns.send(None)
        noticed.append(
            longest_wait(bystander, lambda since: turns.poll() or time.monotonic() - since > most_s)
        )
        took.append(time.monotonic() - began)
        if took[-1] > most_s:
            break
        turns.recv()
    more = (memory(server, "VmHWM") - before) / 1024
    sender.kill()
    answered_ms, wait_ms, quiet_ms = (1000 * min(times_s) for times_s in (took, noticed, quiet))
    result = Noticed(hostile.name, size / 1e6, answered_ms, wait_ms, quiet_ms, more)
    print(
        f"{result.name:40} {result.megabytes:5.1f} {result.answered_ms:11.0f} {result.wait_ms:14.1f} "
        f"{result.quiet_ms:7.1f} {result.more_mib:8.0f}",
        flush=True,
    )
    return result


def longest_wait(connection: http.client.HTTPConnection, over: Callable[[float], bool]) -> float:
    """Seconds that one question waited at most, until it is over."""
    longest, since = 0.0, time.monotonic()
    while not over(since):
        asked = time.monotonic()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        longest = max(longest, time.monotonic() - asked)
        time.sleep(0.002)
    return longest


def send(host: str, name: str, told: Connection) -> None:
    """In a process of its own: send the body of that name whenever it is told to."""
    hostile = next(hostile for hostile in HOSTILE if hostile.name == name)
    body = hostile.body()
    told.send(len(body))
    while True:
        told.recv()
        connection = http.client.HTTPConnection(host, timeout=600)
        try:
            connection.request("POST", hostile.path, body, {"Content-Type": "application/json"})
            connection.getresponse().read()
        except OSError:
            pass
        connection.close()
        told.send(None)


def memory(server: Served, name: str) -> int:
    """KiB, as the system has it."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


if __name__ == "__main__":
    main()
