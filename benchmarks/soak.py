"""A soak: clients ask two replicas for minutes, while calls fail and processes are killed.

python benchmarks/soak.py [--minutes 30] [--clients 200] [--faults 0.2] [--kill-every 180] [--json FILE]
    [--page docs/results/soak.md]

Two `podium serve` share one PostgreSQL. Their worker is `podium_testing`, which fails on a share of the calls in all
its ways. In turn one replica, the database and the other replica are killed with SIGKILL and started again. A client
that gets no answer asks the other replica, as behind a load balancer, for up to a minute.

It reports the questions without an answer, the answers without a trace (a client has the answer, and the store does
not), the answers paid twice (the worker answered a question well more than once), and the memory of each replica. All
processes share this machine, so the number of questions a second is no figure of speed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from pathlib import Path
from random import Random
from typing import Any

import aiohttp

from faults import rules
from podium_testing import FaultServer

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from postgres_server import PROGRAMS, PostgresServer

POOL = """
[[worker]]
name = "ada"
kind = "openai"
model = "ada"
base_url = "{url}"
fallback = "bo"
price = {{ input = 1.0, output = 2.0 }}
limits = {{ timeout = 5.0, retries = 3, concurrency = 128, max_tokens = 100, probe_after = 1.0 }}

[[worker]]
name = "bo"
kind = "openai"
model = "bo"
base_url = "{url}"
price = {{ input = 1.0, output = 2.0 }}
limits = {{ timeout = 5.0, retries = 3, concurrency = 128, max_tokens = 100, probe_after = 1.0 }}
"""
PATIENCE_S = 60.0
"""How long a client asks for one answer."""
THINKS_S = 1.0
"""Between two questions of a client, on average."""
DOWN_S = 2.0
"""Between a kill and the start after it."""
MEMORY_EVERY_S = 5.0


@dataclass
class Replica:
    """One `podium serve`, always on the same port."""

    command: list[str]
    folder: Path
    name: str
    process: subprocess.Popen[bytes] | None = None
    memory: list[tuple[float, float]] = field(default_factory=list)
    """(seconds since the soak began, MiB resident)"""

    def start(self) -> None:
        """Start it; it accepts requests a moment later."""
        with (self.folder / f"{self.name}.log").open("ab") as log:
            own = {"PODIUM_STORE": str(self.folder / f"{self.name}.sqlite")}
            self.process = subprocess.Popen(
                self.command, stdout=log, stderr=log, cwd=self.folder, env=os.environ | own
            )

    def end(self, how: signal.Signals) -> int:
        """End it; its exit status."""
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(60)

    def measure(self, now: float) -> None:
        """Add its memory to the curve."""
        assert self.process is not None
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        except OSError:
            return
        kib = next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), None)
        if kib is not None:
            self.memory.append((round(now, 1), round(kib / 1024, 1)))


@dataclass
class Tally:
    """What the clients and the worker saw."""

    answered: dict[str, int] = field(default_factory=dict)
    """The question of each trace whose answer a client has."""
    unanswered: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """What came in place of an answer, before another try."""
    slowest_s: float = 0.0
    paid: Counter[int] = field(default_factory=Counter)
    """Good replies of the worker, by question."""
    calls: int = 0
    faults: int = 0


async def client(
    session: aiohttp.ClientSession, urls: Sequence[str], numbers: Any, until: float, tally: Tally
) -> None:
    """Ask one question after another until the time is over."""
    loop = asyncio.get_running_loop()
    for number in numbers:
        rng = Random(f"soak/{number}")
        await asyncio.sleep(rng.uniform(0, 2 * THINKS_S))
        began = loop.time()
        if began >= until:
            return
        place = number % len(urls)
        body = {
            "model": "podium",
            "messages": [{"role": "user", "content": f"Question {number}: what is 2 + 2?"}],
        }
        while loop.time() < began + PATIENCE_S:
            try:
                async with session.post(f"{urls[place]}/v1/chat/completions", json=body) as reply:
                    said = await reply.json()
                    if reply.status == 200:
                        tally.answered[said["id"].removeprefix("chatcmpl-")] = number
                        tally.slowest_s = max(tally.slowest_s, loop.time() - began)
                        break
                    tally.refused[f"{reply.status} {said['error'].get('code') or said['error']['type']}"] += 1
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                tally.refused[type(error).__name__] += 1
            place = (place + 1) % len(urls)
            await asyncio.sleep(0.5)
        else:
            tally.unanswered += 1


def count_calls(server: FaultServer, tally: Tally) -> None:
    """Count the worker's calls, and its good replies to each question."""
    for request in server.requests:
        tally.calls += 1
        tally.faults += request.fault is not None
        if request.fault is None and not request.went_away:
            tally.paid[int(request.text.split("Question ", 1)[1].split(":", 1)[0])] += 1


def kill_database(database: PostgresServer) -> None:
    """SIGKILL to its first process; the others notice, and end."""
    pid = int((database.folder / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    database.stop()


async def kill_in_turn(
    replicas: Sequence[Replica],
    database: PostgresServer,
    every_s: float,
    over: asyncio.Event,
    kills: list[str],
) -> None:
    """Kill a replica, the database, the other replica, and so on. In the end everything runs again."""
    for victim in cycle([replicas[0], None, replicas[1], None]):
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), every_s)
            return
        kills.append("the database" if victim is None else victim.name)
        if victim is not None:
            await asyncio.to_thread(victim.end, signal.SIGKILL)
            await asyncio.sleep(DOWN_S)
            victim.start()
            continue
        await asyncio.to_thread(kill_database, database)
        await asyncio.sleep(DOWN_S)
        for _ in range(20):  # Until the last of its processes has ended.
            try:
                await asyncio.to_thread(database.start)
                break
            except RuntimeError:
                await asyncio.to_thread(database.stop)
                await asyncio.sleep(0.5)


async def measure(replicas: Sequence[Replica], began: float) -> None:
    """The memory of the replicas, again and again."""
    while True:
        for replica in replicas:
            replica.measure(time.monotonic() - began)
        await asyncio.sleep(MEMORY_EVERY_S)


async def ready(url: str) -> None:
    """Wait until a replica answers."""
    async with asyncio.timeout(120), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"{url}/healthz") as reply:
                    if reply.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)


async def soak(options: argparse.Namespace, folder: Path, database: PostgresServer) -> dict[str, Any]:
    """The whole run; its report."""
    tally = Tally()
    kills: list[str] = []
    store = database.new_database()
    fault_rules = rules(options.faults) if options.faults else []
    with FaultServer("Answer: 4", rules=fault_rules).in_thread() as worker:
        (folder / "pool.toml").write_text(POOL.format(url=worker.url))
        ports = [18_431, 18_432] if options.port is None else [options.port, options.port + 1]
        command = [sys.executable, "-m", "podium", "serve", "--pool", str(folder / "pool.toml")]
        command += ["--planner", "single:ada", "--store", store, "--port"]
        replicas = [Replica([*command, str(port)], folder, f"replica {port}") for port in ports]
        urls = [f"http://127.0.0.1:{port}" for port in ports]
        for replica in replicas:
            replica.start()
        try:
            await asyncio.gather(*map(ready, urls))
            began, loop = time.monotonic(), asyncio.get_running_loop()
            until = loop.time() + 60 * options.minutes
            numbers = iter(range(10**9))
            connector = aiohttp.TCPConnector(limit=0)
            limit = aiohttp.ClientTimeout(total=PATIENCE_S)
            over = asyncio.Event()
            measuring = asyncio.create_task(measure(replicas, began))
            killing = asyncio.create_task(kill_in_turn(replicas, database, options.kill_every, over, kills))
            async with aiohttp.ClientSession(connector=connector, timeout=limit) as session:
                asking = [client(session, urls, numbers, until, tally) for _ in range(options.clients)]
                await asyncio.wait({asyncio.create_task(each) for each in asking})
            over.set()
            await killing
            await asyncio.gather(*map(ready, urls))
            measuring.cancel()
            statuses = [await asyncio.to_thread(replica.end, signal.SIGTERM) for replica in replicas]
            count_calls(worker, tally)
        finally:
            for replica in replicas:
                if replica.process is not None:
                    replica.process.kill()
    kept = set(database.psql("SELECT id FROM traces", store.rpartition("/")[2]).split())
    lost = [trace for trace in tally.answered if trace not in kept]
    answered = set(tally.answered.values())
    return {
        "minutes": options.minutes,
        "clients": options.clients,
        "faults": round(tally.faults / max(1, tally.calls), 3),
        "kills": dict(Counter(kills)),
        "questions_answered": len(answered),
        "questions_unanswered": tally.unanswered,
        "answers_without_a_trace": len(lost),
        "answers_paid_twice": sum(tally.paid[number] > 1 for number in answered),
        "calls": tally.calls,
        "slowest_s": round(tally.slowest_s, 1),
        "refused_before_another_try": dict(tally.refused.most_common()),
        "exit_statuses": statuses,
        "memory_mib": {replica.name: replica.memory for replica in replicas},
    }


def page(report: dict[str, Any]) -> str:
    """The report as a page of docs/results."""
    killed = ", ".join(f"{who} {times} times" for who, times in report["kills"].items())
    refused = ", ".join(f"{count:,} x {what}" for what, count in report["refused_before_another_try"].items())
    lines = [
        "# A soak",
        "",
        f"Made by `python benchmarks/soak.py --minutes {report['minutes']:g} --page docs/results/soak.md`. "
        f"{report['clients']} clients ask two replicas of `podium serve` for {report['minutes']:g} minutes. The "
        f"replicas share one PostgreSQL. The worker is a local endpoint that fails on {report['faults']:.0%} of the "
        f"calls. Processes were killed with SIGKILL and started again: {killed}. All of this shares one machine, so "
        "the number of questions is no figure of speed.",
        "",
        "| what | how many |",
        "|---|---|",
        f"| questions answered | {report['questions_answered']:,} |",
        f"| questions without an answer | {report['questions_unanswered']:,} |",
        f"| answers that a client has and the store has not | {report['answers_without_a_trace']:,} |",
        f"| answers for which the worker was paid twice | {report['answers_paid_twice']:,} |",
        f"| calls of the worker | {report['calls']:,} |",
        f"| longest wait for an answer | {report['slowest_s']:g} s |",
        f"| what clients got before they asked again | {refused} |",
        "",
        "A replica writes traces a moment after it answers, so a killed one loses those of that moment. Its clients "
        "ask again, and the worker may be paid twice.",
        "",
        "## Memory of the replicas",
        "",
        "The largest resident memory (MiB) in each part of the run:",
        "",
    ]
    parts = 10
    ends = [round(report["minutes"] * (part + 1) / parts, 1) for part in range(parts)]
    lines += [
        "| replica | " + " | ".join(f"to {end:g} min" for end in ends) + " |",
        "|---" * (parts + 1) + "|",
    ]
    for name, curve in report["memory_mib"].items():
        most = [
            max(mib for at, mib in curve if start < at / 60 + 1e-9 <= end)
            for start, end in pairwise([-1, *ends])
        ]
        lines.append(f"| {name} | " + " | ".join(f"{mib:.0f}" for mib in most) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run it, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--faults", type=float, default=0.2, help="share of the worker's calls that fail")
    parser.add_argument("--kill-every", type=float, default=180.0, help="seconds")
    parser.add_argument("--port", type=int, help="of the first replica; the second has the next one")
    parser.add_argument("--json", type=Path, help="where the report is written")
    parser.add_argument("--page", type=Path, help="where the report is written as a page")
    options = parser.parse_args()
    if PROGRAMS is None:
        sys.exit("The soak needs PostgreSQL: install it (Debian: apt install postgresql).")
    database = PostgresServer()
    try:
        database.start()
        with tempfile.TemporaryDirectory() as folder:
            report = asyncio.run(soak(options, Path(folder), database))
            logs = {log.stem: log.read_text() for log in Path(folder).glob("*.log")}
    finally:
        database.close()
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.page is not None:
        options.page.write_text(page(report))
    for key, value in report.items():
        if key != "memory_mib":
            print(f"{key:28} {value}")
    for name, curve in report["memory_mib"].items():
        shown = curve[:: max(1, len(curve) // 12)]
        print(f"{name:28} " + "  ".join(f"{at / 60:.1f} min: {mib:.0f}" for at, mib in shown) + " MiB")
    for name, log in logs.items():
        _, bug, rest = log.partition("Exception in ASGI application")
        if bug:
            print(f"--- the first bug in the log of {name}\n{rest[:8000]}")


if __name__ == "__main__":
    main()
