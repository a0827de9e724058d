"""Places where keys can be kept, one of each kind that there is here."""

from __future__ import annotations

from pathlib import Path

import pytest
from key_storage import Place

from postgres_server import DATABASES

collect_ignore = [] if "postgresql" in DATABASES else ["test_keys_postgres.py"]


@pytest.fixture(params=DATABASES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A new, empty place: a file beside one of traces, or a database."""
    if request.param == "sqlite":
        return Place(str(tmp_path / "kept" / "traces.sqlite"))
    return Place(request.getfixturevalue("postgres_url"))
