"""Removes the secrets of a pool from text.

A message of a provider, a proxy or a library may repeat a key. `Secrets` has all keys that a pool reads. Every worker
uses it to scrub errors and replies before they are cut, kept or shown.
"""

from __future__ import annotations

import html
import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

from podium.errors import ConfigError
from podium.trace import Reply
from podium.types import ToolCall

REDACTED = "***"
"""The text that replaces each secret."""

_SHORTEST = 8
"""The fewest characters of a secret. Removing shorter values ("EMPTY", "ollama") would only spoil answers."""

_KEY = re.compile(r"(?=.*[a-z])(?=.*\d)\w{20,}")
"""Matches a string that looks like a key, although it could be the name of a variable."""


class Secrets:
    """The secrets that are removed from texts. The workers of a pool share it, and it grows while the pool is read."""

    __slots__ = ("_forms", "_longest")

    def __init__(self) -> None:
        self._forms: tuple[str, ...] = ()
        self._longest = 0

    @classmethod
    def of_proxies(cls, environment: Mapping[str, str] | None = None) -> Secrets:
        """The passwords of the proxies that an environment names. Default: the environment of this process."""
        secrets = cls()
        for name, address in (os.environ if environment is None else environment).items():
            if name.lower().endswith("_proxy"):
                secrets.add_address(address)
        return secrets

    def __repr__(self) -> str:
        return "Secrets(***)"

    def add(self, value: str) -> None:
        """Add a secret, which is then removed in every form in which a message is likely to repeat it.

        The forms are: plain, quoted for a URL, escaped for JSON, HTML or Python, and in base64, also within other text.
        If the value is like "Bearer KEY", the second word alone is removed too. Spaces around the value do not count. A
        value of fewer than 8 characters is not removed.
        """
        value = value.strip()
        if len(words := value.split()) == 2:
            self.add(words[1])
        if len(value) < _SHORTEST:
            return
        forms = {form for form in (value, *_escaped(value), *_encoded(value)) if len(form) >= _SHORTEST}
        # The longest form comes first, since replacing a shorter form within it would leave the ends of the longer.
        self._forms = tuple(sorted(forms.union(self._forms), key=lambda form: (-len(form), form)))
        self._longest = len(self._forms[0])

    def add_address(self, address: str) -> None:
        """Add the password of a URL, alone and together with the user name, if the URL has one."""
        user, at, _ = address.partition("://")[2].partition("/")[0].rpartition("@")
        if not at:
            return
        name, _, password = user.partition(":")
        for value in (user, password, f"{unquote(name)}:{unquote(password)}", unquote(password)):
            self.add(value)

    def partial_secret_start(self, text: str) -> int:
        """The position where a secret may begin that the end of `text` cuts off. The length of `text` if there is
        none."""
        start = max(0, len(text) - self._longest)
        return next(
            (at for at in range(start, len(text)) if any(form.startswith(text[at:]) for form in self._forms)),
            len(text),
        )

    def scrub(self, text: str) -> str:
        """The text with every secret replaced by "***", including a secret that the end of the text cuts off."""
        if not self._forms:
            return text
        for form in self._forms:
            if form in text:
                text = text.replace(form, REDACTED)
        start = max(0, len(text) - self._longest)
        tail = text[start:]
        cuts = [at for form in self._forms if (at := _cut_off(tail, form)) is not None]
        return text[: start + min(cuts)] + REDACTED if cuts else text

    def scrub_values(self, value: Any) -> Any:
        """JSON data in which every string is scrubbed, also in nested lists and objects. Keys of objects stay."""
        if not self._forms:
            return value
        if isinstance(value, str):
            return self.scrub(value)
        if isinstance(value, dict):
            return {name: self.scrub_values(item) for name, item in value.items()}
        return [self.scrub_values(item) for item in value] if isinstance(value, list) else value

    def scrub_reply(self, reply: Reply) -> Reply:
        """The reply with every text scrubbed that its worker wrote or sent."""
        if not self._forms:
            return reply
        names = {name: getattr(reply, name) for name in ("finish", "model", "fingerprint")}
        calls = (self.scrub_values(call.model_dump()) for call in reply.tool_calls)
        return replace(
            reply,
            text=self.scrub(reply.text),
            reasoning=self.scrub(reply.reasoning),
            provider_state=self.scrub(reply.provider_state),
            tool_calls=tuple(map(ToolCall.model_validate, calls)),
            parameters=self.scrub_values(reply.parameters),
            **self.scrub_values(names),
        )


def read_key(variable: str, *, where: tuple[str, ...] = ("api_key_env",)) -> str:
    """The secret in an environment variable.

    Args:
        where: the path of the setting that names the variable, in its table of the file.

    Raises:
        ConfigError: the variable is not set, is empty, or could not be sent as a header.
    """
    key = os.environ.get(variable, "").strip()
    names = ".".join(where)
    if not key and (not variable.isidentifier() or _KEY.fullmatch(variable)):
        # The name is most likely the key itself, so the message does not repeat it.
        raise ConfigError(f"{names} must be the name of an environment variable, not a key.", where)
    if not key:
        raise ConfigError(
            f"the environment variable {variable} is not set; put the key there, or leave {names} out if none is "
            "needed.",
            where,
        )
    one_word = where == ("api_key_env",)
    if not (key.isascii() and key.isprintable()) or (one_word and " " in key):
        raise ConfigError(f"the environment variable {variable} does not hold a usable key.", where)
    return key


def redact_url(url: str) -> str:
    """A URL as messages may repeat it: without user name, query and fragment, which may be secrets."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return REDACTED
    return parts._replace(netloc=host, query="", fragment="").geturl()


def looks_secret(name: str) -> bool:
    """Whether a header, query parameter or key of this name most likely holds a secret."""
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
    """Pieces of base64. The base64 of any text with `value` in it contains one of them."""
    data = value.encode()
    for before in range(3):
        whole = b"\0" * before + data
        # A character encodes six bits. Characters at the ends also depend on the neighbours, so they are left out.
        first, last = -(-before * 8 // 6), len(whole) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            encoded = encode(whole).decode()
            yield encoded[first:last]
            if not before:
                yield encoded
                yield encoded.rstrip("=")


def _cut_off(tail: str, form: str) -> int | None:
    """The position from which `tail` equals the beginning of `form`, for at least 8 characters. None if there is
    none."""
    at = tail.find(form[:_SHORTEST])
    while at >= 0:
        if form.startswith(tail[at:]):
            return at
        at = tail.find(form[:_SHORTEST], at + 1)
    return None
