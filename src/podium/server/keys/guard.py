"""Where keys are needed: anywhere but on the loopback interface, which nobody but this machine reaches."""

from __future__ import annotations

import ipaddress

from podium.errors import UsageError
from podium.server.keys.keys import Keys


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
