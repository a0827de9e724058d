"""Where chats are posted, and the headers that go with them.

Reads the environment's proxies. Secrets are told to the pool's `Secrets`, and shown by nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import SecretStr

from podium.errors import ConfigError
from podium.workers.secrets import Secrets


class Endpoint:
    """One endpoint's address and headers.

    Args:
        base_url: up to and without /chat/completions, as in "https://api.openai.com/v1".
        key: sent in `key_header`; None: no such header.
        secrets: learns the key and the secret headers.
        key_header: None or "Authorization": as "Bearer KEY"; else, as in "api-key", the bare key.
        query: added to the address, as in {"api-version": "2024-10-21"}.
        headers: sent as they are.
        secret_headers: too, and shown nowhere.

    Raises:
        ConfigError: `base_url` is not an http or https address, or holds a secret.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None,
        secrets: Secrets,
        *,
        key_header: str | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        secret_headers: Mapping[str, str] | None = None,
    ) -> None:
        parts = _address(base_url)
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
                secrets.add(value)
        if proxy:
            secrets.add_address(proxy)

    def __repr__(self) -> str:
        return f"Endpoint({self.base_url!r})"

    @property
    def url(self) -> str:
        """What is posted to, the query apart."""
        return f"{self.base_url}/chat/completions"

    @property
    def proxy(self) -> str | None:
        """The address of the proxy on the way, with its password; None: there is none."""
        return None if self._proxy is None else self._proxy.get_secret_value()

    def all_headers(self) -> dict[str, str]:
        """Everything that is sent, secrets too."""
        secret = {name: value.get_secret_value() for name, value in self._secret_headers.items()}
        return {"Content-Type": "application/json", **self.headers, **secret}


def _address(base_url: str) -> SplitResult:
    """The parts of an endpoint's address, or a `ConfigError`; one that holds a secret is not repeated."""
    if "@" in base_url:
        raise ConfigError("base_url holds a user name or a query; name a variable in api_key_env instead.")
    if "?" in base_url or "#" in base_url:
        raise ConfigError(
            "base_url holds a query; put its parts into the key query, or name a variable in api_key_env."
        )
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not base_url.isprintable() or " " in base_url:
        raise ConfigError(f"base_url {base_url!r} is not an address such as https://api.openai.com/v1.")
    return parts


def _proxy(scheme: str, host: str) -> str | None:
    """The proxy that the environment names for this host, if any."""
    proxy = getproxies().get(scheme, "")
    return proxy if proxy.startswith("http") and not proxy_bypass(host) else None
