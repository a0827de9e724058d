"""The state file: one process tells, another reads, and a file that cannot be used stops nobody."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from podium.calls.breaker import Cooldown
from podium.calls.shared_spend_limit import SharedSpendLimit
from podium.calls.state_file import STATE, CooldownFile
from podium.errors import UsageError
from podium.workers import ScriptedWorker


class Endpoint(ScriptedWorker):
    """A scripted worker that says which endpoint it is."""

    def __init__(self, name: str, identity: Mapping[str, Any] | None) -> None:
        super().__init__(name, [])
        self.identity = identity  # type: ignore[assignment]


ADA = Endpoint("ada", {"url": "http://a", "model": "m"})
ADA_ELSEWHERE = Endpoint("ada-2", {"model": "m", "url": "http://a"})
BOB = Endpoint("bob", {"url": "http://a", "model": "n"})
ANONYMOUS = Endpoint("nobody", None)


def note(file: CooldownFile, worker: ScriptedWorker, since: float = 100.0) -> None:
    file.note(worker, Cooldown(since, since + 10, 3, "It is down."))


def test_a_cooldown_is_known_by_identity_and_not_by_name(tmp_path: Path) -> None:
    here, there = CooldownFile(tmp_path / "s"), CooldownFile(tmp_path / "s")
    note(here, ADA)
    assert there.get(ADA_ELSEWHERE) == Cooldown(100.0, 110.0, 3, "It is down.")
    assert there.get(BOB) is None
    there.note(ADA_ELSEWHERE, None)
    assert here.get(ADA) is None
    here.close()
    there.close()


def test_a_later_cooldown_replaces_an_earlier_one(tmp_path: Path) -> None:
    file = CooldownFile(tmp_path / "s")
    note(file, ADA, 100.0)
    note(file, BOB, 200.0)
    note(file, ADA, 300.0)
    file.close()
    known = file.get(ADA)
    assert known is not None, "it is opened again when it is asked"
    assert known.since == 300.0
    file.close()


def test_the_cooldown_of_a_worker_without_an_identity_is_not_shared(tmp_path: Path) -> None:
    file = CooldownFile(tmp_path / "s")
    note(file, ANONYMOUS)
    file.note(ANONYMOUS, None)
    assert file.get(ANONYMOUS) is None
    assert not file.path.exists()


def test_reading_cooldowns_creates_no_file(tmp_path: Path) -> None:
    file = CooldownFile(tmp_path / "none" / "s")
    assert file.get(ADA) is None
    file.note(ADA, None)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_used_has_no_cooldowns_and_stops_no_call(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    file = CooldownFile(tmp_path / "file" / "s")
    note(file, ADA)
    assert file.get(ADA) is None
    broken = CooldownFile(tmp_path / "file")
    note(broken, ADA)
    assert broken.get(ADA) is None
    assert (tmp_path / "file").read_text() == "in the way"


def test_cooldown_file_lies_beside_the_trace_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_STORE", str(tmp_path / "kept" / "traces.sqlite"))
    assert CooldownFile().path == tmp_path / "kept" / "state.sqlite"
    monkeypatch.setenv("PODIUM_STORE", "postgresql://somewhere/podium")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert CooldownFile().path == tmp_path / "podium" / "state.sqlite"


def test_a_file_of_another_version_is_refused_in_a_sentence_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with closing(sqlite3.connect(path)) as old:
        old.execute("CREATE TABLE spending (account TEXT, day TEXT, spent INTEGER, held INTEGER)")
        old.execute("INSERT INTO spending VALUES ('day', '2030-01-01', 5, 0)")
        old.execute(f"PRAGMA application_id = {STATE.mark}")
        old.execute("PRAGMA user_version = 1")
        old.commit()
    with pytest.raises(UsageError, match=r"another version of Podium .* move it away"):
        SharedSpendLimit(path, "day", 1.0)
    cooldowns = CooldownFile(path)
    note(cooldowns, ADA)
    assert cooldowns.get(ADA) is None
    with closing(sqlite3.connect(path)) as old:
        assert old.execute("SELECT spent FROM spending").fetchall() == [(5,)]
