"""Values cross as what they are, and nothing else does."""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.sandbox.inside import packing
from podium.sandbox.inside.packing import MAX_DEPTH, ObjectReference, is_sendable, pack, unpack

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.complex_numbers(allow_nan=False),
)
HASHABLE = st.recursive(
    SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5
)
VALUES = st.recursive(
    HASHABLE | st.builds(bytearray, st.binary()),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(HASHABLE, inner, max_size=4)
        | st.sets(HASHABLE, max_size=4)
        | st.tuples(inner)
    ),
    max_leaves=20,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["int", "tuple", "dict", "set", "range", "complex", "bytes", "iterator", "reference", "x"]
            ),
            inner,
            max_size=2,
        )
    ),
    max_leaves=15,
)


def crossed(value: Any) -> Any:
    return unpack(json.loads(json.dumps(pack(value))))


@given(VALUES)
def test_plain_values_are_packed_and_unpacked_unchanged(value: Any) -> None:
    assert crossed(value) == value
    assert type(crossed(value)) is type(value)


@given(JSON)
def test_unpacking_any_bytes_gives_a_value_or_a_value_error(packed: Any) -> None:
    with suppress(ValueError):
        unpack(packed)


class Sly(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__

    def __int__(self) -> int:
        return 99

    def __index__(self) -> int:
        return 99


class SlyText(str):
    def __str__(self) -> str:
        return "other"

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


class SlyList(list):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return iter([1, 2, 3])

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Colour(IntEnum):
    RED = 1


Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Sly(5), 5),
        (SlyText("text"), "text"),
        (SlyList(), []),
        ([Sly(5)], [5]),
        (Colour.RED, 1),
        (Pair(1, 2), (1, 2)),
        (Counter("aab"), {"a": 2, "b": 1}),
        (defaultdict(int, a=1), {"a": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (np.float64(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (1 << 20000, 1 << 20000),
        (-(10**5000), -(10**5000)),
        ("\ud800", "\ud800"),
        (range(3, 9, 2), range(3, 9, 2)),
        (math.inf, math.inf),
    ],
    ids=lambda value: type(value).__name__,
)
def test_subclass_values_are_unpacked_as_plain_values(value: Any, plain: Any) -> None:
    assert crossed(value) == plain
    assert type(crossed(value)) is type(plain)


@pytest.mark.parametrize(
    "value",
    [(x for x in [1, 2]), iter([1, 2]), map(int, "12"), {1: 0, 2: 0}.keys(), zip([1], [2], strict=True)],
    ids=["generator", "iterator", "map", "keys", "zip"],
)
def test_iterators_are_unpacked_as_iterators(value: Any) -> None:
    assert not isinstance(found := crossed(value), list)
    assert list(found) in ([1, 2], [(1, 2)])


@pytest.mark.parametrize(
    "value",
    [object(), len, lambda: 1, Sly, np.zeros(3), ValueError()],
    ids=["object", "builtin", "lambda", "class", "array", "error"],
)
def test_packing_an_arbitrary_object_raises_a_type_error(value: object) -> None:
    with pytest.raises(TypeError, match="cannot be sent"):
        pack(value)


def test_objects_are_packed_by_reference_and_resolved_on_return() -> None:
    kept: list[object] = []
    thing = object()
    there = unpack(pack([thing, 1], lambda value: kept.append(value) or 0))  # type: ignore[func-returns-value]
    assert there[0] != thing
    assert there[0] != unpack(pack(ObjectReference(0)))
    assert unpack(pack(there[0]), kept.__getitem__) is thing


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["list", "dict"])
def test_what_is_sendable_is_packed_and_unpacked_again(wrap: Callable[[Any], Any]) -> None:
    value: Any = 1
    while is_sendable(value):
        assert crossed(value) == value
        value = wrap(value)
    with pytest.raises(ValueError, match="too large"):
        pack(value)


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> int:
    """As many values as are packed: fewer here, since a million take seconds."""
    monkeypatch.setattr(packing, "MAX_VALUES", 10_000)
    return packing.MAX_VALUES


@pytest.mark.parametrize("part", [0, {"a": 0}], ids=str)
def test_a_value_is_sendable_up_to_as_many_values_as_are_packed(part: Any, most: int) -> None:
    size = 1 if part == 0 else 4  # a dictionary, its pair, a key and a value
    value = [part] * ((most - 1) // size)
    assert is_sendable(value)
    pack(value)
    assert not is_sendable([*value, part])
    with pytest.raises(ValueError, match="too large"):
        pack([*value, part])


def test_packing_limits_depth_and_number_of_values(most: int) -> None:
    deep: list[object] = []
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    for value in (deep, iter(int, 1), [[0] * 1000] * (most // 1000)):
        with pytest.raises(ValueError, match="too large"):
            pack(value)
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="too large"):
        pack(circle)
