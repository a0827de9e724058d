"""Turns a failure of an endpoint or a connection into a `WorkerError`: what happened, whether to retry, what to do.

It understands the error bodies of providers, gateways and servers; `retry_hints` reads when to retry, and
`unsupported_parameters` what an endpoint does not take. It removes the pool's secrets from a message before it cuts the
message. It raises nothing itself.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError

from podium.errors import WorkerError, WorkerErrorKind
from podium.workers.chat.reply_builder import ReplyBuilder
from podium.workers.chat.retry_hints import retry_after
from podium.workers.redaction import Secrets, redact_url

_SHOWN_CHARS = 300
"""Characters of an endpoint's message that an error repeats."""
_READ = 1 << 16
"""Characters of that message that are read."""

_WAY_OUT = {
    401: " (is the key right?)",
    402: " (pay the provider, or take another worker)",
    403: " (is the key right, and may it use this model?)",
    404: " (are base_url and model right?)",
    405: " (is base_url right?)",
    407: " (is the proxy's password right?)",
    413: " (the messages are too long for it)",
}
_RETRYABLE = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class Failures:
    """Makes the errors of one endpoint; each method is one kind of failure."""

    shown: str
    """The endpoint's address, as messages name it."""
    secrets: Secrets
    """They are removed from all messages."""

    def error(
        self,
        what: str,
        kind: WorkerErrorKind,
        *,
        retryable: bool = False,
        retry_after_s: float | None = None,
        reported: ProviderError | None = None,
    ) -> WorkerError:
        """The error with one sentence: the endpoint, a colon, and `what`; `reported`: the endpoint's own."""
        sentence = f"{self.secrets.scrub(f'{self.shown}: {what}')}."
        error_class = WorkerError if reported is None else RequestRejectedError
        error = error_class(sentence, kind=kind, retryable=retryable, retry_after_s=retry_after_s)
        if isinstance(error, RequestRejectedError) and reported is not None:
            error.reported = reported
        return error

    def quoted(self, text: str) -> str:
        """An endpoint's message in one line, without secrets, and short."""
        # Scrubbed before it is cut, since half a key is a secret too. Control characters become blanks.
        text = self.secrets.scrub(text[:_READ])
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        text = self.secrets.scrub(text).rstrip(".")
        return (text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…") or "(an empty body)"

    def status(self, status: int, headers: Mapping[str, str], provider_error: ProviderError) -> WorkerError:
        """The response has an error status, or its body names one."""
        if provider_error.says(_FILTERED) and status < 500:
            return self.error(f"it refused: {self.quoted(provider_error.text)}", "content_filter")
        out_of_credit = provider_error.says(_OUT_OF_CREDIT) or status == 402
        retryable = not out_of_credit and (status in _RETRYABLE or status >= 500)
        way_out = _WAY_OUT[402] if out_of_credit else _WAY_OUT.get(status, "")
        unknown_model = provider_error.says(_UNKNOWN_MODEL) or _NO_MODEL.search(provider_error.text.lower())
        if not out_of_credit and 400 <= status < 500 and unknown_model:
            way_out = " (is model right?)"
        kind: WorkerErrorKind = "rate_limited" if status == 429 else "status"
        if provider_error.says(_TOO_LONG) and status < 500 and status != 429:
            kind, way_out = "context", _WAY_OUT[413]
        hint = retry_after(headers, provider_error.body, provider_error.text, limited=status == 429)
        return self.error(
            f"status {status}: {self.quoted(provider_error.text)}{way_out}",
            kind,
            retryable=retryable,
            retry_after_s=hint if retryable else None,
            reported=replace(provider_error, status=status),
        )

    def redirect(self, status: int, location: str) -> WorkerError:
        """The endpoint redirects. To follow would send the key elsewhere, and turn the POST into a GET."""
        to = self.quoted(redact_url(location)) if location else "nowhere"
        return self.error(
            f"status {status}: it redirects to {to}; put the right address into base_url", "status"
        )

    def reported(
        self, headers: Mapping[str, str], provider_error: ProviderError, *, begun: bool
    ) -> WorkerError:
        """A reply of status 200 reports an error; `begun`: after part of the answer."""
        statuses = ((_LIMITED, 429), (_OVERLOADED, 503), (_OUT_OF_CREDIT, 402), (_FILTERED, 200))
        implied = (status for pattern, status in statuses if provider_error.says(pattern))
        status = provider_error.status or next(implied, None)
        if status is not None:
            return self.status(status, headers, provider_error)
        return self.error(
            f"it reports an error: {self.quoted(provider_error.text)}",
            "status",
            retryable=begun,
            reported=provider_error,
        )

    def malformed(self, content: bytes) -> WorkerError:
        """The reply is not JSON: cut off, or something else."""
        start = content.lstrip()[:1]
        text = content.decode("utf-8", "replace")
        if start in (b"", b"{", b"[") or (start != b"<" and "\ufffd" in text):
            what = f"the reply is cut off or garbled: {self.quoted(text)}"
        else:  # Most likely the address is wrong; but busy gateways send HTML pages too.
            form = "a page and not JSON" if start == b"<" else "not JSON"
            what = f"the reply is {form}: {self.quoted(text)} (is base_url right?)"
        return self.error(what, "protocol", retryable=True)

    def too_big(self, most: str) -> WorkerError:
        """The reply is larger than Podium reads: `most`, as in "8 MiB"."""
        return self.error(
            f"the reply is over {most}, and is not read further (is base_url right?)", "protocol"
        )

    def no_choices(self, message: str, *, retryable: bool) -> WorkerError:
        """The reply is JSON without choices."""
        return self.error(
            f"the reply has no choices: {self.quoted(message)}", "protocol", retryable=retryable
        )

    def no_text(self, builder: ReplyBuilder, *, cut_call: bool) -> WorkerError:
        """The reply has neither text nor a usable tool call; or, with `cut_call`, its tool call was cut off."""
        finish = builder.finish
        if builder.refusal or finish == "content_filter":
            reason = builder.refusal or builder.finish_word or ""
            return self.error(f"it refused: {self.quoted(reason)}", "content_filter")
        if cut_call:
            return self.error(
                "its tool call was cut off; raise max_tokens", "protocol", retryable=finish != "length"
            )
        if finish == "length":
            thought = " (it reasoned until then)" if builder.reasoning else ""
            return self.error(
                f"it reached max_tokens before it wrote any answer{thought}; raise max_tokens",
                "protocol",
            )
        if builder.calls:
            return self.error("it called a tool, but was offered none; leave tools out of extra", "protocol")
        if builder.reasoning:
            return self.error(
                "it reasoned and wrote no answer; if its reasoning is the answer, switch thinking off "
                "(extra.chat_template_kwargs.enable_thinking = false), or start the server without a reasoning parser "
                "(vLLM: no --reasoning-parser; llama.cpp: --reasoning-format none); else raise max_tokens",
                "protocol",
                retryable=finish is None,
            )
        named = "no finish_reason" if finish is None else f"finish_reason {self.quoted(finish)!r}"
        return self.error(f"the reply has no text ({named})", "protocol", retryable=True)

    def timed_out(self, limit: str, seconds: float, builder: ReplyBuilder) -> WorkerError:
        """A time limit passed; `limit` is its key in a team file."""
        missing = {"connect_timeout": "connection", "first_token_timeout": "first token"}
        what = f"no {missing.get(limit, 'whole reply')}"
        came = f", only {builder.length} characters of it" if builder.length else ""
        return self.error(f"{what} within {seconds:g} s ({limit}){came}", "timeout", retryable=True)

    def transport(self, error: aiohttp.ClientError | OSError) -> WorkerError:
        """The connection failed."""
        reason = self.quoted(str(error) or type(error).__name__)
        if isinstance(error, aiohttp.ClientHttpProxyError):
            way_out = _WAY_OUT.get(error.status, "")
            what = f"the proxy answered with status {error.status} ({self.quoted(error.message)}){way_out}"
            retryable = error.status in _RETRYABLE or error.status >= 500
            return self.error(what, "connection", retryable=retryable)
        if permanent := _permanent(error):
            return self.error(permanent.format(reason=reason), "connection")
        if isinstance(error, aiohttp.ClientPayloadError):
            if isinstance(error.__cause__, ContentEncodingError):
                return self.error(f"the reply is garbled ({reason})", "protocol", retryable=True)
            return self.error(
                "the connection broke off in the middle of the reply", "connection", retryable=True
            )
        if isinstance(error, aiohttp.ClientConnectionError | OSError):
            return self.error(f"the connection failed ({reason})", "connection", retryable=True)
        return self.error(f"the reply is not HTTP ({reason})", "protocol")


class RequestRejectedError(WorkerError):
    """The endpoint reported an error. `ChatWorker` asks again without what the endpoint refuses, where that helps."""

    reported: ProviderError


def _permanent(error: Exception) -> str | None:
    """The message for a connection error that no retry can fix, or None if a retry may help."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "its certificate is not trusted ({reason}); correct base_url, or name its authority in SSL_CERT_FILE"
    if isinstance(error, aiohttp.ClientSSLError):
        # A TLS connection that was cut off may work next time; a server without TLS never does.
        cut_off = isinstance(error.os_error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ConnectionError)
        return None if cut_off else "TLS failed ({reason}); for a server without TLS, use http://"
    if isinstance(error, aiohttp.InvalidURL):
        return "base_url is not a usable address; correct it"
    return None


_OUT_OF_CREDIT = re.compile(
    r"insufficient_(quota|balance|credits?)|billing_(hard_limit|not_active)|payment_required"
)
_FILTERED = re.compile(r"content_filter|content_policy|responsibleaipolicyviolation|prompt_blocked")
_LIMITED = re.compile(r"rate_?limit|too_many_requests|resource_exhausted")
_OVERLOADED = re.compile(r"overloaded|server_error|unavailable|internal|timeout|bad_gateway")
_UNKNOWN_MODEL = re.compile(r"model_not_(found|available)|invalid_model|deploymentnotfound")
_TOO_LONG = re.compile(r"context_length_exceeded|exceed_context_size")
_NO_MODEL = re.compile(
    r"\bmodel\b.{0,80}\b(not found|not exist|not available|unknown)\b|\b(not a valid|unknown|no such) model\b",
    re.S,
)


@dataclass(frozen=True, slots=True)
class ProviderError:
    """The error that an endpoint reports: its message, and its codes."""

    text: str
    words: frozenset[str] = frozenset()
    """Error codes and types, in lower case."""
    status: int | None = None
    """The HTTP status of the response, or the one that its body names."""
    body: Any = None
    """The whole body, if it is JSON."""

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Whether one of its codes matches."""
        return any(pattern.search(word) for word in self.words)


def read_error_body(content: bytes) -> ProviderError:
    """The error in the body of an error response: its message if it has one, else the whole body."""
    text = content.decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return ProviderError(text)
    if isinstance(body, list) and len(body) == 1:  # as Google does
        body = body[0]
    if not isinstance(body, dict):
        return ProviderError(text)
    return _reported_error(body, text) or ProviderError(text, body=body)


def find_error(body: Mapping[str, Any]) -> ProviderError | None:
    """The error that a reply of status 200, or an event of a stream, reports; or None if it reports none."""
    if body.get("error") or body.get("object") == "error":
        return _reported_error(body, json.dumps(body)) or ProviderError(json.dumps(body))
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, dict) and first.get("error"):
        return _reported_error(first, json.dumps(first["error"]))
    return None


def _reported_error(body: Mapping[str, Any], whole: str) -> ProviderError | None:
    error = body.get("error") or body
    if not isinstance(error, dict):
        return ProviderError(str(error), _words(body), body=body)
    message = error.get("message") or error.get("detail") or body.get("message") or body.get("detail")
    details = error.get("metadata")
    raw = details.get("raw") if isinstance(details, dict) else None
    if isinstance(message, str) and isinstance(raw, str):
        # A gateway's "Provider returned error", and the provider's reason.
        message = f"{message}: {raw}"
    if message is not None and not isinstance(message, str):
        message = json.dumps(message)
    code = error.get("code")
    status = int(code) if isinstance(code, int | str) and re.fullmatch(r"[45]\d\d", str(code)) else None
    return ProviderError(message or whole, _words(error), status, body)


def _words(error: Mapping[str, Any]) -> frozenset[str]:
    inner = error.get("innererror")
    return frozenset(_strings(error)) | frozenset(_strings(inner) if isinstance(inner, dict) else ())


def _strings(error: Mapping[str, Any]) -> Iterator[str]:
    for name in ("code", "type", "status"):
        if isinstance(word := error.get(name), str):
            yield word.lower()
