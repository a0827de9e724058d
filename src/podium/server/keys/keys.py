"""The keys of a server: whose a request is, whether it may come in now, and the money that it may spend.

Sits between the routes and the register. What a key may ask of whom is its `Caller`'s; what becomes of a refusal is
the routes'. No key and no part of one, but its public beginning, leaves this folder.


@@Opens the keys that belong to a store of traces.

@@Where keys are needed: anywhere but on the loopback interface, which nobody but this machine reaches."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from podium.errors import APIError, UsageError
from podium.server.keys.caller import ANONYMOUS, Caller
from podium.server.keys.key_budget import KeyBudget
from podium.server.keys.register import (
    NO_DIGEST,
    Register,
    StoredKey,
    bearer_token,
    matches_digest,
    public_part,
)
from podium.trace.store import default_path

_FRESH_S = 1.0
"""For so long what was read is believed: a key that is removed is refused from then on at the latest."""
_UNKNOWN = (
    "This server does not know your key; send one as 'Authorization: Bearer pk-...'. "
    "Whoever runs the server makes them with `podium keys add`."
)


def _utc() -> datetime:
    return datetime.now(UTC)


class Keys:
    """Who may ask, how often, and for how much. Belongs to one event loop.

    Args:
        register: where the keys are kept; closed with this.
        always: whether a key is needed even where there is none yet; else one is needed once there is one.
        now: the time in UTC.
    """

    def __init__(
        self, register: Register, *, always: bool = False, now: Callable[[], datetime] = _utc
    ) -> None:
        self.register = register
        self._needed = always
        self._now = now
        self._known: dict[str, StoredKey] = {}
        self._read_s = -math.inf
        self._reading = asyncio.Lock()
        self._budgets: dict[tuple[str, str], KeyBudget] = {}

    async def caller(self, authorization: str | None) -> Caller:
        """Whose the request with this header is.

        A server that has once seen a key lets nobody in without one, also when the last is removed.

        Raises:
            APIError: 401, the same whatever is wrong with the key.
            StoreError: the keys cannot be read.
        """
        await self._read()
        if not self._needed:
            return ANONYMOUS
        text = bearer_token(authorization)
        stored = self._known.get(public_part(text))
        # Compared in any case, so that an unknown key takes as long as a wrong one.
        right = matches_digest(text, NO_DIGEST if stored is None else stored.digest)
        if stored is None or not right:
            raise APIError(
                401,
                "authentication_error",
                _UNKNOWN,
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return stored.caller

    async def admit(self, caller: Caller) -> None:
        """Book one request of the caller.

        Raises:
            APIError: 429, with the whole seconds to wait in Retry-After.
            StoreError: it cannot be booked.
        """
        if caller.id is None:
            return
        if caller.rpm is not None:
            wait_s = await self.register.request(caller.id)
            if wait_s is not None:
                seconds = max(1, math.ceil(wait_s))
                raise APIError(
                    429,
                    "rate_limit_error",
                    f"The key {caller.name!r} may make {caller.rpm} requests a minute: try again in {seconds} s.",
                    code="rate_limit_exceeded",
                    headers={"Retry-After": str(seconds)},
                )
        key_budget = self._key_budget(caller)
        if key_budget is not None:
            refreshed_s = key_budget.refreshed_s
            if refreshed_s is None or asyncio.get_running_loop().time() - refreshed_s > _FRESH_S:
                await key_budget.refresh()

    def account(self, caller: Caller) -> KeyBudget | None:
        """What the caller may spend on one question, for its ledger; None: any sum.

        A question is paid for by the day or the month in which it begins.

        Raises:
            APIError: 402, nothing is left. Its code is the one at which OpenAI's clients do not try again.
        """
        key_budget = self._key_budget(caller)
        if key_budget is not None and key_budget.spent_out is not None:
            raise APIError(402, "budget_exceeded", key_budget.spent_out, code="insufficient_quota")
        return key_budget

    @property
    def needed(self) -> bool:
        """Whether nobody comes in without a key, as far as is known."""
        return self._needed

    async def refresh(self) -> bool:
        """Whether nobody comes in without a key, by the keys that there are now."""
        await self._read()
        return self._needed

    async def require(self) -> bool:
        """Let nobody in without a key from now on; whether there is any key."""
        self._needed = True
        self._read_s = -math.inf
        await self._read()
        return bool(self._known)

    async def close(self) -> None:
        """Book what was spent, and let go of the register. Calling twice is fine."""
        for key_budget in self._budgets.values():
            await key_budget.close()
        self._budgets.clear()
        await self.register.close()

    async def _read(self) -> None:
        clock = asyncio.get_running_loop().time
        if clock() - self._read_s <= _FRESH_S:
            return
        async with self._reading:
            began = clock()
            if began - self._read_s > _FRESH_S:
                self._known = {stored.caller.id or "": stored for stored in await self.register.keys()}
                self._needed = self._needed or bool(self._known)
                self._read_s = began

    def _key_budget(self, caller: Caller) -> KeyBudget | None:
        if caller.id is None or caller.allowance is None:
            return None
        place = (caller.id, caller.allowance.period(self._now()))
        if place not in self._budgets:
            # Those of days and months that are over are closed by themselves: all that they held is booked.
            over = [
                old for old, key_budget in self._budgets.items() if old[0] == caller.id and key_budget.idle
            ]
            for old in over:
                del self._budgets[old]
            self._budgets[place] = KeyBudget(self.register, caller, place[1])
        return self._budgets[place]


FILE = "keys.sqlite"
"""Beside the file of traces."""


def open_register(
    store: str | Path | None = None, *, create: bool = True, environ: Mapping[str, str] = os.environ
) -> Register:
    """The keys in the same database as a store's traces, or in a file beside theirs.

    Args:
        store: where the traces are: an SQLite file, or an address as "postgresql+asyncpg://user@host/database"; None:
            the default place.
        create: whether a missing file of keys is made.

    Raises:
        UsageError: it cannot be opened, or what it needs is not installed.
    """
    place = str(store or environ.get("PODIUM_STORE") or "")
    if "://" in place:
        from podium.server.keys.postgres import PostgresRegister  # noqa: PLC0415 - an extra

        return PostgresRegister(place)
    from podium.server.keys.sqlite import SqliteRegister  # noqa: PLC0415 - not with the other

    path = Path(place).expanduser() if place else default_path(environ)
    return SqliteRegister(path.with_name(FILE), create=create)


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is reached from this machine alone. Of names "localhost" is."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


async def require_keys(host: str, keys: Keys | None) -> None:
    """Before a server listens on `host`: off the loopback interface, from now on, nobody comes in without a key.

    Raises:
        UsageError: there is no key.
    """
    if is_loopback(host):
        return
    if keys is None or not await keys.require():
        raise UsageError(
            f"--host {host} can be reached by others, and there is no key yet: make one with `podium keys add NAME`, "
            "with the same --store, or listen on 127.0.0.1."
        )
