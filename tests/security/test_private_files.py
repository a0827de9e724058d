"""What Podium keeps on disk can be read by its owner alone, whatever the umask.

Add a row for every new kind of file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from podium.server.keys.key_store import KEY_TABLES
from podium.spending.shared_spend_limit import STATE, SharedSpendLimit
from podium.store import TraceStore
from podium.workers.response_cache import ResponseCache

KEPT: dict[str, Callable[[Path], object]] = {
    "traces": TraceStore,
    "answers": ResponseCache,
    "spending": STATE.open,
    "keys": KEY_TABLES.file.open,
}


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """A umask that takes nothing away."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize("name", KEPT)
def test_new_database_files_are_readable_by_the_owner_alone(name: str, tmp_path: Path) -> None:
    with closing(KEPT[name](tmp_path / "kept.sqlite")):  # type: ignore[type-var]
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert "kept.sqlite-wal" in modes
    assert set(modes.values()) == {0o600}, modes


def test_a_spend_limit_in_memory_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    SharedSpendLimit(None, "run", 1.0).close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", KEPT)
def test_a_file_that_its_owner_shares_stays_shared(name: str, tmp_path: Path) -> None:
    path = tmp_path / "kept.sqlite"
    closing(KEPT[name](path)).thing.close()  # type: ignore[attr-defined]
    path.chmod(0o660)
    with closing(KEPT[name](path)):  # type: ignore[type-var]
        assert path.stat().st_mode & 0o777 == 0o660
