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
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any
from weakref import WeakSet

import aiohttp
from pydantic import SecretStr

from podium.errors import ConfigError, WorkerError, WorkerErrorKind
from podium.trace import Reply
from podium.workers.base import LITELLM, Request
from podium.workers.chat.chat_worker import ChatWorker
from podium.workers.chat.failures import ProviderError
from podium.workers.chat.response_reader import ResponseReader
from podium.workers.redaction import Secrets
from podium.workers.spec import LiteLLMSpec

_STOLEN_RELEASES = ("1.82.7", "1.82.8")
"""Releases of March 2026 that sent their users' keys to an attacker."""
_CONNECTION_ERRORS = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError)
_DECODING_ERRORS = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)
_IMPORT_ENVIRONMENT = {"LITELLM_MODE": "PRODUCTION", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
"""Variables that are set before the import. Otherwise the library reads a file .env into the environment and downloads
prices."""


class LiteLLMWorker(ChatWorker):
    """A model that is called through litellm.

    Args:
        spec: the worker's settings. Only the price in them counts.
        secrets: secrets that are removed from answers and errors.
        key: the key for the library. If it is None, the library looks for a key in the environment.
    """

    traits = LITELLM

    def __init__(self, spec: LiteLLMSpec, secrets: Secrets, key: str | None = None) -> None:
        super().__init__(spec, spec.model, f"litellm, {spec.model}", secrets)
        self._key = SecretStr(key) if key else None
        self._base_url = spec.base_url
        self.identity = {**(self.identity or {}), "kind": "litellm", "url": spec.base_url}

    async def answer(self, request: Request) -> Reply:
        """Call the model once, as any `ChatWorker`. The caller's further keys are not sent: the library takes its own
        arguments, such as an address for the key, from among the keys of the body."""
        options = request.options.model_copy(update={"extra": {}})
        return await super().answer(replace(request, options=options))

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

    async def _send(self, body: Mapping[str, Any], reader: ResponseReader) -> None:
        library = await asyncio.to_thread(_library)
        _users().add(self)
        optional = {
            "api_key": None if self._key is None else self._key.get_secret_value(),
            "api_base": self._base_url,
        }
        reader.request_sent = True
        try:
            response = await library.acompletion(
                **{name: value for name, value in optional.items() if value is not None},
                **body,
                timeout=self.limits.timeout,
                num_retries=0,
                max_retries=0,
                caching=False,
                **{"no-log": True},
            )
            if not body.get("stream"):
                reader.add_reply(_document(response))
                return
            async for chunk in response:
                reader.add_event(_document(chunk))
        except WorkerError:
            raise
        except Exception as error:
            # `from None`, since the library's error may contain a key, which a traceback would print.
            raise self._failure(library, error) from None
        reader.check_stream()

    def _failure(self, library: Any, error: Exception) -> WorkerError:
        names, status, message = library.exceptions, _status(error), _message(error)
        shown = self._failures.quoted(message)
        if isinstance(error, names.Timeout):
            limit = f"no reply within {self.limits.timeout:g} s"
            return self._failures.error(limit, "timeout", retryable=True)
        if isinstance(error, names.ContentPolicyViolationError):
            return self._failures.error(f"it refused: {shown}", "content_filter")
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


def _document(response: Any) -> dict[str, Any]:
    """A reply or an event as a provider writes it. The library writes counts of 0 if the provider sent no counts."""
    document: dict[str, Any] = response.model_dump(warnings=False)
    counts = document.get("usage") or {}
    if not (counts.get("prompt_tokens") or counts.get("completion_tokens")):
        document.pop("usage", None)
    return document
