"""Responses in the background of `podium serve --processes N`: followed through any process, lost with their own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from background_team import INPUT_TOKENS, QUESTION, Answers, calls, pool_file, pronounce_dead
from chat_model import ChatModel, chat_model
from openai_client import client
from running_server import until
from served_process import Served, processes_of, served


@dataclass(frozen=True)
class Pair:
    """A server of two processes, its model, and where it keeps its traces."""

    server: Served
    model: ChatModel
    answers: Answers
    store: Path

    def in_progress(self) -> Any:
        """A new response in the background, which waits for its step beta."""
        self.answers.waits = {"beta"}
        before = calls(self.model)["beta"]
        made = client(self.server.url).responses.create(model="podium", input=QUESTION, background=True)
        until(lambda: calls(self.model)["beta"] > before)
        return made


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder, answers = tmp_path_factory.mktemp("pair"), Answers(waits={"beta"})
    with chat_model(answers) as model:
        model.input_tokens = INPUT_TOKENS
        with served(folder, "--pool", str(pool_file(folder, model.url)), "serve.processes=2") as server:
            yield Pair(server, model, answers, folder / "traces.sqlite")
            assert server.end()[0] == 0


def test_a_response_is_followed_through_any_process_of_its_server(pair: Pair) -> None:
    made = pair.in_progress()
    streams = [client(pair.server.url).responses.retrieve(made.id, stream=True) for _ in range(6)]
    pair.answers.waits = set()
    events: list[Any] = [list(stream) for stream in streams]
    assert all(each == events[0] for each in events)
    assert events[0][-1].response.output_text == "GAMMA"


def test_a_response_whose_process_is_killed_fails_without_further_calls(pair: Pair) -> None:
    made = pair.in_progress()
    before = calls(pair.model)
    for process in processes_of(pair.server):
        os.kill(process, signal.SIGKILL)
        until(lambda killed=process: killed not in (now := processes_of(pair.server)) and len(now) == 2)
    assert client(pair.server.url).responses.retrieve(made.id).status == "in_progress"
    pronounce_dead(pair.store)
    failed: Any = client(pair.server.url).responses.retrieve(made.id)
    assert (failed.status, failed.background, failed.created_at) == ("failed", True, made.created_at)
    assert calls(pair.model) == before
