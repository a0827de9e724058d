"""`litellm`: a model of any provider that the litellm library supports.

The library is imported at the first call, since the import takes seconds. A call is one attempt: the library's retries,
cache, callbacks and price table are switched off. The library reads environment variables by itself, does not limit the
size of a reply, and keeps a task on the event loop until the worker is closed.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import json
import os
import ssl
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from weakref import WeakSet

import aiohttp
from pydantic import SecretStr

from podium.errors import ConfigError, WorkerError, WorkerErrorKind
from podium.trace import Reply
from podium.types import Message, Usage, sent_tokens
from podium.workers.base import Request, Worker
from podium.workers.chat.adaptation import Adaptation, AdaptedRequest, too_long
from podium.workers.chat.failures import Failures, ProviderError
from podium.workers.chat.reply_builder import ReplyBuilder
from podium.workers.chat.request_body import sent_limit
from podium.workers.chat.usage import read_usage
from podium.workers.redaction import Secrets
from podium.workers.spec import LiteLLMSpec
from podium.workers.traits import WorkerTraits

_STOLEN_RELEASES = ("1.82.7", "1.82.8")
"""Releases of March 2026 that sent their users' keys to an attacker."""
_OPTIONS = ("temperature", "top_p", "stop", "response_format")
"""The caller's options that are sent, besides `max_tokens`. Tools and images are not sent."""
_CONNECTION_ERRORS = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError)
_DECODING_ERRORS = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)
_NAME_CHARS = 200
"""The most characters that are kept of a model name or finish_reason."""
_IMPORT_ENVIRONMENT = {"LITELLM_MODE": "PRODUCTION", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
"""Variables that are set before the import. Otherwise the library reads a file .env into the environment and downloads
prices."""


class LiteLLMWorker(Worker):
    """A model that is called through litellm.

    Args:
        spec: the worker's settings. Only the price in them counts.
        secrets: secrets that are removed from answers and errors.
        key: the key for the library. If it is None, the library looks for a key in the environment.
    """

    traits = WorkerTraits(role="model")

    def __init__(self, spec: LiteLLMSpec, secrets: Secrets, key: str | None = None) -> None:
        self.profile, self.limits, self.fallback = spec.to_profile(), spec.limits, spec.fallback
        self._spec = spec
        self._key = SecretStr(key) if key else None
        self._secrets = secrets
        self._failures = Failures(f"litellm, {spec.model}", secrets)
        self._system = (Message(role="system", content=spec.system),) if spec.system else ()
        self._adaptation = Adaptation()
        self.identity = {
            "kind": "litellm",
            "url": self._spec.base_url,
            "model": self._spec.model,
            "system": [message.content for message in self._system],
            "max_tokens": self.limits.max_tokens,
            "temperature": self._spec.temperature,
            "extra": self._spec.extra,
        }

    async def answer(self, request: Request) -> Reply:
        """Call the model once. The seed is not sent, since providers do not promise the same answer for the same
        seed."""
        library = await asyncio.to_thread(_library)
        _users().add(self)
        messages, options = self._system + request.messages, request.options
        message_tokens, context_tokens = sent_tokens(messages, options), self.profile.context_tokens
        if reason := too_long(message_tokens, context_tokens):
            raise self._failures.error(reason, "context")
        optional = {
            "temperature": self._spec.temperature,
            "api_key": None if self._key is None else self._key.get_secret_value(),
            "api_base": self._spec.base_url,
        }
        arguments: dict[str, Any] = {
            "model": self._spec.model,
            "timeout": self.limits.timeout,
            "max_tokens": min(self.limits.max_tokens, options.max_tokens or self.limits.max_tokens),
            "num_retries": 0,
            "max_retries": 0,
            "caching": False,
            "no-log": True,
            **{name: value for name, value in optional.items() if value is not None},
            **self._spec.extra,
            **options.model_dump(mode="json", include=set(_OPTIONS), exclude_defaults=True),
        }
        adapted = AdaptedRequest(
            messages,
            lambda folded: (
                arguments
                | {"messages": [{"role": message.role, "content": message.content} for message in folded]}
            ),
            self._adaptation,
            message_tokens,
            context_tokens,
        )
        while True:
            try:
                response = await library.acompletion(**adapted.body)
                break
            except asyncio.CancelledError:
                self._count(request, read_usage(None, messages, ""))
                raise
            except Exception as error:
                if not adapted.change(ProviderError(_message(error), status=_status(error))):
                    failure = self._failure(library, error)
                    if failure.kind == "timeout":
                        self._count(request, read_usage(None, messages, ""))
                    # `from None`, since the library's error may contain a key, which a traceback would print.
                    raise failure from None
        self._adaptation |= adapted.known
        return replace(
            self._read(response, request, messages, sent_limit(adapted.body)),
            dropped=adapted.dropped,
            folded=adapted.folded,
            context_tokens=adapted.context_tokens,
        )

    async def close(self) -> None:
        """Close the library's connections and end its task, unless a worker of another pool uses them too."""
        users = _users()
        if self in users:
            users.remove(self)
            if users:
                return
            library = _library()
            await library.close_litellm_async_clients()
            library.in_memory_llm_clients_cache.flush_cache()  # Else it would use the closed clients again.
            from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER  # noqa: PLC0415

            await GLOBAL_LOGGING_WORKER.stop()

    def _count(self, request: Request, usage: Usage) -> None:
        request.receipt.add(self.profile.price.spent(usage))

    def _read(
        self, response: Any, request: Request, messages: Sequence[Message], max_tokens: int | None
    ) -> Reply:
        builder = ReplyBuilder()
        try:
            choice = response.choices[0]
            message = choice.message
            fields = message.model_dump() if hasattr(message, "model_dump") else vars(message)
        except (AttributeError, IndexError, TypeError):
            raise self._failures.error("the reply has no choices", "protocol") from None
        builder.add({"choices": [{"message": fields, "finish_reason": choice.finish_reason}]})
        text = builder.text
        counts = _counts(getattr(response, "usage", None))
        usage = read_usage(counts, messages, text, builder.reasoning, max_tokens=max_tokens)
        if not text.strip() or builder.finish == "content_filter":
            self._count(request, usage)
            raise self._failures.no_text(builder, cut_call=False)
        return Reply(
            self._secrets.scrub(text),
            usage,
            finish=self._name(builder.finish),
            model=self._name(getattr(response, "model", None)),
            fingerprint=self._name(getattr(response, "system_fingerprint", None)),
            reasoning=self._secrets.scrub(builder.reasoning),
        )

    def _name(self, name: object) -> str | None:
        return self._secrets.scrub(name)[:_NAME_CHARS] if isinstance(name, str) else None

    def _failure(self, library: Any, error: Exception) -> WorkerError:
        """The `WorkerError` for an exception of the library."""
        names, status, message = library.exceptions, _status(error), _message(error)
        shown = self._failures.quoted(message)
        if isinstance(error, names.Timeout):
            limit = f"no reply within {self.limits.timeout:g} s"
            return self._failures.error(limit, "timeout", retryable=True)
        if isinstance(error, names.ContentPolicyViolationError):
            return self._failures.error(f"it refused: {shown}", "refused")
        if (underlying := _underlying_error(error)) is not None:
            what, kind, retryable = underlying
            return self._failures.error(f"{what}: {shown}", kind, retryable=retryable)
        if status is None:
            return self._failures.error(shown, "protocol")
        # The library keeps the provider's headers in one of two places.
        of_reply = getattr(getattr(error, "response", None), "headers", None) or {}
        headers = dict(of_reply) | dict(getattr(error, "litellm_response_headers", None) or {})
        return self._failures.status(status, headers, ProviderError(message))


def check_installed() -> None:
    """Check that the library is installed, without importing it.

    Raises:
        ConfigError: the library is not installed, or is one of `_STOLEN_RELEASES`.
    """
    if importlib.util.find_spec("litellm") is None:
        raise ConfigError(
            "the kind litellm needs the litellm library; pip install 'podium-conductor[litellm]'.", ("kind",)
        )
    version = importlib.metadata.version("litellm")
    if version in _STOLEN_RELEASES:
        raise ConfigError(
            f"litellm {version} is a release that steals credentials; remove it, change every key that this "
            "machine has seen, and pip install 'podium-conductor[litellm]'.",
            ("kind",),
        )


@cache
def _users() -> WeakSet[LiteLLMWorker]:
    """The workers that use the library's connections, which all pools of the process share."""
    return WeakSet()


def _library() -> Any:
    for name, value in _IMPORT_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import litellm  # noqa: PLC0415

    litellm.suppress_debug_info = True  # Otherwise the library prints to standard output when a call fails.
    return litellm


def _underlying_error(error: Exception) -> tuple[str, WorkerErrorKind, bool] | None:
    """The message and kind of the connection error or garbled reply behind a status 500 of the library, and whether it
    is retryable. None if there is no such error."""
    from openai import APIConnectionError  # noqa: PLC0415 - litellm depends on it

    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return "its certificate is not trusted", "connection", False
    if any(isinstance(cause, (APIConnectionError, *_CONNECTION_ERRORS)) for cause in causes):
        return "the connection failed", "connection", True
    if any(isinstance(cause, _DECODING_ERRORS) for cause in causes):
        return "the reply is cut off or garbled", "protocol", True
    return None


def _message(error: Exception) -> str:
    return str(getattr(error, "message", None) or error) or type(error).__name__


def _status(error: Exception) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _counts(usage: Any) -> Any:
    """The token counts as a dict. None if all are 0, which the library writes if the provider sent no counts."""
    counts = usage.model_dump() if hasattr(usage, "model_dump") else usage
    known = isinstance(counts, dict) and (counts.get("prompt_tokens") or counts.get("completion_tokens"))
    return counts if known else None
