"""What others notice of a long or hostile body: how late they are answered, and what memory it takes.

python benchmarks/bodies.py [--of NAME] [--times 5] [--wait 40]

The bodies are those of tests/server/hostile_bodies.py. Each is sent by a process of its own to a server, while this one
asks `/healthz` every 2 ms over one connection. The longest of its waits is told, of the time in which the body did the
least harm: whatever else runs on this machine only adds to it. It stands beside the longest wait of a time in which
nothing was sent. Memory is the server's peak above what it had before.
"""

from __future__ import annotations

import argparse
import http.client
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "server"))

from hostile_bodies import HOSTILE, Hostile
from served_process import Served, served

QUIET_S = 0.3
"""Before each time that a body is sent."""


def main() -> None:
    """Print a line for each body."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--of", default="", help="only bodies whose name has this in it")
    parser.add_argument("--times", type=int, default=5, help="that each is sent")
    parser.add_argument("--wait", type=float, default=40.0, help="seconds that one may take")
    given = parser.parse_args()
    print(f"{'body':40} {'MB':>5} {'answered ms':>11} {'others wait ms':>14} {'else ms':>7} {'more MiB':>8}")
    for hostile in HOSTILE:
        if given.of in hostile.name:
            # A server each: what one left behind is not the next one's.
            with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as server:
                measure(server, hostile, given.times, given.wait)


def measure(server: Served, hostile: Hostile, times: int, most_s: float) -> None:
    """Send it so many times, and print what was noticed."""
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
    print(
        f"{hostile.name:40} {size / 1e6:5.1f} {1000 * min(took):11.0f} {1000 * min(noticed):14.1f} "
        f"{1000 * min(quiet):7.1f} {more:8.0f}",
        flush=True,
    )


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
