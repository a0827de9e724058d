"""What older Pythons do wrongly: their parser in several threads at once, and some patterns."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import podium
from podium.text.syntax import parse_expression, parse_program

NESTED = ("x = " + "(1, " * 60 + ")" * 60 + "\n") * 30
THREADS, TIMES = 4, 10


class _Slow:
    """Garbage whose collection lets other threads run, in the middle of what is parsed."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        time.sleep(0.0005)


@pytest.fixture
def much_garbage() -> Iterator[None]:
    """Garbage is collected far more often than else."""
    before = gc.get_threshold()
    gc.set_threshold(100)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("much_garbage")
def test_programs_are_read_whatever_other_threads_read() -> None:
    def read(_: int) -> int:
        for _ in range(5):
            _Slow()
        return len(parse_program(NESTED).body)

    with ThreadPoolExecutor(THREADS) as threads:
        assert set(threads.map(read, range(THREADS * TIMES))) == {30}


def test_parse_expression_refuses_an_assignment() -> None:
    assert parse_expression("1 + 2").end_col_offset == 5
    with pytest.raises(SyntaxError):
        parse_expression("x = 1")


def test_no_pattern_repeats_a_group_possessively() -> None:
    """CPython before 3.11.5 backtracks wrongly there (python/cpython#106052); an atomic group does the same."""
    source = Path(podium.__file__).parent
    repeated = re.compile(r"(?<!\\)\)[*+?]\+")
    assert [
        path.name for path in source.rglob("*.py") if repeated.search(path.read_text(encoding="utf-8"))
    ] == []
