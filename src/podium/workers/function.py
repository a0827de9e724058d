"""`python`: a function of the user's, called in our own process.

An async function runs on our event loop and is cancelled like any call. Another runs in a thread, which cannot be
stopped: when the call is cancelled it may run on, its result is dropped, and it keeps nothing from ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from podium.errors import ConfigError, WorkerError
from podium.types import Limits, Profile
from podium.workers.base import Reply, Request
from podium.workers.reply_form import read_form, text_reply

Function = Callable[..., Any]

_KEYWORDS = ("seed", "repeat", "sample", "max_tokens")
"""Keyword arguments that a function may have."""
_SHOWN = 300
"""Characters of an exception that a message repeats."""


class FunctionWorker:
    """A Python function that answers messages.

    Args:
        profile: as for any worker.
        function: called with a list of `{"role": ..., "content": ...}`, and with those of `seed`, `repeat`, `sample`
            and `max_tokens` that it has parameters for. Returns text, a dict of `reply_form`, or a `Reply`.
        limits, fallback: as for any worker.
        scrub: takes secrets out of what it says.
        identity: as for any worker; None: its answers are not kept.

    Raises:
        ConfigError: it cannot be called so.
    """

    def __init__(
        self,
        profile: Profile,
        function: Function,
        *,
        limits: Limits | None = None,
        fallback: str | None = None,
        scrub: Callable[[str], str] = str,
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        self.profile = profile
        self.limits = limits or Limits()
        self.fallback = fallback
        self.identity = identity
        self._function = function
        self.keywords = accepted(function)
        """Those of `seed`, `repeat`, `sample` and `max_tokens` that it takes."""
        self._scrub = scrub
        self._name = getattr(function, "__qualname__", type(function).__qualname__)

    def __repr__(self) -> str:
        return f"FunctionWorker({self.profile.name!r}, {self._name})"

    async def answer(self, request: Request) -> Reply:
        """Call it once.

        Raises:
            WorkerError: what it raises itself; "timeout" or "connection": it raised the like, which may pass;
                "protocol": it raised anything else, or what it returned is no answer.
        """
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        values = {
            "seed": request.seed,
            "repeat": request.repeat,
            "sample": request.sample,
            "max_tokens": min(self.limits.max_tokens, request.options.max_tokens or self.limits.max_tokens),
        }
        try:
            result = await self._call(messages, {name: values[name] for name in self.keywords})
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise self._failure(error) from None  # Something of its own was cancelled, not the call.
        except (Exception, SystemExit) as error:
            raise self._failure(error) from None
        return self._read(result, request)

    async def close(self) -> None:
        """Nothing to give back: what the function keeps open is its own."""

    async def _call(self, messages: list[dict[str, str]], values: Mapping[str, Any]) -> Any:
        if _is_async(self._function):
            return await self._function(messages, **values)
        result = await _in_thread(lambda: self._function(messages, **values))
        return await result if inspect.isawaitable(result) else result

    def _read(self, result: Any, request: Request) -> Reply:
        try:
            if isinstance(result, Reply) and isinstance(result.text, str):
                reply = text_reply(result.text, request.messages)
                return replace(result, text=self._scrub(reply.text))
            if isinstance(result, str):
                return text_reply(self._scrub(result), request.messages)
            if isinstance(result, Mapping):
                reply = read_form(result, request.messages)
                return replace(reply, text=self._scrub(reply.text))
        except ValueError as error:
            raise self._error(f"returned no answer ({self._scrub(str(error))})", "protocol") from None
        raise self._error(
            f"returned {type(result).__name__}; it should return a text, a dict with one, or a Reply",
            "protocol",
        )

    def _failure(self, error: BaseException) -> WorkerError:
        # Scrubbed before it is cut: half a key is a secret too.
        message = " ".join(self._scrub(str(error)).split())
        if isinstance(error, WorkerError):
            return WorkerError(
                message, kind=error.kind, retryable=error.retryable, retry_after_s=error.retry_after_s
            )
        message = message if len(message) <= _SHOWN else f"{message[:_SHOWN]}…"
        kind = next((kind for type_, kind in _PASSING.items() if isinstance(error, type_)), None)
        what = f"raised {type(error).__name__}{': ' if message else ''}{message.rstrip('.')}"
        return self._error(what, kind or "protocol", retryable=kind is not None)

    def _error(self, what: str, kind: str, *, retryable: bool = False) -> WorkerError:
        return WorkerError(f"The function {self._name} {what}.", kind=kind, retryable=retryable)


_PASSING = {TimeoutError: "timeout", ConnectionError: "connection"}


def find_function(named: str, path: Path | None = None) -> Function:
    """What "package.module:function" names, imported.

    Args:
        path: a folder in which modules are looked for, after all others, from now on.

    Raises:
        ConfigError: it cannot be imported, is not there, or cannot be called.
    """
    place, colon, attribute = named.partition(":")
    if not (colon and all(part.isidentifier() for part in (*place.split("."), *attribute.split(".")))):
        raise ConfigError(f"callable {named!r} is not of the form package.module:function.")
    if path is not None:
        if not path.is_dir():
            raise ConfigError(
                f"path {path} is not a folder; give the one that the module {place!r} is in.", ("path",)
            )
        folder = str(path.resolve())
        if folder not in sys.path:
            sys.path.append(folder)
            importlib.invalidate_caches()
    module = _import(place)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            where = getattr(module, "__file__", None) or "the interpreter"
            raise ConfigError(
                f"callable {named!r}: the module {place!r}, from {where}, has no {attribute!r}."
            )
        found = getattr(found, part)
    if not callable(found):
        raise ConfigError(
            f"callable {named!r} is {type(found).__name__}, which cannot be called; name a function."
        )
    return found  # type: ignore[no-any-return]


def accepted(function: Function) -> tuple[str, ...]:
    """Those of seed, repeat, sample and max_tokens that a function has parameters for.

    Raises:
        ConfigError: it cannot be called with messages and these.
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return ()  # Some of those written in C do not say.
    kinds = {name: parameter.kind for name, parameter in signature.parameters.items()}
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    first = next(iter(kinds), None)
    keywords = tuple(
        name
        for name in _KEYWORDS
        if (kinds.get(name) in named and name != first) or inspect.Parameter.VAR_KEYWORD in kinds.values()
    )
    try:
        signature.bind([], **dict.fromkeys(keywords))
    except TypeError as error:
        raise ConfigError(
            f"the function cannot be called with messages and {', '.join(_KEYWORDS)} as it asks for them "
            f"({error}); give its other parameters defaults."
        ) from None
    return keywords


def digest(function: Function) -> str | None:
    """SHA-256 of the file that a function stands in; None: it is in none."""
    module = inspect.getmodule(function)
    file = getattr(module, "__file__", None)
    return None if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigError(
                f"there is no module {name!r}; install it, or name the folder that it is in as `path`."
            ) from None
        raise ConfigError(f"the module {name!r} needs {error.name!r}, which is not installed.") from error
    except (Exception, SystemExit) as error:
        message = " ".join(f"{type(error).__name__}: {error}".split())[:_SHOWN].rstrip(".")
        raise ConfigError(f"the module {name!r} cannot be imported ({message}); mend it.") from error


def _is_async(function: Function) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - asked whether it is async, not whether it is there
    )


async def _in_thread(call: Callable[[], Any]) -> Any:
    """What `call` returns or raises, from a thread of its own.

    A daemon: neither the end of an event loop nor that of the interpreter waits for it, as they would for those of a
    pool.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(result: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((result, error))

    def run() -> None:
        result, failure = None, None
        try:
            result = context.run(call)
        except BaseException as error:  # Raised again where it is waited for.
            failure = error
        with suppress(RuntimeError):  # The loop is closed: nobody wants it any more.
            loop.call_soon_threadsafe(deliver, result, failure)

    threading.Thread(target=run, name="podium-function", daemon=True).start()
    result, failure = await done
    if failure is not None:
        raise failure
    return result
