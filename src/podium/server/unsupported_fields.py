"""Handles request fields that Podium does not support: it refuses a field, ignores it, or sends it to one worker.

The server ignores hints, null values, and unknown fields inside messages and tools. A response header names the ignored
fields. The server refuses fields that would change the meaning of the answer. It also refuses unknown fields at the top
level of the body, which are mostly typing errors. If the request goes to one worker, top-level fields are sent to this
worker's endpoint instead.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from podium.config import suggestion
from podium.server.api_errors import invalid
from podium.server.requests import BodyPart, Unsupported
from podium.types import Message

_MAX_NAMED = 32
_MAX_NAME_CHARS = 100
_EMPTY: tuple[Any, ...] = (False, 0, "", [], {})
"""An unknown top-level field with one of these values is dropped, since it has no effect."""


SAMPLING = "not every worker supports it; set it for a worker in the pool file, with extra."
_CACHE = Unsupported("it is a hint to a provider's own cache.")
LOGPROBS = "the probabilities of workers' tokens are not known here."

HINTS: Mapping[str, Unsupported] = {
    "chat_template_kwargs": Unsupported(SAMPLING),
    "client_metadata": Unsupported("nobody reads it here."),
    "enable_thinking": Unsupported(SAMPLING),
    "frequency_penalty": Unsupported(SAMPLING, (0,)),
    "ignore_eos": Unsupported(SAMPLING),
    "include_reasoning": Unsupported(SAMPLING),
    "min_p": Unsupported(SAMPLING),
    "min_tokens": Unsupported(SAMPLING),
    "moderation": Unsupported("Podium checks no contents."),
    "presence_penalty": Unsupported(SAMPLING, (0,)),
    "prompt_cache_options": _CACHE,
    "prompt_cache_retention": _CACHE,
    "provider": Unsupported("the pool decides who answers."),
    "reasoning": Unsupported(SAMPLING, ({},)),
    "repetition_penalty": Unsupported(SAMPLING, (1,)),
    "service_tier": Unsupported("workers have no tiers.", ("auto", "default")),
    "thinking": Unsupported(SAMPLING),
    "top_k": Unsupported(SAMPLING),
    "top_logprobs": Unsupported(LOGPROBS, (0,), "meaning"),
}
"""Unsupported fields of all APIs, including fields of other widespread servers."""


class UnsupportedFields(NamedTuple):
    """The unsupported fields of a request that was not refused."""

    ignored: tuple[str, ...] = ()
    """Names of the ignored fields, such as "messages.*.cache_control"."""
    extra: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it
    """Fields for the endpoint of the one worker."""


def ignored_header(ignored: tuple[str, ...]) -> dict[str, str]:
    """The response header that names the ignored fields. It is empty if there are none."""
    names = ", ".join(ignored).encode("ascii", "replace").decode()
    return (
        {"x-podium-ignored": "".join(char if char.isprintable() else "?" for char in names)}
        if ignored
        else {}
    )


def handle_unsupported(
    body: BodyPart,
    *,
    passes: bool = False,
    passed: Container[str] | None = None,
    ignores_unknown: bool = False,
) -> UnsupportedFields:
    """Ignore, send to the worker or refuse each field of `body` that Podium does not support.

    Args:
        passes: whether the request goes to one worker whose endpoint takes further fields.
        passed: the names of the fields that the worker may get. None allows all.
        ignores_unknown: whether unknown fields at the top level are ignored too.

    Raises:
        APIError: 400, a field can neither be ignored nor sent to the worker.
    """
    ignored: dict[str, None] = {}
    extra: dict[str, Any] = {}
    for path, value, known in _unsupported_fields(body, ()):
        if value is None or (known and _is_one_of(value, known.values)):
            continue
        name = ".".join("*" if isinstance(part, int) else part for part in path)
        top = len(path) == 1
        taken = passes and (passed is None or name in passed)
        if taken and top and (known is None or known.kind != "never"):
            extra[name] = value
        elif known is None and top and _is_one_of(value, _EMPTY):
            continue
        elif known.kind == "hint" if known is not None else ignores_unknown or not top:
            ignored[name[:_MAX_NAME_CHARS]] = None
        else:
            raise _refusal(body, ".".join(str(part) for part in path)[:200], known)
    return UnsupportedFields(tuple(ignored)[:_MAX_NAMED], extra)


def ignore_names(messages: tuple[Message, ...], unsupported: UnsupportedFields) -> UnsupportedFields:
    """Add the participants' names to the ignored fields, since a team does not send `name` to its workers."""
    if all(message.name is None for message in messages):
        return unsupported
    return unsupported._replace(ignored=(*unsupported.ignored, "messages.*.name"))


def without_names(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages without `name`, which only some endpoints accept."""
    return tuple(
        message if message.name is None else message.model_copy(update={"name": None}) for message in messages
    )


def _refusal(body: BodyPart, name: str, known: Unsupported | None) -> Exception:
    if known is not None:
        return invalid(f"{name} cannot be honoured: {known.reason}", name, code="unsupported_field")
    suggested = suggestion(name[:100], list(type(body).model_fields))
    return invalid(f"Unknown field {name[:100]!r}; {suggested}", name, code="unknown_field")


def _unsupported_fields(
    part: BaseModel, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any, Unsupported | None]]:
    """The fields of a body that its models do not declare: path, value, and the `Unsupported` of a known field."""
    if isinstance(part, BodyPart):
        if part.foreign is not None:
            yield (*path, "type"), getattr(part, "type", ""), part.foreign
            return
        for name, value in () if part.has_any_field else (part.model_extra or {}).items():
            yield (*path, name), value, part.unsupported.get(name)
    for name, value in vars(part).items():
        if value is None:
            continue  # Most fields are not given.
        if isinstance(value, BaseModel):
            yield from _unsupported_fields(value, (*path, name))
        elif isinstance(value, tuple):
            for number, item in enumerate(value):
                if isinstance(item, BaseModel):
                    yield from _unsupported_fields(item, (*path, name, number))


def _is_one_of(value: Any, values: tuple[Any, ...]) -> bool:
    return any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in values)
