"""Values that cross from one process to another as plain data, so that no behaviour crosses with them.

Numbers, texts, bytes and their lists, tuples, sets and dictionaries cross, rebuilt from exact built-in types: an
object that pretends to equal everything arrives as what it holds, or as a `Reference` that equals only itself.
Both directions are bounded in depth and count.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any

DEEPEST = 100
"""Containers within containers, at most."""
MOST = 1_000_000
"""Values that cross at once, at most."""
_WIDEST = 256
"""Bits of a whole number that crosses as JSON has it; longer ones cross as hexadecimal, in time that is linear."""

Refer = Callable[[Any], int]
"""The number under which an object that is not plain is kept where it is."""


class Reference:
    """An object that stayed in the other process; to be handed back, and equal to nothing else."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Packing:
    """Values on their way out."""

    def __init__(self, refer: Refer | None) -> None:
        self._refer = refer
        self._left = MOST

    def pack(self, value: Any, depth: int = 0) -> Any:
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            raise ValueError("the value is too large to be handed over")
        if value is None or value is True or value is False:
            return value
        for kind, bare in _BARE:
            if isinstance(value, kind):
                return bare(value)
        if isinstance(value, list):
            return self._all(list.__iter__(value), depth)
        for kinds, name, parts in _GROUPED:
            if isinstance(value, kinds):
                return {name: self._all(parts(value), depth)}
        if getattr(value, "shape", None) == () and hasattr(value, "item"):
            return self.pack(value.item(), depth + 1)  # a number of NumPy's
        if self._refer is None:
            raise TypeError(f"a value of type {type(value).__name__} cannot be handed over")
        return {"reference": self._refer(value)}

    def _all(self, values: Iterable[Any], depth: int) -> list[Any]:
        return [self.pack(value, depth + 1) for value in values]


def pack(value: Any, refer: Refer | None = None) -> Any:
    """A value as JSON can hold it.

    Args:
        refer: keeps what is not plain, which then crosses as a `Reference`; None: it cannot cross.

    Raises:
        ValueError: it is too deep or too large.
        TypeError: it is not plain, and cannot be referred to.
    """
    return _Packing(refer).pack(value)


def unpack(packed: Any, resolve: Callable[[int], Any] = Reference, depth: int = 0) -> Any:
    """The value again, of exact built-in types.

    Args:
        resolve: the object that a reference stands for.

    Raises:
        ValueError: nothing was packed like this.
    """
    if packed is None or isinstance(packed, bool | int | float | str):
        return packed
    if depth > DEEPEST:
        raise ValueError("the value is too deep")
    if isinstance(packed, list):
        return [unpack(inner, resolve, depth + 1) for inner in packed]
    if isinstance(packed, dict) and len(packed) == 1:
        ((kind, held),) = packed.items()
        try:
            if kind == "reference":
                return resolve(int(held))
            if kind in _WRITTEN:
                return _WRITTEN[kind](held)
            if kind in _BUILT and isinstance(held, list):
                return _BUILT[kind](unpack(held, resolve, depth + 1))
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
            raise ValueError(f"what was handed over as {kind} is none: {error}") from None
    raise ValueError("what was handed over is no value")


def _exact_int(value: int) -> Any:
    exact = int.__int__(value)
    return exact if exact.bit_length() <= _WIDEST else {"int": hex(exact)}


# By the methods of the built-in types, since those of a value's own class may say what they like.
_BARE: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (Reference, lambda value: {"reference": value.number}),
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
    "int": lambda held: int(held, 16),
    "bytes": lambda held: held.encode("latin-1"),
    "bytearray": lambda held: bytearray(held.encode("latin-1")),
}
_BUILT: Mapping[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "dict": dict,
    "set": set,
    "frozenset": frozenset,
    "range": lambda held: range(*held),
    "complex": lambda held: complex(*held),
    "iterator": iter,
}
