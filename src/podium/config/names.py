"""Names that were meant: the nearest known one, for errors."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was most likely meant to be, if any is close."""
    by_fold = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), by_fold, n=1)
    return by_fold[close[0]] if close else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """The way out of an unknown name: the nearest known one, else all of them."""
    names = list(known)
    close = nearest(name, names)
    if close is not None:
        return f"did you mean {close!r}?"
    return f"known: {', '.join(names)}." if names else "nothing is known by that name."
