"""Finds the recorded request most similar to a missing one, and where the two first differ, for the error message.

The work is bounded: it compares the sets of words of a few hundred requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from podium.workers.response_cache.entry import CacheKey

CANDIDATES = 256
_READ = 20_000
"""Characters of a request that are compared."""
_BEFORE, _AFTER = 24, 40
"""Characters shown before and after the place where texts begin to differ."""
_ORDER = ("messages", "options", "identity", "seed", "repeat", "sample", "format")
"""Order of comparison: a changed text says more than a setting."""
_Place = tuple[str | int, ...]


class _Nothing:
    """Stands for a value that one of two documents lacks."""


_NOTHING = _Nothing()


def nearest(wanted: CacheKey, others: Iterable[CacheKey]) -> CacheKey | None:
    """The one of `others` that has the most words in common with `wanted`; None: there are none."""
    words = _words(wanted)
    return max(
        others, key=lambda other: (_overlap(words, _words(other)), *_same(wanted, other)), default=None
    )


def difference(here: CacheKey, there: CacheKey) -> str:
    """Where two requests first differ, as half a sentence that begins with a verb."""
    mine, other = ({name: wanted.document.get(name, _NOTHING) for name in _ORDER} for wanted in (here, there))
    for place, left, right in _differences(mine, other):
        if isinstance(left, str) and isinstance(right, str):
            pairs = enumerate(zip(left, right, strict=False))
            start = next((at for at, (a, b) in pairs if a != b), min(len(left), len(right)))
            shown = _excerpt(left, start), _excerpt(right, start)
        else:
            shown = _shown(left), _shown(right)
        return f"differs first in {_named(place)}: {shown[0]} here, {shown[1]} there"
    return "is the same"


def _words(wanted: CacheKey) -> set[str]:
    return set(wanted.text[:_READ].split())


def _overlap(here: set[str], there: set[str]) -> float:
    """Share of words in common, 0 to 1, in any order."""
    return 2 * len(here & there) / max(1, len(here) + len(there))


def _same(here: CacheKey, there: CacheKey) -> tuple[bool, bool, int, int]:
    """Breaks ties: the same messages, then the same settings, then the nearest repeat and sample."""
    mine, other = here.document, there.document
    return (
        mine["messages"] == other["messages"],
        mine["identity"] == other["identity"],
        -abs(mine["repeat"] - other["repeat"]),
        -abs(mine["sample"] - other["sample"]),
    )


def _differences(here: Any, there: Any, place: _Place = ()) -> Iterator[tuple[_Place, Any, Any]]:
    """The places at which two JSON values differ, with what each has there, in order."""
    if isinstance(here, dict) and isinstance(there, dict):
        for name in dict.fromkeys((*here, *there)):
            yield from _differences(here.get(name, _NOTHING), there.get(name, _NOTHING), (*place, name))
    elif isinstance(here, list | tuple) and isinstance(there, list | tuple):
        for number in range(max(len(here), len(there))):
            left, right = (side[number] if number < len(side) else _NOTHING for side in (here, there))
            yield from _differences(left, right, (*place, number))
    elif here != there or type(here) is not type(there):
        yield place, here, there


def _named(place: _Place) -> str:
    """A place in words: "message 2", "the setting extra.top_p", "the sample"."""
    first, *path = place
    if first == "messages":
        what = f"message {int(path[0]) + 1}"
        return what if path[1:2] in ([], ["content"]) else f"{path[1]} of {what}"
    if first == "options" and path:
        return f"the option {'.'.join(map(str, path))}"
    if first == "identity":
        return f"the setting {'.'.join(map(str, path))}" if path else "the settings"
    return f"the {first}"


def _excerpt(text: str, start: int) -> str:
    """A short piece of `text` around the place where it begins to differ."""
    low, high = max(0, start - _BEFORE), start + _AFTER
    return f"{'…' if low else ''}{text[low:high]!r}{'…' if high < len(text) else ''}"


def _shown(value: Any) -> str:
    if isinstance(value, _Nothing):
        return "nothing"
    if isinstance(value, dict) and "content" in value:
        value = "".join(value["content"])  # A whole message, where the other request has none.
    if isinstance(value, str):
        return _excerpt(value, 0)
    text = json.dumps(value, default=str)
    return text if len(text) <= _AFTER else f"{text[:_AFTER]}…"
