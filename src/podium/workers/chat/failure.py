"""The sentences of an endpoint's failures: what happened, whether it may pass, the way out.

Every one goes through the pool's secrets before it is cut. Raises nothing itself.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError

from podium.errors import WorkerError
from podium.workers.chat.draft import Draft
from podium.workers.chat.provider_error import ProviderError
from podium.workers.chat.waiting import retry_after
from podium.workers.secrets import Secrets, address_shown

_SHOWN = 300
"""Characters of an endpoint's words that a message repeats."""
_READ = 1 << 16
"""Characters of them that are looked at."""

_WAY_OUT = {
    401: " (is the key right?)",
    402: " (pay the provider, or take another worker)",
    403: " (is the key right, and may it use this model?)",
    404: " (are base_url and model right?)",
    405: " (is base_url right?)",
    407: " (is the proxy's password right?)",
    413: " (the messages are too long for it)",
}
_MAY_PASS = frozenset({408, 409, 425, 429})
_REFUSALS = frozenset({"refusal", "safety", "prohibited_content", "recitation", "blocklist"})


class Failures:
    """Makes the errors of one endpoint.

    Args:
        shown: its address, as messages name it.
        secrets: what no message may hold.
    """

    def __init__(self, shown: str, secrets: Secrets) -> None:
        self._shown = shown
        self._secrets = secrets

    def error(
        self, what: str, kind: str, *, retryable: bool = False, retry_after_s: float | None = None
    ) -> WorkerError:
        """One sentence, the endpoint before it and a full stop after it."""
        sentence = self._secrets.scrub(f"{self._shown}: {what}")
        return WorkerError(f"{sentence}.", kind=kind, retryable=retryable, retry_after_s=retry_after_s)

    def said(self, text: str) -> str:
        """An endpoint's words in one line, without secrets, and short."""
        # Scrubbed before it is cut: half a key is a secret too. What a terminal would obey becomes a blank.
        text = self._secrets.scrub(text[:_READ])
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        text = self._secrets.scrub(text).rstrip(".")
        return (text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…") or "(an empty body)"

    def status(self, status: int, headers: Mapping[str, str], complaint: ProviderError) -> WorkerError:
        """It answered with a status that is no success, or named one inside of its reply."""
        if complaint.filtered and status < 500:
            return self.error(f"it refused: {self.said(complaint.text)}", "refused")
        broke = complaint.broke or status == 402
        retryable = not broke and (status in _MAY_PASS or status >= 500)
        way_out = _WAY_OUT[402] if broke else _WAY_OUT.get(status, "")
        if not broke and 400 <= status < 500 and complaint.unknown_model:
            way_out = " (is model right?)"
        return self.error(
            f"status {status}: {self.said(complaint.text)}{way_out}",
            "limited" if status == 429 else "status",
            retryable=retryable,
            retry_after_s=retry_after(headers) if retryable else None,
        )

    def redirect(self, status: int, location: str) -> WorkerError:
        """It names another address; to follow would send the key there, and turn the POST into a GET."""
        to = self.said(address_shown(location)) if location else "nowhere"
        return self.error(
            f"status {status}: it redirects to {to}; put the right address into base_url", "status"
        )

    def reported(self, headers: Mapping[str, str], complaint: ProviderError, *, begun: bool) -> WorkerError:
        """It reports a failure inside of a reply of status 200; `begun`: after a part of the answer."""
        status = complaint.meant_status
        if status is not None or complaint.filtered or complaint.broke:
            return self.status(status or (402 if complaint.broke else 200), headers, complaint)
        return self.error(f"it reports an error: {self.said(complaint.text)}", "status", retryable=begun)

    def garbled(self, content: bytes) -> WorkerError:
        """What should be JSON is not: half of it, or something else."""
        start = content.lstrip()[:1]
        text = content.decode("utf-8", "replace")
        if start in (b"", b"{", b"[") or (start != b"<" and "\ufffd" in text):
            what = f"the reply is cut off or garbled: {self.said(text)}"
        else:  # Most likely the address; but gateways that are busy say so in pages, too.
            form = "a page and not JSON" if start == b"<" else "not JSON"
            what = f"the reply is {form}: {self.said(text)} (is base_url right?)"
        return self.error(what, "protocol", retryable=True)

    def too_big(self, most: int) -> WorkerError:
        """More came than is read."""
        return self.error(
            f"the reply is over {most >> 20} MiB, and is not read further (is base_url right?)", "protocol"
        )

    def no_choices(self, said: str, *, retryable: bool) -> WorkerError:
        """JSON, but no reply."""
        return self.error(f"the reply has no choices: {self.said(said)}", "protocol", retryable=retryable)

    def no_text(self, draft: Draft) -> WorkerError:
        """A reply without an answer."""
        finish = draft.finish
        if draft.refusal or filtered(finish):
            return self.error(f"it refused: {self.said(draft.refusal or finish or '')}", "refused")
        if finish == "length":
            thought = " (it thought until then)" if draft.thought else ""
            return self.error(
                f"it reached max_tokens before it wrote any answer{thought}; raise max_tokens",
                "protocol",
            )
        if draft.calls_tools:
            return self.error("it called a tool, and was offered none; leave tools out of extra", "protocol")
        if draft.thought:
            return self.error(
                "it thought (reasoning_content) and wrote no answer; raise max_tokens or let it think less",
                "protocol",
                retryable=finish is None,
            )
        named = "no finish_reason" if finish is None else f"finish_reason {self.said(finish)!r}"
        return self.error(f"the reply has no text ({named})", "protocol", retryable=True)

    def late(self, limit: str, seconds: float, draft: Draft) -> WorkerError:
        """A time limit passed; `limit` is the name of its key."""
        what = {
            "connect_timeout": "no connection",
            "first_token_timeout": "no first token",
        }.get(limit, "no whole reply")
        came = f", only {draft.length} characters of it" if draft.length else ""
        return self.error(f"{what} within {seconds:g} s ({limit}){came}", "timeout", retryable=True)

    def broken_off(self, draft: Draft) -> WorkerError:
        """A stream ended in good order before the reply did."""
        return self.error(
            f"the stream broke off after {draft.length} characters, without finish_reason or [DONE]",
            "connection",
            retryable=True,
        )

    def transport(self, error: aiohttp.ClientError | OSError) -> WorkerError:
        """What went wrong below the reply."""
        reason = self.said(str(error) or type(error).__name__)
        if isinstance(error, aiohttp.ClientHttpProxyError):
            way_out = _WAY_OUT.get(error.status, "")
            what = f"the proxy answered with status {error.status} ({self.said(error.message)}){way_out}"
            retryable = error.status in _MAY_PASS or error.status >= 500
            return self.error(what, "connection", retryable=retryable)
        if lasting := _lasting(error):
            return self.error(lasting.format(reason=reason), "connection")
        if isinstance(error, aiohttp.ClientPayloadError) and isinstance(
            error.__cause__, ContentEncodingError
        ):
            return self.error(f"the reply is garbled ({reason})", "protocol", retryable=True)
        if isinstance(error, aiohttp.ClientPayloadError):
            return self.error(
                "the connection broke off in the middle of the reply", "connection", retryable=True
            )
        if isinstance(error, aiohttp.ClientConnectionError | OSError):
            return self.error(f"the connection failed ({reason})", "connection", retryable=True)
        return self.error(f"the reply is not HTTP ({reason})", "protocol")


def filtered(finish: str | None) -> bool:
    """Whether a reply ended because a filter or the model itself refused."""
    word = (finish or "").lower()
    return word.startswith("content_filter") or word in _REFUSALS


def _lasting(error: Exception) -> str | None:
    """The sentence of a connection that will fail in the same way again; None: it may pass."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return (
            "its certificate is not trusted ({reason}); mend base_url, or name its authority in SSL_CERT_FILE"
        )
    if isinstance(error, aiohttp.ClientSSLError):
        # TLS that was cut off, rather than something else than TLS.
        cut_off = isinstance(error.os_error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ConnectionError)
        return None if cut_off else "TLS failed ({reason}); a server without TLS is asked by http://"
    if isinstance(error, aiohttp.InvalidURL):
        return "base_url is not an address that can be asked; mend it"
    return None
