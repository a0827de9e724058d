"""What an endpoint wrote about its failure, in any of the forms that providers, gateways and servers have.

Understands; what follows from it is failure.py's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_BROKE = re.compile(r"insufficient_(quota|balance|credits?)|billing_(hard_limit|not_active)|payment_required")
_FILTERED = re.compile(r"content_filter|content_policy|responsibleaipolicyviolation|prompt_blocked")
_LIMITED = re.compile(r"rate_?limit|too_many_requests|resource_exhausted")
_OVERLOADED = re.compile(r"overloaded|server_error|unavailable|internal|timeout|bad_gateway")
_UNKNOWN_MODEL = re.compile(r"model_not_(found|available)|invalid_model|deploymentnotfound")
_NO_MODEL = re.compile(
    r"\bmodel\b.{0,80}\b(not found|not exist|not available|unknown)\b|\b(not a valid|unknown|no such) model\b",
    re.S,
)


@dataclass(frozen=True, slots=True)
class ProviderError:
    """The endpoint's own sentence, and the words by which it classes the failure."""

    text: str
    words: frozenset[str] = frozenset()
    """Its codes and types, in small letters."""
    status: int | None = None
    """An HTTP status that it names inside of the reply."""

    @property
    def broke(self) -> bool:
        """The account has nothing left."""
        return self._says(_BROKE)

    @property
    def filtered(self) -> bool:
        """The question was refused for what it holds."""
        return self._says(_FILTERED)

    @property
    def unknown_model(self) -> bool:
        """The endpoint does not have the model."""
        return self._says(_UNKNOWN_MODEL) or bool(_NO_MODEL.search(self.text.lower()))

    @property
    def meant_status(self) -> int | None:
        """The HTTP status that it names, or that its words mean."""
        if self.status is not None:
            return self.status
        return 429 if self._says(_LIMITED) else 503 if self._says(_OVERLOADED) else None

    def _says(self, pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(word) for word in self.words)


def read_complaint(content: bytes) -> ProviderError:
    """The complaint in the body of a refusal: its own sentence if it has one, else the body."""
    text = content.decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return ProviderError(text)
    if isinstance(body, list) and len(body) == 1:  # Google's way
        body = body[0]
    if not isinstance(body, dict):
        return ProviderError(text)
    return _of(body, text) or ProviderError(text)


def complaint_in(body: Mapping[str, Any]) -> ProviderError | None:
    """The failure that a reply of status 200, or an event of a stream, reports; None: it reports none."""
    if body.get("error") or body.get("object") == "error":
        return _of(body, json.dumps(body)) or ProviderError(json.dumps(body))
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, dict) and first.get("error"):
        return _of(first, json.dumps(first["error"]))
    return None


def _of(body: Mapping[str, Any], whole: str) -> ProviderError | None:
    error = body.get("error") or body
    if not isinstance(error, dict):
        return ProviderError(str(error), _words(body))
    said = error.get("message") or error.get("detail") or body.get("message") or body.get("detail")
    details = error.get("metadata")
    raw = details.get("raw") if isinstance(details, dict) else None
    if isinstance(said, str) and isinstance(
        raw, str
    ):  # a gateway's "Provider returned error", and the reason
        said = f"{said}: {raw}"
    if said is not None and not isinstance(said, str):
        said = json.dumps(said)
    code = error.get("code")
    status = int(code) if isinstance(code, int | str) and re.fullmatch(r"[45]\d\d", str(code)) else None
    return ProviderError(said or whole, _words(error), status)


def _words(error: Mapping[str, Any]) -> frozenset[str]:
    inner = error.get("innererror")
    return frozenset(_strings(error)) | frozenset(_strings(inner) if isinstance(inner, dict) else ())


def _strings(error: Mapping[str, Any]) -> Iterator[str]:
    for name in ("code", "type", "status"):
        if isinstance(word := error.get(name), str):
            yield word.lower()
