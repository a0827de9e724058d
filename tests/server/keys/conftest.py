"""Storages where keys can be kept, one of each kind that there is here."""

from __future__ import annotations

from pathlib import Path

import pytest

from key_storage import KeyStorage
from postgres_server import DATABASES

collect_ignore = [] if "postgresql" in DATABASES else ["test_keys_postgres.py"]


@pytest.fixture(params=DATABASES)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> KeyStorage:
    """A new, empty storage: a file beside one of traces, or a database."""
    if request.param == "sqlite":
        return KeyStorage(str(tmp_path / "kept" / "traces.sqlite"))
    return KeyStorage(request.getfixturevalue("postgres_url"))
