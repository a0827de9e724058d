"""A spend limit on a disk that is full."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from podium.spending.shared_spend_limit import SharedSpendLimit


@contextmanager
def full_disk_limit(file: Path, *, after_first: bool = False) -> Iterator[SharedSpendLimit]:
    """Of $1. It can book no call, or none after the first that was paid."""
    when = "NEW.reserved > OLD.reserved" + " AND OLD.spent > 0" * after_first
    with closing(SharedSpendLimit(file, "run", 1.0)) as limit, closing(sqlite3.connect(file)) as disk:
        disk.execute(
            f"CREATE TRIGGER full BEFORE UPDATE ON spending WHEN {when} BEGIN SELECT RAISE(FAIL, 'disk full'); END"
        )
        yield limit
