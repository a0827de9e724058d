"""`podium keys`: makes, lists and removes the API keys of a server's clients."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from podium.cli.found_team import found_store
from podium.cli.options import Flag, JSONArray, StoreLocation
from podium.cli.printable import dollars, print_columns, say, shorten
from podium.cli.terminal import print_json
from podium.errors import UsageError
from podium.server.keys.caller import Caller, KeyAllowance
from podium.server.keys.key_store import KeySpending, KeyStore, NewKey, StoredKey
from podium.server.keys.keys import open_key_store
from podium.spending.spend_limit import NANO_PER_USD

T = TypeVar("T")
_MAX_RPM = 60_000
_NAME = re.compile(r"\w(?:[\w .@+-]{0,62}\w)?")


def add(
    name: str,
    /,
    *,
    budget_usd: str | None = None,
    rpm: int | None = None,
    allow: str | None = None,
    deny: str | None = None,
    admin: Flag = False,
    store: StoreLocation = None,
) -> int:
    """Make a key and print it. It cannot be shown again.

    Args:
        name: The key's name; traces of its questions have it.
        budget_usd: Dollars that the key may spend: 5/day, 20/month (UTC), or 100 in total. Default: no limit.
        rpm: Requests that the key may make in any 60 seconds. Default: no limit.
        allow: The only workers that the key may use, with commas between them. Default: all.
        deny: Workers that the key may not use, with commas between them.
        admin: The key may see the traces of all keys, and the metrics.
    """
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{shorten(name, 80)!r} cannot be a key's name: use up to 64 letters, digits, spaces and . @ + - _."
        )
    if rpm is not None and not 1 <= rpm <= _MAX_RPM:
        raise UsageError(f"--rpm {rpm}: give from 1 to {_MAX_RPM} requests a minute.")
    secret = NewKey.generate()
    caller = Caller(
        name=name,
        admin=admin,
        allow=None if allow is None else _names("--allow", allow),
        deny=() if deny is None else _names("--deny", deny),
        id=secret.id,
        rpm=rpm,
        allowance=None if budget_usd is None else KeyAllowance.read(budget_usd),
    )
    key = StoredKey(caller, secret.digest, datetime.now(UTC))
    if not _call(store, lambda key_store: key_store.add(key), create=True):
        raise UsageError(
            f"There is a key named {name!r} already; give another name, or remove it with `podium keys remove`."
        )
    print(secret.text)
    say(f"The key of {name}: store it now; Podium keeps only a hash and cannot show it again.", stderr=True)
    return 0


def list_keys(*, store: StoreLocation = None, json: JSONArray = False) -> int:
    """List the keys by name, with their limits and what each has spent."""
    keys = _call(store, lambda key_store: key_store.spendings(datetime.now(UTC)))
    if json:
        print_json([_document(key, spending) for key, spending in keys])
    elif keys:
        _print(keys)
    else:
        print("There are no keys.")
    return 0


def remove(name: str, /, *, store: StoreLocation = None) -> int:
    """Remove a key. Running servers refuse it within a second. If it has a budget, its running questions make no
    more paid calls.

    Args:
        name: As `podium keys list` shows it.
    """
    name = name.strip()
    if not _call(store, lambda key_store: key_store.remove(name)):
        raise UsageError(f"There is no key named {shorten(name, 80)!r}; `podium keys list` shows all keys.")
    say(f"The key of {name} is removed.", stderr=True)
    return 0


def _call(store: str | None, work: Callable[[KeyStore], Awaitable[T]], *, create: bool = False) -> T:
    """What the work gives with the keys of a store, by default those of the store that is found."""

    async def call() -> T:
        key_store = open_key_store(store or found_store(), create=create)
        try:
            return await work(key_store)
        finally:
            await key_store.close()

    return asyncio.run(call())


def _names(option: str, text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if "" in names:
        raise UsageError(
            f"{option} {text!r}: give names of workers with commas between them, as in fast,clever."
        )
    return names


def _document(key: StoredKey, spending: KeySpending) -> dict[str, object]:
    caller = key.caller
    return {
        "name": caller.name,
        "id": caller.id,
        "added": key.added.isoformat(timespec="seconds"),
        "admin": caller.admin,
        "rpm": caller.rpm,
        "budget_usd": None if caller.allowance is None else str(caller.allowance),
        "spent_usd": None if caller.allowance is None else spending.spent / NANO_PER_USD,
        "reserved_usd": None if caller.allowance is None else spending.reserved / NANO_PER_USD,
        "allow": caller.allow,
        "deny": caller.deny,
    }


def _print(keys: Sequence[tuple[StoredKey, KeySpending]]) -> None:
    rows = [("name", "key", "added (UTC)", "rpm", "budget", "spent", "reserved", "workers")]
    for key, spending in keys:
        caller = key.caller
        money = ("-", "-", "-")
        if caller.allowance is not None:
            money = (
                f"${caller.allowance}",
                dollars(spending.spent / NANO_PER_USD),
                dollars(spending.reserved / NANO_PER_USD),
            )
        workers = "all" if caller.allow is None else ", ".join(caller.allow)
        workers += f" but {', '.join(caller.deny)}" if caller.deny else ""
        rows.append(
            (
                shorten(caller.name or "", 40) + (" (admin)" if caller.admin else ""),
                f"{caller.id}-...",
                f"{key.added:%Y-%m-%d %H:%M}",
                "-" if caller.rpm is None else str(caller.rpm),
                *money,
                shorten(workers, 60),
            )
        )
    print_columns(rows)
