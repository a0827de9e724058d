"""Replies that refuse: a status other than 200, in the forms that providers, gateways and proxies write."""

from __future__ import annotations

import math
import time
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Literal

from pydantic import Field

from podium_testing.completion import error
from podium_testing.exchange import Exchange, Fault

HTML = "text/html; charset=utf-8"


class Status(Fault):
    """An error of any status."""

    kind: Literal["status"] = "status"
    code: int = Field(ge=400, le=599)
    form: Literal["openai", "html", "text", "empty"] = "openai"
    """The form of the body. Gateways and proxies in front of a provider write HTML, or nothing."""
    message: str | None = None
    """The text. Default: the standard text of the status."""

    async def serve(self, exchange: Exchange) -> None:
        message = self.message or _phrase(self.code)
        match self.form:
            case "openai":
                await exchange.send_json(error(message, _kind(self.code), self.code), code=self.code)
            case "html":
                page = f"<html><head><title>{self.code} {message}</title></head><body>{message}</body></html>"
                await exchange.send(page.encode(), HTML, code=self.code)
            case "text":
                await exchange.send(message.encode(), "text/plain; charset=utf-8", code=self.code)
            case "empty":
                await exchange.send(b"", "text/plain", code=self.code)


class RateLimited(Fault):
    """429: too many requests."""

    kind: Literal["rate-limited"] = "rate-limited"
    retry_after: float | str | None = None
    """The Retry-After header: seconds, or any text. Without it, there is no such header."""
    as_date: bool = False
    """Whether the header has the seconds as a date, rounded up to a whole second."""
    message: str = "Rate limit reached for requests."

    async def serve(self, exchange: Exchange) -> None:
        await refuse_limited(exchange, self.message, _header(self.retry_after, as_date=self.as_date))


class Redirect(Fault):
    """A redirect to another address."""

    kind: Literal["redirect"] = "redirect"
    to: str
    """An address, or a path on this server."""
    code: Literal[301, 302, 303, 307, 308] = 307

    async def serve(self, exchange: Exchange) -> None:
        await exchange.send(b"", "text/plain", code=self.code, headers={"Location": self.to})


class EchoHeaders(Fault):
    """An error that repeats the request's headers, with the API key, which a client must neither show nor store."""

    kind: Literal["echo-headers"] = "echo-headers"
    code: int = Field(default=401, ge=400, le=599)

    async def serve(self, exchange: Exchange) -> None:
        received = "; ".join(f"{name}: {value}" for name, value in exchange.request.headers.items())
        headers = {f"X-Echo-{name}": value for name, value in exchange.request.headers.items()}
        payload = error(f"Refused a request with the headers {received}", _kind(self.code), self.code)
        await exchange.send_json(payload, code=self.code, headers=headers)


async def refuse_limited(exchange: Exchange, message: str, retry_after: str | None) -> None:
    """429 in OpenAI's form, with a Retry-After if one is given."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    payload: dict[str, Any] = error(message, "requests", "rate_limit_exceeded")
    await exchange.send_json(payload, code=429, headers=headers)


def _header(retry_after: float | str | None, *, as_date: bool) -> str | None:
    if isinstance(retry_after, int | float):
        # A date has whole seconds. If it were rounded down, the client would retry too early.
        return (
            formatdate(math.ceil(time.time() + retry_after), usegmt=True) if as_date else f"{retry_after:g}"
        )
    return retry_after


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return f"Error {code}"


def _kind(code: int) -> str:
    known = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
    return known.get(code, "server_error" if code >= 500 else "invalid_request_error")
