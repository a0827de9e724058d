"""The address of an endpoint and the headers sent to it, and the checks of both in a team file.

It reads the proxies of the environment, and adds keys and secret headers to the pool's `Secrets`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import SecretStr

from podium.errors import ConfigError
from podium.workers.redaction import looks_secret, redact_url

if TYPE_CHECKING:
    from podium.workers.connections import Connections

_WHERE = ("base_url",)
"""The key of a team file to which the faults of an address belong."""


class Endpoint:
    """One endpoint's address and headers.

    Args:
        base_url: up to and without /chat/completions, as in "https://api.openai.com/v1".
        connections: shared with other endpoints. The key and the secret headers are added to their secrets.
        key_header: sends the key. None or "Authorization": as "Bearer KEY"; else, as in "api-key", the bare key.
        query: added to the address, as in {"api-version": "2024-10-21"}.
        headers, secret_headers: sent as they are; the latter are shown nowhere.

    Raises:
        ConfigError: `base_url` is not an http or https address, or holds a secret, or the environment names a proxy of
            another kind than HTTP for it.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None,
        connections: Connections,
        *,
        key_header: str | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        secret_headers: Mapping[str, str] | None = None,
    ) -> None:
        parts = split_address(base_url)
        self.connections = connections
        self.base_url = base_url.rstrip("/").removesuffix("/chat/completions").rstrip("/")
        self.host = parts.hostname or ""
        self.query = dict(query or {})
        self.headers = dict(headers or {})
        proxy = _proxy(parts.scheme, self.host)
        self._proxy = SecretStr(proxy) if proxy else None
        self._secret_headers = {name: SecretStr(value) for name, value in (secret_headers or {}).items()}
        if key:
            bearer = key_header is None or key_header.lower() == "authorization"
            self._secret_headers[key_header or "Authorization"] = SecretStr(
                f"Bearer {key}" if bearer else key
            )
        for value in [key, *(secret_headers or {}).values()]:
            if value:
                connections.secrets.add(value)
        if proxy:
            connections.secrets.add_address(proxy)

    @property
    def proxy(self) -> str | None:
        """The address of the proxy, with its password, or None if there is none."""
        return None if self._proxy is None else self._proxy.get_secret_value()

    def all_headers(self) -> dict[str, str]:
        """All headers that are sent, secrets included."""
        secret = {name: value.get_secret_value() for name, value in self._secret_headers.items()}
        return {"Content-Type": "application/json", **self.headers, **secret}


def split_address(base_url: str) -> SplitResult:
    """The parts of an endpoint's address. Another text is a `ConfigError`, which repeats no secret in it."""
    if "@" in base_url:
        raise ConfigError(
            "base_url has a user name or an @; name a variable with the key in api_key_env instead.", _WHERE
        )
    if "?" in base_url or "#" in base_url:
        raise ConfigError(
            "base_url holds a query; put its parts into the key query, or name a variable in api_key_env.",
            _WHERE,
        )
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not base_url.isprintable() or " " in base_url:
        raise ConfigError(
            f"base_url {base_url!r} is not an address such as https://api.openai.com/v1.", _WHERE
        )
    return parts


def _proxy(scheme: str, host: str) -> str | None:
    """The proxy that the environment names for this host, if any; a host on this machine needs none.

    Raises:
        ConfigError: it is no HTTP proxy.
    """
    proxies = getproxies()
    proxy = (proxies.get(scheme) or proxies.get("all") or "").strip()
    if not proxy or is_loopback(host) or proxy_bypass(host):
        return None
    kind, separator, _ = proxy.partition("://")
    if not separator:
        return f"http://{proxy}"
    if kind.lower() not in ("http", "https"):
        raise ConfigError(
            f"the environment names the proxy {redact_url(proxy)} for {host}, and Podium speaks to HTTP proxies "
            f"only; set {scheme.upper()}_PROXY to one, or add {host} to NO_PROXY.",
            _WHERE,
        )
    return proxy


@lru_cache(256)
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address. Of all names, only "localhost" counts."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CLIENT_HEADERS = frozenset(
    {"host", "content-type", "content-length", "transfer-encoding", "connection", "accept-encoding", "expect"}
)


def check_names(names: Iterable[str]) -> None:
    """Refuse invalid header names, duplicates, and headers that the client sets itself, by a `ValueError`."""
    seen: set[str] = set()
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no valid header name; use letters, digits and '-'.")
        if name.lower() in _CLIENT_HEADERS:
            raise ValueError(f"the client sets the header {name} itself; leave it out.")
        if name.lower() in seen:
            raise ValueError(f"the header {name} is given twice; leave one out.")
        seen.add(name.lower())


def check_plain(headers: dict[str, str]) -> dict[str, str]:
    """The headers. A value that cannot be sent, or a header that is most likely a secret, raises a `ValueError`, which
    does not repeat the value."""
    for name, value in headers.items():
        if looks_secret(name):
            raise ValueError(
                f"the header {name} looks like a secret; put its value into an environment variable and that "
                "variable's name into headers_env."
            )
        if not (value.isascii() and value.isprintable() and value.strip()):
            raise ValueError(f"the value of the header {name} cannot be sent; use plain ASCII on one line.")
    return headers


def check_query(query: dict[str, str]) -> dict[str, str]:
    """The query. A secret in it raises a `ValueError`, since proxies and servers write the query into their logs."""
    for name in query:
        if looks_secret(name):
            raise ValueError(
                f"{name!r} looks like a secret; send it as a header, by api_key_env or headers_env."
            )
    return query
