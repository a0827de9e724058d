"""`podium serve --processes N`: processes that share one address, its limits and budgets, and end together."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from background_team import pronounce_dead
from chat_model import ChatModel, Say, chat_model
from key_storage import KeyStorage
from openai_client import client
from podium.store import TraceStore
from running_server import until
from served_process import WAIT_S, Served, command, pool_file, processes_of, served

TWO = ("--processes", "2", "--planner", "single:ada")
INPUT_TOKENS = 100
CALL_USD = (INPUT_TOKENS * 1.0 + 5 * 2.0) / 1e6
"""Of each call, at the prices of `pool_file`."""


class Model:
    """Answers once `go_on` is set."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, body: dict[str, object]) -> Say:
        return Say("yes", wait=lambda number: self.go_on.is_set())


@pytest.fixture(scope="module")
def said() -> Model:
    return Model()


@pytest.fixture(scope="module")
def model(said: Model) -> Iterator[ChatModel]:
    with chat_model(said) as running:
        running.input_tokens = INPUT_TOKENS
        yield running


@pytest.fixture
def waiting(said: Model) -> Iterator[threading.Event]:
    """The model waits until the test sets this, or ends."""
    said.go_on.clear()
    yield said.go_on
    said.go_on.set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `pair` keeps its traces."""
    return tmp_path_factory.mktemp("pair")


@pytest.fixture(scope="module")
def pair(folder: Path, model: ChatModel) -> Iterator[Served]:
    """Two processes whose worker allows three calls at once. The last test that uses them ends them."""
    pool = pool_file(folder, model.url)
    pool.write_text(pool.read_text().replace("concurrency = 64", "concurrency = 3"))
    with served(folder, "--pool", str(pool), *TWO) as server:
        yield server


def ask(server: Served, text: str = "Is it so?", **headers: str) -> httpx.Response:
    """One question over a connection of its own, so that any process may take it."""
    body = {"model": "podium", "messages": [{"role": "user", "content": text}], "max_tokens": 5}
    return httpx.post(f"{server.url}/v1/chat/completions", json=body, headers=headers, timeout=WAIT_S)


def ask_many(server: Served, count: int, **headers: str) -> list[httpx.Response]:
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(lambda number: ask(server, f"Is it {number}?", **headers), range(count)))


def in_flight(server: Served) -> dict[str, float]:
    """The questions in flight, by process."""
    text = httpx.get(f"{server.url}/metrics", timeout=WAIT_S).text
    found = re.findall(r'podium_questions_in_flight\{process="(\d)"\} (\S+)', text)
    return {process: float(value) for process, value in found}


def in_background(server: Served, model: ChatModel) -> Any:
    """A new response in the background, whose call the model has."""
    before = len(model.bodies)
    made = client(server.url).responses.create(model="podium", input="Is it so?", background=True)
    until(lambda: len(model.bodies) > before)
    return made


@pytest.mark.nightly
def test_an_interrupt_while_the_processes_start_ends_them_quietly(tmp_path: Path, model: ChatModel) -> None:
    with subprocess.Popen(
        command("--port", "0", "--pool", str(pool_file(tmp_path, model.url)), *TWO),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PODIUM_STORE": str(tmp_path / "traces.sqlite")},
        start_new_session=True,
    ) as process:
        try:
            starting = Served(process, "", "")
            until(lambda: bool(processes_of(starting)))
            os.killpg(process.pid, signal.SIGINT)
            assert starting.ended() == (0, "")
        finally:
            process.kill()


@pytest.mark.nightly
def test_error_common_to_all_processes_is_printed_once(tmp_path: Path, model: ChatModel) -> None:
    (tmp_path / "traces.sqlite").write_text("This is no database. " * 100)
    given = ("--pool", str(pool_file(tmp_path, model.url)), "--planner", "single:ada", "--port", "0")
    ran = subprocess.run(
        [sys.executable, "-m", "podium", "serve", *given, "serve.processes=2"],
        capture_output=True,
        text=True,
        env=os.environ | {"PODIUM_STORE": str(tmp_path / "traces.sqlite")},
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("podium: ") == ran.stderr.count("\n") == 1
    assert "cannot be opened" in ran.stderr


def test_budgets_hold_for_all_processes_and_none_outlives_a_killed_server(
    tmp_path: Path, model: ChatModel
) -> None:
    storage = KeyStorage(str(tmp_path / "traces.sqlite"))
    hurried, rich = f"Bearer {storage.add('hurried', rpm=6)}", f"Bearer {storage.add('rich')}"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    before, statuses = len(model.bodies), list[int]()
    given = ("--pool", str(pool_file(tmp_path, model.url)), "--run-budget-usd", f"{20 * CALL_USD:.6f}")
    with served(tmp_path, *given, *TWO, TMPDIR=str(temporary)) as server:
        replies = ask_many(server, 16, authorization=hurried)
        assert sorted(reply.status_code for reply in replies) == [200] * 6 + [429] * 10
        while statuses[-4:] != [402] * 4:
            statuses += [reply.status_code for reply in ask_many(server, 4, authorization=rich)]
        assert set(statuses) == {200, 402}
        assert 6 + statuses.count(200) == len(model.bodies) - before <= 20

        processes = processes_of(server)
        assert len(list(temporary.glob("podium-*"))) == 1
        server.tell(signal.SIGKILL)
        until(lambda: not any(Path(f"/proc/{process}").exists() for process in processes))
    assert list(temporary.iterdir()) == []


def test_two_processes_never_make_more_calls_at_once_than_allowed(
    pair: Served, waiting: threading.Event, model: ChatModel
) -> None:
    assert "(2 processes; no key is needed" in pair.line
    before = len(model.bodies)
    with ThreadPoolExecutor(16) as threads:
        asked = [threads.submit(ask, pair, f"Is it {number}?") for number in range(16)]
        try:
            until(lambda: sum(in_flight(pair).values()) == 16)
            time.sleep(0.2)
            assert 0 < len(model.bodies) - before <= 3
        finally:
            waiting.set()
        assert {one.result().status_code for one in asked} == {200}


def test_other_processes_see_traces_and_plans_of_one_process_at_once(pair: Served) -> None:
    for number in range(12):
        id_ = ask(pair, f"Is it {number}?").headers["x-podium-trace-id"]
        assert httpx.get(f"{pair.url}/api/traces/{id_}").status_code == 200
    dry = {"question": "Is it so?", "dry_run": True}
    planned = httpx.post(f"{pair.url}/api/ask", json=dry).json()
    asked = {"plan_id": planned["podium"]["plan_id"]}
    assert httpx.post(f"{pair.url}/api/ask", json=asked).status_code == 202
    assert httpx.post(f"{pair.url}/api/ask", json=asked).status_code == 404
    until(lambda: sum(in_flight(pair).values()) == 0)


@pytest.mark.usefixtures("waiting")
def test_a_question_is_followed_and_cancelled_at_any_process(pair: Served) -> None:
    for _ in range(4):  # Each request has a connection of its own, which either process may take.
        id_ = httpx.post(f"{pair.url}/api/ask", json={"question": "Is it so?"}).json()["id"]
        url = f"{pair.url}/api/traces/{id_}/events"
        with httpx.stream("GET", url, timeout=WAIT_S) as events:
            kinds = (line[7:] for line in events.iter_lines() if line.startswith("event: "))
            assert [next(kinds) for _ in range(3)] == ["started", "plan", "step_started"]
            assert httpx.delete(f"{pair.url}/api/ask/{id_}").status_code == 204
            assert list(kinds)[-1] == "ended"
        assert httpx.get(f"{pair.url}/api/traces/{id_}").json()["status"] == "cancelled"


def test_a_response_in_the_background_is_followed_through_any_process(
    pair: Served, waiting: threading.Event, model: ChatModel
) -> None:
    made = in_background(pair, model)
    streams = [client(pair.url).responses.retrieve(made.id, stream=True) for _ in range(6)]
    waiting.set()
    events: list[Any] = [list(stream) for stream in streams]
    assert all(each == events[0] for each in events)
    assert events[0][-1].response.output_text == "yes"


@pytest.mark.usefixtures("waiting")
def test_a_killed_process_is_replaced_and_its_response_fails(
    pair: Served, model: ChatModel, folder: Path
) -> None:
    made = in_background(pair, model)
    before = len(model.bodies)
    for killed in processes_of(pair):
        os.kill(killed, signal.SIGKILL)
        until(lambda killed=killed: killed not in (now := processes_of(pair)) and len(now) == 2)
    until(lambda: in_flight(pair).keys() == {"0", "1"})
    assert client(pair.url).responses.retrieve(made.id).status == "in_progress"
    pronounce_dead(folder / "traces.sqlite")
    failed: Any = client(pair.url).responses.retrieve(made.id)
    assert (failed.status, failed.background, failed.created_at) == ("failed", True, made.created_at)
    assert len(model.bodies) == before


def test_a_signal_ends_all_processes_once_they_have_answered(
    pair: Served, waiting: threading.Event, folder: Path
) -> None:
    processes = processes_of(pair)
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(ask, pair) for _ in range(8)]
        until(lambda: sum(in_flight(pair).values()) == 8)
        pair.tell(signal.SIGTERM)
        time.sleep(0.2)
        waiting.set()
        assert [one.result().status_code for one in asked] == [200] * 8
        ids = [one.result().headers["x-podium-trace-id"] for one in asked]
    status, err = pair.ended()
    assert status == 0
    replaced = "A process of the server ended with status -9; another takes its place."
    assert set(err.splitlines()) <= {replaced}
    assert not any(Path(f"/proc/{process}").exists() for process in processes)
    with TraceStore(folder / "traces.sqlite") as traces:
        assert {traces.get(id_).status for id_ in ids} == {"ok"}
