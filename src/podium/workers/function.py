"""`python`: calls a function of the user in this process.

An async function runs on the event loop, and is cancelled like any call. Any other function runs in a thread, which
cannot be stopped. After a cancelled call the thread may go on, but Podium does not wait for it and drops its result.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import importlib
import inspect
import pkgutil
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from podium.errors import ConfigError, WorkerError, WorkerErrorKind
from podium.trace import Reply
from podium.types import Limits, Price, Profile
from podium.workers.base import Request, Worker
from podium.workers.program_forms import read_form, request_form, text_reply
from podium.workers.redaction import Secrets

Function = Callable[..., Any]

_KEYWORDS = ("seed", "repeat", "sample", "max_tokens", "receipt")
"""Keyword arguments that a function gets if it has such parameters."""
_SHOWN_CHARS = 300
"""Characters of an exception that a message repeats."""


class FunctionWorker(Worker):
    """A Python function that answers messages.

    Args:
        function: gets a list of `{"role": ..., "content": ...}`, and those of `seed`, `repeat`, `sample`, `max_tokens`
            and `receipt` for which it has parameters. It adds the cost of a failed call to `receipt`, a
            `podium.types.Receipt`. It returns text, a dict of `ReplyForm`, or a `Reply`.
        identity: what the answers depend on. If it is None, answers are not cached.

    Raises:
        ConfigError: the function cannot be called with these arguments.
    """

    def __init__(
        self,
        profile: Profile,
        function: Function,
        *,
        limits: Limits | None = None,
        fallback: str | None = None,
        secrets: Secrets | None = None,
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        self.profile = profile
        self.limits = limits or Limits()
        self.fallback = fallback
        self.identity = identity
        self._function = function
        self.keywords = accepted_keywords(function)
        """The names of `_KEYWORDS` that the function accepts."""
        self._secrets = secrets or Secrets()
        self._name = getattr(function, "__qualname__", type(function).__qualname__)

    async def answer(self, request: Request) -> Reply:
        """Call the function once.

        Raises:
            WorkerError: the error that the function raised; of kind "timeout" or "connection", and retryable, if it
                raised a `TimeoutError` or `ConnectionError`; of kind "protocol" if it raised anything else or returned
                no answer.
        """
        values = {**request_form(request, self.limits), "receipt": request.receipt}
        keywords = {name: values[name] for name in self.keywords}
        try:
            result = await self._call(values["messages"], keywords)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise self._failure(error) from None  # The function cancelled a task of its own.
        except KeyboardInterrupt as error:
            if _is_async(self._function) and threading.current_thread() is threading.main_thread():
                raise  # It may be the user's: the system interrupts the main thread alone.
            raise self._failure(error) from None
        except (Exception, SystemExit) as error:
            raise self._failure(error) from None
        return self._read(result, request)

    async def _call(self, messages: list[dict[str, str]], values: Mapping[str, Any]) -> Any:
        if _is_async(self._function):
            return await self._function(messages, **values)
        result = await _in_thread(lambda: self._function(messages, **values))
        return await result if inspect.isawaitable(result) else result

    def _read(self, result: Any, request: Request) -> Reply:
        try:
            if isinstance(result, Reply) and isinstance(result.text, str):
                reply = replace(result, text=text_reply(result.text, request.messages).text)
            elif isinstance(result, str):
                reply = text_reply(result, request.messages)
            elif isinstance(result, Mapping):
                reply = read_form(result, request.messages)
            else:
                what = (
                    f"returned {type(result).__name__}; it should return a text, a dict with one, or a Reply"
                )
                raise self._error(what, "protocol")
        except ValueError as error:
            raise self._error(f"returned no answer ({self._secrets.scrub(str(error))})", "protocol") from None
        return self._secrets.scrub_reply(reply)

    def _failure(self, error: BaseException) -> WorkerError:
        # Secrets are removed before the text is cut, since half a key is a secret too.
        message = " ".join(self._secrets.scrub(str(error)).split())
        if isinstance(error, WorkerError):
            return WorkerError(
                message, kind=error.kind, retryable=error.retryable, retry_after_s=error.retry_after_s
            )
        message = message if len(message) <= _SHOWN_CHARS else f"{message[:_SHOWN_CHARS]}…"
        what = f"raised {type(error).__name__}{': ' if message else ''}{message.rstrip('.')}"
        if isinstance(error, TimeoutError | ConnectionError):
            kind: WorkerErrorKind = "timeout" if isinstance(error, TimeoutError) else "connection"
            return self._error(what, kind, retryable=True)
        return self._error(what, "protocol")

    def _error(self, what: str, kind: WorkerErrorKind, *, retryable: bool = False) -> WorkerError:
        return WorkerError(f"The function {self._name} {what}.", kind=kind, retryable=retryable)


def worker(
    name: str,
    description: str = "",
    *,
    skills: Sequence[str] = (),
    price: Price | None = None,
    limits: Limits | None = None,
) -> Callable[[Function], FunctionWorker]:
    """A decorator that makes a worker of a function.

        @podium.worker("prices", "Knows the price of every article of our shop.")
        async def prices(messages: list[dict[str, str]]) -> str:
            return await look_up(messages[-1]["content"])

    The function gets the chat messages of its step, each with "role" and "content". The last message has the
    subtask. The function returns the response. If it is not async, it runs in a thread.

    Args:
        description: what the worker is good at. The planner reads this text.
        price: dollars per million tokens. Default: answers cost nothing.
        limits: concurrency, requests a minute, timeout, retries.
    """
    profile = Profile(name=name, description=description, skills=tuple(skills), price=price or Price())
    return lambda function: FunctionWorker(profile, function, limits=limits)


def find_function(named: str, path: Path | None = None) -> Function:
    """Import the function that "package.module:function" names.

    Args:
        path: a folder that is appended to `sys.path`, and stays there.

    Raises:
        ConfigError: the function cannot be imported, does not exist, or cannot be called.
    """
    module_name, _, attribute = named.partition(":")
    if not attribute:
        raise ConfigError(f"callable {named!r} is not of the form package.module:function.")
    if path is not None:
        if not path.is_dir():
            raise ConfigError(
                f"path {path} is not a folder; give the folder that contains the module {module_name!r}.",
                ("path",),
            )
        folder = str(path.resolve())
        if folder not in sys.path:
            sys.path.append(folder)
            importlib.invalidate_caches()
    try:
        function = pkgutil.resolve_name(named)
    except (Exception, SystemExit) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:_SHOWN_CHARS].rstrip(".")
        raise ConfigError(
            f"callable {named!r} cannot be imported ({reason}); correct its name, mend or install the module, or give "
            "the module's folder as `path`."
        ) from error
    if not callable(function):
        raise ConfigError(
            f"callable {named!r} is {type(function).__name__}, which cannot be called; name a function."
        )
    return function  # type: ignore[no-any-return]


def accepted_keywords(function: Function) -> tuple[str, ...]:
    """The names of `_KEYWORDS` for which a function has parameters. A parameter `**` takes all names but `receipt`,
    whose value is no JSON.

    Raises:
        ConfigError: the function has further parameters without defaults, or takes no messages.
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return ()  # Some functions written in C have no signature.
    kinds = {name: parameter.kind for name, parameter in signature.parameters.items()}
    keyword_kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    first = next(iter(kinds), None)
    keywords = tuple(
        name
        for name in _KEYWORDS
        if (kinds.get(name) in keyword_kinds and name != first)
        or (name != "receipt" and inspect.Parameter.VAR_KEYWORD in kinds.values())
    )
    try:
        signature.bind([], **dict.fromkeys(keywords))
    except TypeError as error:
        raise ConfigError(
            f"the function cannot be called with messages and, where it has them, {', '.join(_KEYWORDS)} "
            f"({error}); give its other parameters defaults."
        ) from None
    return keywords


def function_digest(function: Function) -> str | None:
    """The SHA-256 of the file that defines a function. None if there is no file."""
    module = inspect.getmodule(function)
    file = getattr(module, "__file__", None)
    return None if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _is_async(function: Function) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - for whether it is async, not whether it exists
    )


async def _in_thread(call: Callable[[], Any]) -> Any:
    """Run `call` in a new thread, and return its result or raise its exception.

    The thread is a daemon. So neither the event loop nor the interpreter waits for it at the end, as they would for a
    thread of a pool.
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
        except BaseException as error:  # Raised again below, in the event loop.
            failure = error
        with suppress(RuntimeError):  # The loop is closed: the result is dropped.
            loop.call_soon_threadsafe(deliver, result, failure)

    threading.Thread(target=run, name="podium-function", daemon=True).start()
    result, failure = await done
    if failure is not None:
        raise failure
    return result
