"""The secrets of a pool, and the taking of them out of text.

Whatever a provider, a proxy or a library says may hold a key that it was sent. One value knows all that a pool
reads; every kind of worker has its messages and responses scrubbed by it before they are cut, kept or shown.
A secret that was not added is not found.
"""

from __future__ import annotations

import html
import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote, urlsplit

from podium.errors import ConfigError

HIDDEN = "***"
"""What stands where a secret stood."""

_SHORTEST = 8
"""Characters. A shorter value ("EMPTY", "ollama") guards nothing, and to take it out would spoil answers."""

_KEY = re.compile(r"(?=.*[a-z])(?=.*\d)\w{20,}")
"""What a key looks like that could also name a variable."""


class Secrets:
    """Grows as a pool is read; shared by its workers."""

    __slots__ = ("_forms", "_longest")

    def __init__(self) -> None:
        self._forms: tuple[str, ...] = ()
        self._longest = 0

    @classmethod
    def of_proxies(cls, environment: Mapping[str, str] | None = None) -> Secrets:
        """Those in the addresses of proxies that an environment names (by default that of this process)."""
        secrets = cls()
        for name, address in (os.environ if environment is None else environment).items():
            if name.lower().endswith("_proxy"):
                secrets.add_address(address)
        return secrets

    def __repr__(self) -> str:
        return "Secrets(***)"

    def add(self, value: str) -> None:
        """From now on, `value` is taken out in every form in which it is likely to come back.

        That is plain, quoted for a URL, escaped for JSON, HTML or Python, and in base64, alone or with other text
        around it. Of a value such as "Bearer KEY" the second word alone is a secret too. Blank ends are no part of
        it; one of fewer than 8 characters is not taken out.
        """
        value = value.strip()
        if len(words := value.split()) == 2:
            self.add(words[1])
        if len(value) < _SHORTEST:
            return
        forms = {form for form in (value, *_escaped(value), *_encoded(value)) if len(form) >= _SHORTEST}
        # The longest first: a form that holds another would leave its ends behind.
        self._forms = tuple(sorted(forms.union(self._forms), key=lambda form: (-len(form), form)))
        self._longest = len(self._forms[0])

    def add_address(self, address: str) -> None:
        """The user name and password that a URL holds, together and the password alone; none: nothing is added."""
        user, at, _ = address.partition("://")[2].partition("/")[0].rpartition("@")
        if not at:
            return
        name, _, password = user.partition(":")
        for value in (user, password, f"{unquote(name)}:{unquote(password)}", unquote(password)):
            self.add(value)

    def open_end(self, text: str) -> int:
        """Where a secret may begin that `text` does not hold to its end; its length, if none does."""
        start = max(0, len(text) - self._longest)
        return next(
            (at for at in range(start, len(text)) if any(form.startswith(text[at:]) for form in self._forms)),
            len(text),
        )

    def scrub(self, text: str) -> str:
        """`text` with every secret replaced by "***", also one whose rest was cut off by the end of the text."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        start = max(0, len(text) - self._longest)
        tail = text[start:]
        cuts = [at for form in self._forms if (at := _cut_off(tail, form)) is not None]
        return text[: start + min(cuts)] + HIDDEN if cuts else text


def read_key(
    variable: str,
    needed_by: str,
    environment: Mapping[str, str] | None = None,
    *,
    where: tuple[str, ...] = ("api_key_env",),
) -> str:
    """The secret in an environment variable (by default of this process).

    Args:
        needed_by: who needs it, for the message.
        where: the key that names the variable, in its table of the file.

    Raises:
        ConfigError: it is not set, is empty, or could not be sent as a header.
    """
    key = (os.environ if environment is None else environment).get(variable, "").strip()
    names = ".".join(where)
    if not key and (not variable.isidentifier() or _KEY.fullmatch(variable)):
        # Most likely the key itself, so it is not repeated.
        raise ConfigError(
            f"{needed_by}: {names} must be the name of an environment variable, not a key.", where
        )
    if not key:
        raise ConfigError(
            f"{needed_by}: the environment variable {variable} is not set; put the key there, or leave "
            f"{names} out where none is needed.",
            where,
        )
    one_word = where == ("api_key_env",)
    if not (key.isascii() and key.isprintable()) or (one_word and " " in key):
        raise ConfigError(
            f"{needed_by}: the environment variable {variable} does not hold a usable key.", where
        )
    return key


def address_shown(url: str) -> str:
    """A URL as it may be repeated: without user name, query and fragment, where its own secrets are."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return HIDDEN
    return parts._replace(netloc=host, query="", fragment="").geturl()


def looks_secret(name: str) -> bool:
    """Whether a header, a part of a query or a key of this name most likely holds a secret."""
    return bool(
        re.search(r"auth(?!ors?\b)|cookie|key|token\b|secret|passw|^(code|sig)$", name, re.IGNORECASE)
    )


def _escaped(value: str) -> Iterator[str]:
    for quoted in (quote(value, safe=""), quote(value), quote_plus(value)):
        yield quoted
        yield re.sub("%[0-9A-F]{2}", lambda hexes: hexes[0].lower(), quoted)
    for ascii_only in (True, False):
        escaped = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        yield escaped.replace("/", "\\/")
    yield html.escape(value)
    yield html.escape(value, quote=False)
    yield repr(value)[1:-1]


def _encoded(value: str) -> Iterator[str]:
    """What base64 of any text that holds `value` must hold, whatever stands before and after it."""
    data = value.encode()
    for before in range(3):
        whole = b"\0" * before + data
        # A character stands for six bits: those at the ends depend on the neighbours too, and are left out.
        first, last = -(-before * 8 // 6), len(whole) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            encoded = encode(whole).decode()
            yield encoded[first:last]
            if not before:
                yield encoded
                yield encoded.rstrip("=")


def _cut_off(tail: str, form: str) -> int | None:
    """Where in `tail` its last characters begin to be the first of `form`, at least 8 of them."""
    at = tail.find(form[:_SHORTEST])
    while at >= 0:
        if form.startswith(tail[at:]):
            return at
        at = tail.find(form[:_SHORTEST], at + 1)
    return None
