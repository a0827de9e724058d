"""A secret that a provider repeats, or an address or the environment holds, is in nothing that a run leaves behind."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import subprocess
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from loaded_programs import loaded_podium
from podium_testing import EchoHeaders, ErrorInside, FaultServer, Poison, Redirect, Rule, Status
from scripted_team import write_sums

KEY = "sk-live-7d9f/2b+41c&88e0=a6"
HEADER = "hush hush, quite a secret header 5150"
PASSWORD = "pr0xy-p4ssw0rd-1234"
FORMS = {
    form
    for secret in (KEY, HEADER, PASSWORD)
    for form in (
        secret,
        quote(secret, safe=""),
        json.dumps(secret)[1:-1],
        base64.b64encode(secret.encode()).decode(),
    )
}
RULES = [
    Rule(fault=EchoHeaders(), times=2),
    Rule(fault=EchoHeaders(code=503), times=2),
    Rule(fault=Status(code=500, message=f"The key {KEY} was refused; {quote(KEY, safe='')} too."), times=2),
    Rule(fault=ErrorInside(message=f"token {KEY[:20]} {HEADER}"), times=2),
    Rule(fault=Redirect(to=f"https://user:{KEY}@example.com/v1?key={quote(KEY, safe='')}"), times=1),
    Rule(
        fault=Poison(text=f"Answer: your key is {KEY}, {base64.b64encode(KEY.encode()).decode()}, {HEADER}"),
        times=40,
    ),
]


Podium = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def podium(home: Path) -> Podium:
    """`podium("ask", ...)`: what a command prints. Each is a process with an environment of its own."""
    return lambda *words: _said(home, words)


def _said(home: Path, words: Sequence[str]) -> str:
    environment = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "THE_KEY": KEY,
        "THE_HEADER": HEADER,
        "https_proxy": f"http://somebody:{PASSWORD}@127.0.0.1:9",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    done = subprocess.run(
        [loaded_podium(), *words],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def contents(path: Path) -> Iterator[bytes]:
    """All that a file holds, also what it holds packed."""
    content = path.read_bytes()
    yield content
    if content.startswith(b"SQLite format 3\0"):
        with sqlite3.connect(path) as file:
            tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables:
                for row in file.execute(f"SELECT * FROM {table}"):
                    for value in row:
                        if isinstance(value, bytes):
                            yield value
                            with suppress(zlib.error):  # Digests are not packed.
                                yield zlib.decompress(value)


def test_no_file_and_no_line_holds_a_secret(home: Path, podium: Podium):
    with FaultServer("Answer: 4", rules=RULES).in_thread() as server:
        tables = "\n".join(
            f"""
[[worker]]
name = "{name}"
kind = "openai"
model = "m"
base_url = "{url}"
api_key_env = "THE_KEY"
headers_env = {{ X-Extra = "THE_HEADER" }}
price = {{ input = 1.0, output = 2.0 }}
limits = {{ retries = 1, timeout = 5, connect_timeout = 1, probe_after = 0.1 }}
stream = {stream}
"""
            for name, url, stream in (
                ("plain", server.url, "false"),
                ("streamed", server.url, "true"),
                ("proxied", "https://example.invalid/v1", "false"),
            )
        )
        (home / "pool.toml").write_text(f'{tables}\n[[worker]]\nname = "vote"\nkind = "vote"\n')
        write_sums(home / "sums.jsonl", splits=("validation", "test"))
        tasks = ("--tasks", "sums.jsonl", "--questions", "2")
        said = podium("pool", "check", "--pool", "pool.toml")
        for planner in ("single:plain", "single:streamed", "single:proxied", "self-consistency:plain:3"):
            ask = ["ask", "What is 2 + 2?", "--pool", "pool.toml", "--planner", planner]
            said += podium(*ask, "--cache", "answers.sqlite", "--full")
            said += podium(*ask, "--cache", "answers.sqlite", "--json")
        said += podium("record", "mine.parquet", "--pool", "pool.toml", *tasks)
        said += podium("traces", "export", "all.jsonl")
        said += podium("pool", "list", "--pool", "pool.toml")
        conductor = [
            f"conductor.base_url={server.url}",
            "conductor.model=m",
            "conductor.api_key_env=THE_KEY",
        ]
        said += podium(
            "eval",
            "--pool",
            "pool.toml",
            "--run",
            "run",
            *tasks,
            "eval.tuning=0",
            *conductor,
        )
        assert len(server.requests) > 20
    assert "***" in said
    left = {str(path.relative_to(home)): path for path in home.rglob("*") if path.is_file()}
    assert {"answers.sqlite", "all.jsonl", "run/comparison.json"} <= set(left), said
    for form in FORMS:
        assert form not in said
        for name, path in left.items():
            assert not any(form.encode() in content for content in contents(path)), (name, form)
