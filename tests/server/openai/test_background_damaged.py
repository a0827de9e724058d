"""A response in the background whose rows are damaged fails; one whose client got an error is not made."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import openai
import pytest
from background import CALL_USD, QUESTION, Answers, calls, client, ended, pool_file, until
from chat_model import ChatModel
from running_server import Serve
from sqlalchemy import Insert

from podium.errors import StoreError
from podium.server.openai import background_responses
from podium.trace.schema import BACKGROUND

COPY = """
INSERT INTO podium_background (id, owner, caller, created, document, holder, lease, cancelled)
SELECT '{copy}', owner, caller, created, document, '', {lease}, 0 FROM podium_background;
INSERT INTO podium_background_entries
SELECT '{copy}', number, kind, document FROM podium_background_entries;
"""
COPIED = "0" * 32
LATER = time.time() + 3600
"""The end of a lease, in seconds since 1970."""


@pytest.mark.parametrize(
    ("damage", "paid_calls"),
    [
        ("UPDATE podium_background SET document = '{}' WHERE id = ?", 4),
        ("UPDATE podium_background_entries SET document = '{}' WHERE id = ? AND number = 5", 2),
        ("UPDATE podium_background_entries SET kind = 'newer' WHERE id = ? AND number = 5", 2),
    ],
)
def test_a_response_no_longer_readable_fails_once_with_its_cost(
    serve: Serve, model: ChatModel, tmp_path: Path, damage: str, paid_calls: int
) -> None:
    place = tmp_path / "traces.sqlite"
    asking = client(serve(str(pool_file(tmp_path, model.url)), store=place, lease=0.5))
    made = asking.responses.create(model="podium", input=QUESTION, background=True)
    assert ended(asking, made.id).output_text == "GAMMA"
    with closing(sqlite3.connect(place)) as file:
        file.executescript(COPY.format(copy=COPIED, lease=LATER))
        file.execute(damage, (COPIED,))
        file.commit()
        assert asking.responses.retrieve(f"resp_{COPIED}").status == "queued"
        asking.responses.input_items.list(f"resp_{COPIED}")
        file.execute("UPDATE podium_background SET lease = 0 WHERE id = ?", (COPIED,))
        file.commit()
    failed = ended(asking, f"resp_{COPIED}")
    assert (failed.status, failed.background) == ("failed", True)
    assert failed.error.message.startswith("What was kept of this response is damaged")
    assert failed.usage.cost == pytest.approx(paid_calls * CALL_USD)
    *_, last = asking.responses.retrieve(f"resp_{COPIED}", stream=True)
    assert (last.type, last.response.error) == ("response.failed", failed.error)
    assert calls(model) == {"plan": 1, "alpha": 1, "beta": 1, "gamma": 1}


@pytest.mark.parametrize("full", [False, True])
def test_a_response_whose_client_was_told_that_it_is_not_kept_is_not_made(
    serve: Serve,
    answers: Answers,
    model: ChatModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    full: bool,
) -> None:
    """The database keeps the request, its reply is lost, and then it is away for as long as the lease lasts."""
    monkeypatch.setattr(background_responses, "MAX_RUNNING", 1)
    place = tmp_path / "traces.sqlite"
    url = serve(str(pool_file(tmp_path, model.url)), store=place, lease=3.0)
    asking, store, away = client(url), serve.service(url).store, threading.Event()
    assert store is not None
    run = store.rows
    answers.waits = {"alpha"}
    if full:
        first = asking.responses.create(model="ada", input="Say alpha.", background=True)
        until(lambda: calls(model)["alpha"])

    async def failing(statement: Any) -> Sequence[Sequence[Any]]:
        rows = [] if away.is_set() else await run(statement)
        if isinstance(statement, Insert) and statement.table is BACKGROUND:
            away.set()
        if away.is_set():
            raise StoreError("The database does not answer.")
        return rows

    monkeypatch.setattr(store, "rows", failing)
    with pytest.raises(openai.InternalServerError, match="does not answer"):
        asking.responses.create(model="ada", input="Say beta.", background=True)
    with closing(sqlite3.connect(place, isolation_level=None)) as file:
        ((id_,),) = file.execute("SELECT id FROM podium_background WHERE document LIKE '%beta%'")
        file.execute("UPDATE podium_background SET lease = 0 WHERE id = ?", (id_,))
        away.clear()
        until(lambda: not file.execute("SELECT 1 FROM podium_background WHERE id = ?", (id_,)).fetchall())
    answers.waits = set()
    if full:
        assert ended(asking, first.id).output_text == "ALPHA"
    assert calls(model) == ({"alpha": 1} if full else {})


@pytest.mark.parametrize(
    ("damage", "status"),
    [
        ("lease = 1e20", "completed"),
        ("lease = 'soon'", "completed"),
        ("lease = 0, created = 1e20", "completed"),
        ("lease = 0, created = -1e20", "completed"),
        ("lease = 0, created = 9e999", "completed"),
        ("lease = 0, created = 'yesterday'", "completed"),
        ("lease = 0, created = 1e20, document = '{}'", "failed"),
        ("lease = 0, created = 1e20, cancelled = 1", "cancelled"),
    ],
)
def test_a_damaged_date_keeps_no_response_in_progress(
    serve: Serve, model: ChatModel, tmp_path: Path, damage: str, status: str
) -> None:
    place = tmp_path / "traces.sqlite"
    asking = client(serve(str(pool_file(tmp_path, model.url)), store=place, lease=0.5))
    made = asking.responses.create(model="podium", input=QUESTION, background=True)
    assert ended(asking, made.id).output_text == "GAMMA"
    with closing(sqlite3.connect(place)) as file:
        file.executescript(COPY.format(copy=COPIED, lease=LATER))
        file.execute(f"UPDATE podium_background SET {damage} WHERE id = ?", (COPIED,))
        file.commit()
    assert ended(asking, f"resp_{COPIED}").status == status
