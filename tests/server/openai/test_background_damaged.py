"""Responses in the background whose row is damaged, or whose store fails."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import openai
import pytest
from sqlalchemy import Insert

from background_team import QUESTION, calls, ended, pool_file
from chat_model import ChatModel
from openai_client import client
from podium.errors import StoreError
from podium.store.schema import BACKGROUND
from running_server import Serve, until

ID = "0" * 32
OTHERS = (
    "INSERT INTO podium_background (id, document, holder, heartbeat, begun, cancelled) "
    f"VALUES ('{ID}', ?, 'killed', ?, 1, 0)"
)


@pytest.mark.parametrize(
    ("heartbeat", "document"),
    [("soon", "{}"), (9e999, "not JSON"), pytest.param(time.time() + 3600, "{}", id="in an hour")],
)
def test_background_response_with_a_damaged_row_does_not_stay_in_progress(
    serve: Serve, model: ChatModel, tmp_path: Path, heartbeat: object, document: str
) -> None:
    path = tmp_path / "traces.sqlite"
    asking = client(serve(str(pool_file(tmp_path, model.url)), store=path))
    with closing(sqlite3.connect(path)) as file:
        file.execute(OTHERS, (document, heartbeat))
        file.commit()
    # The server's own look for rows of killed servers may be ending this one.
    until(lambda: asking.responses.retrieve(f"resp_{ID}").status != "in_progress")
    failed = asking.responses.retrieve(f"resp_{ID}")
    assert failed.status == "failed"
    assert "server that worked on this response ended" in failed.error.message
    asking.responses.delete(f"resp_{ID}")
    assert not calls(model)


def test_response_is_not_made_after_its_client_got_a_storage_error(
    serve: Serve, model: ChatModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database keeps the request, but its reply is lost."""
    path = tmp_path / "traces.sqlite"
    url = serve(str(pool_file(tmp_path, model.url)), store=path)
    asking, store = client(url), serve.service(url).store
    assert store is not None
    run = store.database.run

    async def failing(statement: Any) -> Sequence[Sequence[Any]]:
        rows = await run(statement)
        if isinstance(statement, Insert) and statement.table is BACKGROUND:
            raise StoreError("The database does not answer.")
        return rows

    monkeypatch.setattr(store.database, "run", failing)
    with pytest.raises(openai.InternalServerError, match="does not answer"):
        asking.responses.create(model="ada", input="Say beta.", background=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        until(lambda: not file.execute("SELECT 1 FROM podium_background").fetchall())
    assert not calls(model)


def test_an_answer_is_kept_although_the_store_fails_as_it_ends(
    serve: Serve, model: ChatModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "traces.sqlite"
    asking = client(serve(str(pool_file(tmp_path, model.url)), store=path))
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        fails = "BEGIN SELECT RAISE(ABORT, 'The disk does not answer.'); END"
        file.execute(f"CREATE TRIGGER away BEFORE DELETE ON podium_background {fails}")
        made = asking.responses.create(model="podium", input=QUESTION, background=True)
        until(lambda: "has ended, which is not recorded yet" in caplog.text)
        assert asking.responses.retrieve(made.id).status == "in_progress"
        file.execute("DROP TRIGGER away")
    assert ended(asking, made.id).output_text == "GAMMA"
    assert calls(model) == {"plan": 1, "alpha": 1, "beta": 1, "gamma": 1}
