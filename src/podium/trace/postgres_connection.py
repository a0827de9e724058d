"""The address of a PostgreSQL database. No message shows its password.

The address reads "postgresql://user:password@host:port/database" and "postgresql+asyncpg://...".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qsl, unquote, urlsplit

from podium.errors import UsageError

_FORM = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
_SCHEMES = ("postgresql+asyncpg", "postgresql", "postgres")
_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where a database is."""

    shown: str
    """The address for messages, without user and password."""
    dsn: str = field(repr=False)
    """The address for the driver, with the password."""
    secrets: tuple[str, ...] = field(repr=False, default=())

    @classmethod
    def read(cls, text: str) -> Self:
        """The address in `text`.

        Raises:
            UsageError: it is not an address. The message does not repeat it: it may have a password.
        """
        scheme, _, rest = text.strip().partition("://")
        if scheme not in _SCHEMES:
            raise UsageError(f"{scheme[:40]}:// is not a trace store; give a file, or {_FORM}.")
        dsn = f"postgresql://{rest}"
        try:
            parts = urlsplit(dsn)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            host, port = "", None
            parts = urlsplit("")
        # An unescaped / ? # or @ in the password ends it early, and its rest looks like a path.
        if not host or "@" in parts.path + parts.query + parts.fragment or not parts.path.strip("/"):
            raise UsageError(
                f"The address of the store cannot be read; write {_FORM}, and in the password %40 for @, %2F for /, "
                "%3A for :, %3F for ?, %23 for # and %25 for %."
            )
        secrets = {parts.password or ""}
        secrets |= {value for name, value in parse_qsl(parts.query) if "password" in name}
        secrets |= {unquote(secret) for secret in secrets}
        place = host if port is None else f"{host}:{port}"
        return cls(
            f"postgresql://{place}{parts.path}", dsn, tuple(sorted(secrets - {""}, key=len, reverse=True))
        )

    def scrub(self, text: object) -> str:
        """`text` without the password."""
        scrubbed = str(text)
        for secret in self.secrets:
            scrubbed = scrubbed.replace(secret, _HIDDEN)
        return scrubbed
