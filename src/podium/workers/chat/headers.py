"""Which headers and query parts of a pool file can be sent, and which of them would be a secret in plain sight."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from podium.workers.secrets import looks_secret

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS = frozenset(
    {"host", "content-type", "content-length", "transfer-encoding", "connection", "accept-encoding", "expect"}
)


def check_names(names: Iterable[str]) -> None:
    """Refuse what no header can be called, what is called twice, and what the client sets itself.

    Raises:
        ValueError: in one sentence that names it.
    """
    seen: set[str] = set()
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a header; use letters, digits and '-'.")
        if name.lower() in _OURS:
            raise ValueError(f"the header {name} is the client's own; leave it out.")
        if name.lower() in seen:
            raise ValueError(f"the header {name} is given twice; leave one out.")
        seen.add(name.lower())


def check_plain(headers: Mapping[str, str]) -> None:
    """Refuse plain headers that hold what no header can, or most likely a secret.

    Raises:
        ValueError: in one sentence that names it; a value is not repeated.
    """
    for name, value in headers.items():
        if looks_secret(name):
            raise ValueError(
                f"the header {name} looks like a secret; put its value into an environment variable and that "
                "variable's name into headers_env."
            )
        if not can_be_sent(value):
            raise ValueError(f"the value of the header {name} cannot be sent; use plain ASCII on one line.")


def check_query(query: Mapping[str, str]) -> None:
    """Refuse a secret in the address, which proxies and servers write into their logs.

    Raises:
        ValueError: in one sentence that names the part.
    """
    for name in query:
        if looks_secret(name):
            raise ValueError(
                f"{name!r} looks like a secret; send it as a header, by api_key_env or headers_env."
            )


def can_be_sent(value: str) -> bool:
    """Whether a header can hold it."""
    return value.isascii() and value.isprintable() and bool(value.strip())
