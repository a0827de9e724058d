"""`podium record` in trouble: endpoints that are down, a disk that is full, another one that records the same."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from loaded_programs import loaded_python
from podium.recordings import Recording
from podium_testing import FaultServer
from refused_commands import one_sentence
from scripted_team import write_sums

Podium = Callable[..., Any]
SLOW = """
[[worker]]
name = "slow"
kind = "scripted"
replies = { "" = "Answer: 5" }
delay = 0.05
"""
QUICK = SLOW.replace("0.05", "0.0")
RECORD = (
    "record",
    "r.parquet",
    "--tasks",
    "sums.jsonl",
    "--split",
    "test",
    "--questions",
    "40",
    "--concurrency",
    "1",
)
LIMITED = (
    "import resource, sys; from podium.cli import run; limit = int(sys.argv[1]); "
    "resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)); sys.exit(run(sys.argv[2:]))"
)


@pytest.fixture(autouse=True)
def _questions() -> None:
    write_sums(Path("sums.jsonl"), 40)


def test_calls_that_failed_are_reported_with_the_reason_of_each_worker(podium: Podium) -> None:
    part = (
        '[[worker]]\nname = "{}"\nkind = "openai"\nmodel = "m"\nbase_url = "{}"\nlimits = {{ retries = 0 }}\n'
    )
    with FaultServer().in_thread() as server:
        gone = server.url
    Path("down.toml").write_text(
        part.format("gpt", gone) + '[[worker]]\nname = "ill"\nkind = "scripted"\n'
        'replies = { "" = { error = "status", message = "The server\\u001b[31m said 500." } }\n'
    )
    record = (*RECORD[:-3], "3", "--pool", "down.toml")
    failed = podium(*record)
    assert failed.status == 1
    first, gpt, ill = failed.out.splitlines()
    assert first == "6 calls failed; the same command makes them again."
    assert gpt.startswith(f"gpt: {gone}: the connection failed (")
    assert ill.startswith("ill: The server")
    assert ill.endswith("said 500.")
    assert "\x1b" not in ill
    told = podium(*record, "--json")
    assert (told.status, told.out) == (1, "")
    assert told.err.splitlines()[1:] == [gpt, ill]


def test_a_second_recorder_of_a_file_is_refused_before_anything_is_paid(podium: Podium) -> None:
    Path("slow.toml").write_text(SLOW)
    command = [sys.executable, "-m", "podium", *RECORD, "--pool", "slow.toml"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        deadline = time.monotonic() + 60
        while not Path("r.partial/config.json").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        first.send_signal(signal.SIGSTOP)  # However long the second takes to start, the first still records.
        try:
            second = one_sentence(podium(*RECORD, "--pool", "slow.toml"))
        finally:
            first.send_signal(signal.SIGCONT)
        assert "Another podium works in r.partial at the moment; wait for it, or give another name." in second
        out, _ = first.communicate(timeout=120)
    assert (first.returncode, out.partition(";")[0]) == (
        0,
        "40 responses to 40 questions are in r.parquet",
    )


def test_recording_stops_on_a_full_disk_and_resumes_later(podium: Podium) -> None:
    Path("long.toml").write_text(QUICK.replace("Answer: 5", "x" * 9000))
    record = (*RECORD, "--pool", "long.toml")
    stopped = subprocess.run(
        [loaded_python(), "-c", LIMITED, "200000", *record], capture_output=True, text=True, check=False
    )
    assert (stopped.returncode, stopped.stdout) == (1, "")
    assert stopped.stderr.startswith("podium: r.partial/results/slow-")
    assert stopped.stderr.count("\n") == 1
    assert {file.name for file in Path().glob("*r.*")} == {"r.partial"}
    done = podium(*record)
    assert done.status == 0
    assert pq.read_table("r.parquet").num_rows == 40
    assert len(Recording.open(Path("r.parquet")).questions) == 40
