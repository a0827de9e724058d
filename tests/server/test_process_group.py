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

import httpx
import pytest
from chat_model import ChatModel, Say, chat_model
from key_storage import KeyStorage
from running_server import until
from served_process import WAIT_S, Served, command, pool_file, processes_of, served

from podium.store import TraceStore
from podium.store.query import TraceFilters

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


@pytest.fixture
def said() -> Model:
    return Model()


@pytest.fixture
def model(said: Model) -> Iterator[ChatModel]:
    with chat_model(said) as running:
        running.input_tokens = INPUT_TOKENS
        yield running


@pytest.fixture(scope="module")
def few_said() -> Model:
    return Model()


@pytest.fixture(scope="module")
def few_model(few_said: Model) -> Iterator[ChatModel]:
    with chat_model(few_said) as running:
        running.input_tokens = INPUT_TOKENS
        yield running


@pytest.fixture(scope="module")
def few_calls(tmp_path_factory: pytest.TempPathFactory, few_model: ChatModel) -> Iterator[Served]:
    """Two processes whose worker allows three calls at once, for tests that neither change nor end them."""
    folder = tmp_path_factory.mktemp("few")
    pool = pool_file(folder, few_model.url)
    pool.write_text(pool.read_text().replace("concurrency = 64", "concurrency = 3"))
    with served(folder, "--pool", str(pool), *TWO) as server:
        yield server
        server.tell(signal.SIGINT)
        assert server.ended() == (0, "")


def ask(server: Served, text: str = "Is it so?", **headers: str) -> httpx.Response:
    """One question over a connection of its own, so that any process may take it."""
    body = {"model": "podium", "messages": [{"role": "user", "content": text}], "max_tokens": 5}
    return httpx.post(f"{server.url}/v1/chat/completions", json=body, headers=headers, timeout=WAIT_S)


def ask_many(server: Served, count: int, **headers: str) -> list[httpx.Response]:
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(lambda number: ask(server, f"Is it {number}?", **headers), range(count)))


def in_flight(server: Served) -> dict[str, float]:
    """The questions in flight, by process."""
    text = httpx.get(f"{server.url}/metrics").text
    found = re.findall(r'podium_questions_in_flight\{process="(\d)"\} (\S+)', text)
    return {process: float(value) for process, value in found}


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


def test_a_killed_process_is_replaced_and_a_signal_ends_all(
    tmp_path: Path, said: Model, model: ChatModel
) -> None:
    with served(tmp_path, "--pool", str(pool_file(tmp_path, model.url)), *TWO) as server:
        assert "(2 processes; no key is needed" in server.line
        first, second = processes_of(server)
        os.kill(first, signal.SIGKILL)
        assert ask(server).status_code == 200
        until(lambda: len(processes_of(server)) == 2)
        until(lambda: in_flight(server).keys() == {"0", "1"})
        processes = processes_of(server)
        assert first not in processes
        assert second in processes

        said.go_on.clear()
        with ThreadPoolExecutor(8) as threads:
            asked = [threads.submit(ask, server) for _ in range(8)]
            until(lambda: sum(in_flight(server).values()) == 8)
            server.tell(signal.SIGTERM)
            time.sleep(0.2)
            said.go_on.set()
            assert [one.result().status_code for one in asked] == [200] * 8
        replaced = "A process of the server ended with status -9; another takes its place.\n"
        assert server.ended() == (0, replaced)
        assert not any(Path(f"/proc/{process}").exists() for process in processes)
    with TraceStore(tmp_path / "traces.sqlite") as traces:
        assert len(traces.list(TraceFilters(status="ok"))) == 9


def test_the_processes_of_a_killed_server_end_too_and_delete_their_folder(
    tmp_path: Path, model: ChatModel
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    pool = str(pool_file(tmp_path, model.url))
    with served(tmp_path, "--pool", pool, *TWO, TMPDIR=str(temporary)) as server:
        processes = processes_of(server)
        assert len(list(temporary.glob("podium-*"))) == 1
        server.tell(signal.SIGKILL)
        until(lambda: not any(Path(f"/proc/{process}").exists() for process in processes))
    assert list(temporary.iterdir()) == []


def test_two_processes_never_make_more_calls_at_once_than_allowed(
    few_calls: Served, few_said: Model, few_model: ChatModel
) -> None:
    few_said.go_on.clear()
    before = len(few_model.bodies)
    with ThreadPoolExecutor(16) as threads:
        asked = [threads.submit(ask, few_calls, f"Is it {number}?") for number in range(16)]
        try:
            until(lambda: sum(in_flight(few_calls).values()) == 16)
            time.sleep(0.2)
            assert 0 < len(few_model.bodies) - before <= 3
        finally:
            few_said.go_on.set()
        assert {one.result().status_code for one in asked} == {200}


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


def test_rates_and_budgets_hold_for_all_processes_together(tmp_path: Path, model: ChatModel) -> None:
    storage = KeyStorage(str(tmp_path / "traces.sqlite"))
    hurried, rich = f"Bearer {storage.add('hurried', rpm=6)}", f"Bearer {storage.add('rich')}"
    pool, start_budget = str(pool_file(tmp_path, model.url)), f"{20 * CALL_USD:.6f}"
    statuses: list[int] = []
    with served(tmp_path, "--pool", pool, *TWO, "--run-budget-usd", start_budget) as server:
        replies = ask_many(server, 16, authorization=hurried)
        assert sorted(reply.status_code for reply in replies) == [200] * 6 + [429] * 10
        while statuses[-4:] != [402] * 4:
            statuses += [reply.status_code for reply in ask_many(server, 4, authorization=rich)]
        assert set(statuses) == {200, 402}
        assert 6 + statuses.count(200) == len(model.bodies) <= 20
        assert server.end()[0] == 0


def test_other_processes_see_traces_and_plans_of_one_process_at_once(few_calls: Served) -> None:
    for number in range(12):
        id_ = ask(few_calls, f"Is it {number}?").headers["x-podium-trace-id"]
        assert httpx.get(f"{few_calls.url}/api/traces/{id_}").status_code == 200
    dry = {"question": "Is it so?", "dry_run": True}
    planned = httpx.post(f"{few_calls.url}/api/ask", json=dry).json()
    asked = {"plan_id": planned["podium"]["plan_id"]}
    assert httpx.post(f"{few_calls.url}/api/ask", json=asked).status_code == 202
    assert httpx.post(f"{few_calls.url}/api/ask", json=asked).status_code == 404


def test_a_question_is_followed_and_cancelled_at_any_process(few_calls: Served, few_said: Model) -> None:
    until(lambda: sum(in_flight(few_calls).values()) == 0)
    few_said.go_on.clear()
    try:
        for _ in range(4):  # Each request has a connection of its own, which either process may take.
            id_ = httpx.post(f"{few_calls.url}/api/ask", json={"question": "Is it so?"}).json()["id"]
            url = f"{few_calls.url}/api/traces/{id_}/events"
            with httpx.stream("GET", url, timeout=WAIT_S) as events:
                kinds = (line[7:] for line in events.iter_lines() if line.startswith("event: "))
                assert [next(kinds) for _ in range(3)] == ["started", "plan", "step_started"]
                assert httpx.delete(f"{few_calls.url}/api/ask/{id_}").status_code == 204
                assert list(kinds)[-1] == "ended"
            assert httpx.get(f"{few_calls.url}/api/traces/{id_}").json()["status"] == "cancelled"
    finally:
        few_said.go_on.set()
