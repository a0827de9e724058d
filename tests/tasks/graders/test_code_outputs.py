"""Outputs and values, compared as LiveCodeBench does."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.sandbox.inside.packing import pack
from podium.tasks.graders.code_grader import same_output, same_value


@pytest.mark.parametrize(
    ("printed", "wanted", "same"),
    [
        ("3\n", "3", True),
        ("  3  \n\n", "3\n", True),
        ("1 2\n3", "1 2 \n3 ", True),
        ("1  2", "1 2", True),
        ("0.50", "0.5", True),
        ("1e2", "100", True),
        ("50000000000000001", "50000000000000000", False),
        ("0.1000000001", "0.1", False),
        ("yes", "YES", False),
        ("a  b", "a b", False),
        ("1 2", "1\n2", False),
        ("3\n\n4", "3\n4", False),
        ("3 4", "3", False),
        ("", "0", False),
        ("", "", True),
        ("\n \n", "", True),
        ("nan", "NaN", False),
        ("snan", "1", False),
        ("inf", "Infinity", True),
        ("3", "three", False),
        ("3\r\n4\r\n", "3\n4", True),
    ],
)
def test_lines_are_equal_as_text_or_as_decimals(printed: str, wanted: str, same: bool) -> None:
    assert same_output(printed, wanted) is same


@pytest.mark.parametrize(
    "printed",
    ["9" * 10**6, "1e999999999999999999", "1e-99999999", "0x10 " * 10**5, "\n" * 10**6, "1 " * 10**6],
)
def test_hostile_output_is_compared_in_time(printed: str) -> None:
    began = time.monotonic()
    assert not same_output(printed, "1 2 3\n4")
    assert not same_output(printed, "1e5")
    assert time.monotonic() - began < 10


def said(value: Any) -> bytes:
    return json.dumps({"value": pack(value)}).encode()


@pytest.mark.parametrize(
    ("value", "wanted", "same"),
    [
        (3, 3, True),
        (3.0, 3, True),
        (True, 1, True),
        (0.1 + 0.2, 0.3, False),
        ("3", 3, False),
        (None, None, True),
        (None, [], False),
        ([1, [2]], [1, [2]], True),
        ((1, 2), [1, 2], True),
        ([(1, 2)], [[1, 2]], False),
        ([1, 2, 3], [1, 2], False),
        ({1, 2}, [1, 2], False),
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({1: 2}, {"1": 2}, False),
        (3**900, 3**900, True),
        (3**900, 3**900 + 1, False),
        ("", "", True),
        (b"a", "a", False),
        (range(3), [0, 1, 2], False),
        (iter([1]), [1], False),
    ],
)
def test_values_are_equal_as_data(value: Any, wanted: Any, same: bool) -> None:
    assert same_value(said(value), wanted) is same


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(VALUES)
def test_json_value_matches_itself(value: Any) -> None:
    assert same_value(said(value), value)


@pytest.mark.parametrize(
    "words",
    [
        b"",
        b"[]",
        b"{}",
        b'{"value": {"int": "0x' + b"f" * 10**6 + b'"}}',
        b'{"value": {"int": 5}}',
        b'{"value": {"int": "five"}}',
        b'{"value": {"dict": 5}}',
        b'{"value": {"dict": [[[], 1]]}}',
        b'{"value": {"dict": [["a"]]}}',
        b'{"value": {"tuple": 5}}',
        b'{"value": {"reference": 0}}',
        b'{"value": ' + b"[" * 10**5,
        b'{"value": ' + b"9" * 10**5 + b"}",
        b'{"value": "\\ud800"}',
        json.dumps({"value": {"set": [i * (2**61 - 1) for i in range(20000)]}}).encode(),
        json.dumps({"value": {"dict": [[i * (2**61 - 1), 0] for i in range(20000)]}}).encode(),
    ],
    ids=lambda words: words[:30].decode(errors="replace"),
)
@pytest.mark.parametrize("wanted", [1, [1], {"a": 1}], ids=str)
def test_hostile_values_are_wrong_in_time(words: bytes, wanted: Any) -> None:
    began = time.monotonic()
    assert not same_value(words, wanted)
    assert time.monotonic() - began < 5
