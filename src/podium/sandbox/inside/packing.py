"""Values that are sent from one process to another as plain data, so that no behaviour is sent with them.

Numbers, texts, bytes, and lists, tuples, sets and dictionaries of them are rebuilt from exact built-in types. So an
object that claims to equal everything arrives as its plain value, or as an `ObjectReference` that equals only itself.
Both directions are bounded in depth and count.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain
from typing import Any

MAX_DEPTH = 100
MAX_VALUES = 1_000_000
_MAX_JSON_BITS = 256
"""The most bits of an integer that is sent as a JSON number; longer ones are sent as hexadecimal, in linear time."""

Refer = Callable[[Any], int]
"""Keeps an object that is not plain in its own process, and returns the number that stands for it."""


class ObjectReference:
    """Stands for an object that stayed in the other process. It can be sent back, and equals nothing but itself."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Packing:
    """Packs one message, and counts its values."""

    def __init__(self, refer: Refer | None) -> None:
        self._refer = refer
        self._left = MAX_VALUES

    def pack(self, value: Any, depth: int = 0) -> Any:
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            raise ValueError("the value is too large to be sent")
        if value is None or value is True or value is False:
            return value
        for kind, bare in _BARE:
            if isinstance(value, kind):
                return bare(value)
        if isinstance(value, list):
            return self._pack_all(list.__iter__(value), depth)
        for kinds, name, parts in _GROUPED:
            if isinstance(value, kinds):
                return {name: self._pack_all(parts(value), depth)}
        if getattr(value, "shape", None) == () and hasattr(value, "item"):
            return self.pack(value.item(), depth + 1)  # a NumPy scalar
        if self._refer is None:
            raise TypeError(f"a value of type {type(value).__name__} cannot be sent")
        return {"reference": self._refer(value)}

    def _pack_all(self, values: Iterable[Any], depth: int) -> list[Any]:
        return [self.pack(value, depth + 1) for value in values]


def pack(value: Any, refer: Refer | None = None) -> Any:
    """A value as JSON can hold it. Objects that are not plain are given to `refer` and sent as an `ObjectReference`.

    Raises:
        ValueError: it is too deep or too large.
        TypeError: it is not plain, and `refer` is None.
    """
    return _Packing(refer).pack(value)


def is_sendable(value: Any) -> bool:
    """Whether a JSON value is neither too deep nor too large for `pack`."""
    level, count = [value], 1
    for _ in range(MAX_DEPTH + 1):
        level = list(chain.from_iterable(_parts(part) for part in level if isinstance(part, _CONTAINERS)))
        count += len(level)
    return not level and count <= MAX_VALUES


_CONTAINERS = (list, tuple, dict)


def _parts(container: Any) -> Iterable[Any]:
    return container.items() if isinstance(container, dict) else container


def unpack(packed: Any, resolve: Callable[[int], Any] = ObjectReference, depth: int = 0) -> Any:
    """The value again, of exact built-in types. `resolve` gives the object that a reference stands for.

    Raises:
        ValueError: it is not the output of `pack`.
    """
    if packed is None or isinstance(packed, bool | int | float | str):
        return packed
    if depth > MAX_DEPTH:
        raise ValueError("the value is too deep")
    if isinstance(packed, list):
        return [unpack(inner, resolve, depth + 1) for inner in packed]
    if isinstance(packed, dict) and len(packed) == 1:
        ((kind, inner),) = packed.items()
        try:
            if kind == "reference":
                return resolve(int(inner))
            if kind in _WRITTEN:
                return _WRITTEN[kind](inner)
            if kind in _BUILT and isinstance(inner, list):
                return _BUILT[kind](unpack(inner, resolve, depth))
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
            raise ValueError(f"what was sent as {kind} is none: {error}") from None
    raise ValueError("what was sent is no value")


def _exact_int(value: int) -> Any:
    exact = int.__int__(value)
    return exact if exact.bit_length() <= _MAX_JSON_BITS else {"int": hex(exact)}


# These call the methods of the built-in types, since a value's own class may override them.
_BARE: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (ObjectReference, lambda value: {"reference": value.number}),
    (str, str.__str__),
    (int, _exact_int),
    (float, float.__float__),
    (bytes, lambda value: {"bytes": bytes.decode(value, "latin-1")}),
    (bytearray, lambda value: {"bytearray": bytearray.decode(value, "latin-1")}),
)
_GROUPED: tuple[tuple[type | tuple[type, ...], str, Callable[[Any], Iterable[Any]]], ...] = (
    (tuple, "tuple", tuple.__iter__),
    (dict, "dict", lambda value: map(list, dict.items(value))),
    (set, "set", set.__iter__),
    (frozenset, "frozenset", frozenset.__iter__),
    (range, "range", lambda value: (value.start, value.stop, value.step)),
    (complex, "complex", lambda value: (value.real, value.imag)),
    ((Iterator, KeysView, ValuesView, ItemsView), "iterator", iter),
)
_WRITTEN: Mapping[str, Callable[[str], Any]] = {
    "int": lambda text: int(text, 16),
    "bytes": lambda text: text.encode("latin-1"),
    "bytearray": lambda text: bytearray(text.encode("latin-1")),
}
_BUILT: Mapping[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "dict": dict,
    "set": set,
    "frozenset": frozenset,
    "range": lambda parts: range(*parts),
    "complex": lambda parts: complex(*parts),
    "iterator": iter,
}
