"""Responses in the background of `podium serve --workers N`: followed through any process, lost with their own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from background import INPUT_TOKENS, QUESTION, Answers, calls, client, pool_file, pronounce_dead, until
from chat_model import ChatModel, chat_model
from served_process import Served, processes_of, served


@contextmanager
def in_progress(tmp_path: Path, answers: Answers) -> Iterator[tuple[ChatModel, Served, Any]]:
    """A model, a server of two processes, and a response in the background that waits for its step beta."""
    with chat_model(answers) as model:
        model.input_tokens = INPUT_TOKENS
        pool = str(pool_file(tmp_path, model.url))
        with served(tmp_path, "--pool", pool, "serve.workers=2") as server:
            made = client(server.url).responses.create(model="podium", input=QUESTION, background=True)
            until(lambda: calls(model)["beta"])
            yield model, server, made


def test_a_response_is_followed_through_any_process_of_its_server(tmp_path: Path) -> None:
    answers = Answers(waits={"beta"})
    with in_progress(tmp_path, answers) as (_, server, made):
        streams = [client(server.url).responses.retrieve(made.id, stream=True) for _ in range(6)]
        answers.waits = set()
        events: list[Any] = [list(stream) for stream in streams]
        assert all(each == events[0] for each in events)
        assert events[0][-1].response.output_text == "GAMMA"
        assert server.end()[0] == 0


def test_a_response_whose_process_is_killed_fails_without_further_calls(tmp_path: Path) -> None:
    with in_progress(tmp_path, Answers(waits={"beta"})) as (model, server, made):
        for process in processes_of(server):
            os.kill(process, signal.SIGKILL)
            until(lambda killed=process: killed not in (now := processes_of(server)) and len(now) == 2)
        assert client(server.url).responses.retrieve(made.id).status == "in_progress"
        pronounce_dead(tmp_path / "traces.sqlite")
        failed: Any = client(server.url).responses.retrieve(made.id)
        assert (failed.status, failed.background, failed.created_at) == ("failed", True, made.created_at)
        assert server.end()[0] == 0
        assert calls(model) == {"plan": 1, "alpha": 1, "beta": 1}
