"""Responses in the background of `podium serve --workers N`, one of whose processes is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from background import CALL_USD, INPUT_TOKENS, QUESTION, Answers, calls, client, ended, pool_file, until
from chat_model import chat_model
from served_process import processes_of, served


def test_a_process_that_takes_a_response_over_calls_no_step_again(tmp_path: Path) -> None:
    answers = Answers(waits={"beta"})
    with chat_model(answers) as model:
        model.input_tokens = INPUT_TOKENS
        pool = str(pool_file(tmp_path, model.url))
        with served(tmp_path, "--pool", pool, "serve.lease=3", "serve.workers=2") as server:
            asking = client(server.url)
            made = asking.responses.create(model="podium", input=QUESTION, background=True)
            until(lambda: calls(model)["beta"])
            # One of the two makes the response. After both were killed, the call was made again exactly once.
            for process in processes_of(server):
                os.kill(process, signal.SIGKILL)
                until(lambda killed=process: killed not in (now := processes_of(server)) and len(now) == 2)
            answers.waits = set()
            done: Any = ended(client(server.url), made.id)
            assert (done.status, done.output_text) == ("completed", "GAMMA")
            assert server.end()[0] == 0
        assert calls(model)["plan"] == calls(model)["alpha"] == calls(model)["gamma"] == 1
        assert calls(model)["beta"] in (
            2,
            3,
        )  # Twice, unless the other process had taken over before it was killed.
        assert done.usage.cost == pytest.approx(4 * CALL_USD)
