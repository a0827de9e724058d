"""A worker behind any OpenAI-compatible endpoint, and the thin client that it uses.

One call is one attempt: retries, rates and concurrency are the executor's. No streaming, no tools. The key
is sent in one header and nowhere else; whatever an endpoint says is scrubbed of it before it is repeated.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from pydantic import SecretStr

from podium.errors import ConfigError, WorkerError
from podium.types import Limits, Message, Profile, Usage, estimate_tokens
from podium.workers.base import Reply, Request
from podium.workers.connections import Connections

_SHOWN = 300
"""Characters of an endpoint's error that a message repeats."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What an endpoint answered."""

    text: str
    usage: Usage


class ChatClient:
    """Posts to one endpoint's /chat/completions.

    Args:
        base_url: up to and without /chat/completions, as in "https://api.openai.com/v1".
        key: sent as a bearer token; None: no such header.
        connections: shared with other clients; None: its own.

    Raises:
        ConfigError: `base_url` is not an http or https address.
    """

    def __init__(
        self, base_url: str, key: str | None = None, *, connections: Connections | None = None
    ) -> None:
        parts = _address(base_url)
        self.base_url = base_url.rstrip("/").removesuffix("/chat/completions")
        self._key = SecretStr(key) if key else None
        self._connections = connections or Connections()
        # OpenAI's newer models refuse the name that every other server knows.
        self._max_tokens_key = "max_completion_tokens" if parts.hostname == "api.openai.com" else "max_tokens"
        self._proxy = _proxy(parts.scheme, parts.hostname or "")

    def __repr__(self) -> str:
        return f"ChatClient({self.base_url!r})"

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        model: str,
        timeout: float = 120.0,  # noqa: ASYNC109 - a limit of the worker's, told to the user as such
        max_tokens: int | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> ChatReply:
        """One attempt at one completion.

        Args:
            messages: what is sent, oldest first.
            model: the endpoint's name for the model.
            timeout: seconds for the whole call.
            max_tokens, temperature, seed: left to the endpoint where None.
            extra: further keys of the body; they win over the others.

        Raises:
            WorkerError: anything but a text came back.
        """
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": m.role, "content": m.content} for m in messages],
        }
        settings = {self._max_tokens_key: max_tokens, "temperature": temperature, "seed": seed}
        body |= {name: value for name, value in settings.items() if value is not None}
        if extra:
            if "max_tokens" in extra or "max_completion_tokens" in extra:
                body.pop(self._max_tokens_key, None)
            body |= extra
        try:
            async with asyncio.timeout(timeout):
                status, headers, content = await self._post(json.dumps(body).encode())
        except TimeoutError:
            raise self._error(f"no reply within {timeout:g} s", "timeout", passing=True) from None
        except aiohttp.ClientConnectorCertificateError as error:
            raise self._error(f"its certificate is not trusted ({error})", "connection") from None
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise self._error(f"the connection failed ({reason})", "connection", passing=True) from None
        except aiohttp.ClientError as error:
            raise self._error(f"the reply is not HTTP ({error})", "protocol") from None
        if status != 200:
            raise self._refusal(status, headers, content)
        return self._read(content, messages)

    async def close(self) -> None:
        """Give back the connections, also those shared with other clients; a later call opens new ones."""
        await self._connections.close()

    async def _post(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        session = await self._connections.session()
        headers = {"Content-Type": "application/json"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key.get_secret_value()}"
        # A redirect would send the key to another address, and turn the POST into a GET.
        async with session.post(
            f"{self.base_url}/chat/completions",
            data=body,
            headers=headers,
            allow_redirects=False,
            proxy=self._proxy,
        ) as response:
            return response.status, response.headers, await response.read()

    def _read(self, content: bytes, messages: Sequence[Message]) -> ChatReply:
        try:
            reply = json.loads(content)
        except (ValueError, RecursionError):
            said = self._said(content)
            raise self._error(f"the reply is not JSON: {said} (is base_url right?)", "protocol") from None
        if isinstance(reply, dict) and reply.get("error"):
            # Some gateways report their provider's failure inside a 200.
            error = reply["error"]
            code = error.get("code") if isinstance(error, dict) else None
            raise self._refusal(code if isinstance(code, int) else 200, {}, content)
        try:
            choice = reply["choices"][0]
            message = choice["message"]
            text = message.get("content")
        except (KeyError, IndexError, TypeError, AttributeError):
            raise self._error(f"the reply has no choices: {self._said(content)}", "protocol") from None
        if isinstance(text, list):
            text = "".join(str(part.get("text") or "") for part in text if isinstance(part, dict))
        if not isinstance(text, str) or not text.strip():
            raise self._empty(choice.get("finish_reason"), message.get("refusal"))
        return ChatReply(text, _usage(reply.get("usage"), messages, text))

    def _empty(self, reason: object, refusal: object) -> WorkerError:
        if refusal or reason == "content_filter":
            return self._error(f"it refused: {self._clean(str(refusal or reason))}", "refused")
        if reason == "length":
            return self._error(
                "it reached max_tokens before it wrote any answer; raise max_tokens", "protocol"
            )
        return self._error(f"the reply has no text (finish_reason {reason!r})", "protocol")

    def _refusal(self, status: int, headers: Mapping[str, str], content: bytes) -> WorkerError:
        passing = status in (408, 429) or status >= 500
        way_out = {
            401: " (is the key right?)",
            403: " (is the key right?)",
            404: " (are base_url and model right?)",
        }
        return self._error(
            f"status {status}: {self._said(content)}{way_out.get(status, '')}",
            "status",
            passing=passing,
            retry_after_s=_retry_after(headers.get("Retry-After")) if passing else None,
        )

    def _error(
        self, what: str, kind: str, *, passing: bool = False, retry_after_s: float | None = None
    ) -> WorkerError:
        return WorkerError(
            f"{self.base_url}: {self._clean(what)}.", kind=kind, passing=passing, retry_after_s=retry_after_s
        )

    def _said(self, content: bytes) -> str:
        """What an endpoint wrote about its failure: its own sentence if it has one, else the body; short."""
        text = content.decode("utf-8", "replace")
        try:
            error = json.loads(text)
            error = error.get("error", error)
            text = str(error.get("message") or text) if isinstance(error, dict) else str(error)
        except (ValueError, AttributeError, RecursionError):
            pass
        # Scrubbed before it is cut: half a key is a secret too.
        text = " ".join(self._clean(text).split()).rstrip(".")
        return (text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…") or "(an empty body)"

    def _clean(self, text: str) -> str:
        return text if self._key is None else text.replace(self._key.get_secret_value(), "***")


class OpenAIWorker:
    """A model behind a `ChatClient`."""

    def __init__(
        self,
        profile: Profile,
        client: ChatClient,
        model: str,
        *,
        limits: Limits | None = None,
        fallback: str | None = None,
        system: str | None = None,
        temperature: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.profile = profile
        self.limits = limits or Limits()
        self.fallback = fallback
        self._client = client
        self._model = model
        self._system = (Message(role="system", content=system),) if system else ()
        self._temperature = temperature
        self._extra = dict(extra or {})

    def __repr__(self) -> str:
        return f"OpenAIWorker({self.profile.name!r}, {self._model!r}, {self._client!r})"

    @property
    def identity(self) -> Mapping[str, Any] | None:
        return {
            "kind": "openai",
            "url": self._client.base_url,
            "model": self._model,
            "system": [message.content for message in self._system],
            "max_tokens": self.limits.max_tokens,
            "temperature": self._temperature,
            "extra": self._extra,
        }

    async def answer(self, request: Request) -> Reply:
        """One attempt. The request's seed is not sent: endpoints do not keep what it promises."""
        reply = await self._client.chat(
            self._system + request.messages,
            model=self._model,
            timeout=self.limits.timeout,
            max_tokens=self.limits.max_tokens,
            temperature=self._temperature,
            extra=self._extra,
        )
        return Reply(reply.text, reply.usage)

    async def close(self) -> None:
        """Give back the connections."""
        await self._client.close()


def _usage(said: object, messages: Sequence[Message], text: str) -> Usage:
    """The provider's count; where a part of it is missing, ours, and marked so."""
    counts = said if isinstance(said, dict) else {}
    sent, written = (
        count if isinstance(count, int) and count >= 0 else None
        for count in (counts.get("prompt_tokens"), counts.get("completion_tokens"))
    )
    estimated = sent is None or written is None
    if sent is None:
        sent = sum(estimate_tokens(message.content) for message in messages)
    if written is None:
        written = estimate_tokens(text)
    return Usage(input_tokens=sent, output_tokens=written, estimated=estimated)


def _retry_after(header: str | None) -> float | None:
    """Seconds to wait from a Retry-After header: a number of seconds or an HTTP date (RFC 9110, 10.2.3)."""
    if header is None:
        return None
    try:
        if header.strip()[:1].isdecimal():
            return float(header)
        then = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, (then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _address(base_url: str) -> SplitResult:
    """The parts of an endpoint's address, or a `ConfigError`; one that holds a secret is not repeated."""
    if "@" in base_url or "?" in base_url:
        raise ConfigError("base_url holds a user name or a query; name a variable in api_key_env instead.")
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"base_url {base_url!r} is not an address such as https://api.openai.com/v1.")
    return parts


def _proxy(scheme: str, host: str) -> str | None:
    """The proxy that the environment names for this host, if any."""
    proxy = getproxies().get(scheme, "")
    return proxy if proxy.startswith("http") and not proxy_bypass(host) else None
