"""Handles request fields that Podium does not support: it refuses a field, ignores it, or sends it to one worker.

The server ignores hints, null values, and unknown fields inside messages and tools. A response header names the ignored
fields. The server refuses fields that would change the meaning of the answer. It also refuses unknown fields at the top
level of the body, which are mostly typing errors. If the request goes to one worker, top-level fields are sent to this
worker's endpoint instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from podium.config import suggestion
from podium.errors import APIError
from podium.server.api_errors import invalid
from podium.server.requests import Body, BodyPart, RefusedField
from podium.types import Message

_MAX_NAMED = 32
_MAX_NAME_CHARS = 100
_EMPTY: tuple[Any, ...] = (False, 0, "", [], {})
"""An unknown top-level field with one of these values is dropped, since it has no effect."""
LOGPROBS = "the probabilities of workers' tokens are not known here."
HINTS: Mapping[str, tuple[Any, ...]] = {
    "chat_template_kwargs": (),
    "client_metadata": (),
    "enable_thinking": (),
    "frequency_penalty": (0,),
    "ignore_eos": (),
    "include_reasoning": (),
    "min_p": (),
    "min_tokens": (),
    "moderation": (),
    "presence_penalty": (0,),
    "prompt_cache_options": (),
    "prompt_cache_retention": (),
    "provider": (),
    "reasoning": ({},),
    "repetition_penalty": (1,),
    "service_tier": ("auto", "default"),
    "thinking": (),
    "top_k": (),
}
"""Hints of OpenAI's APIs, including those of other widespread servers (`BodyPart.hints`)."""
REFUSED: Mapping[str, RefusedField] = {"top_logprobs": RefusedField(LOGPROBS, (0,), for_worker=True)}


class UnsupportedFields(NamedTuple):
    """The unsupported fields of a request that was not refused."""

    ignored: tuple[str, ...] = ()
    """Names of the ignored fields, such as "messages.*.cache_control"."""
    extra: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it
    """Fields for the endpoint of the one worker."""


def ignored_header(ignored: tuple[str, ...]) -> dict[str, str]:
    """The response header that names the ignored fields. It is empty if there are none."""
    if not ignored:
        return {}
    names = ", ".join(ignored).encode("ascii", "replace").decode()
    return {"x-podium-ignored": "".join(char if char.isprintable() else "?" for char in names)}


def handle_unsupported(body: Body, *, passes: bool, ignores_unknown: bool) -> UnsupportedFields:
    """Ignore, send to the worker or refuse each field of `body` that Podium does not support.

    Args:
        passes: whether the request goes to one worker whose endpoint takes further fields.
        ignores_unknown: whether unknown fields at the top level are ignored too.

    Raises:
        APIError: 400, a field can neither be ignored nor sent to the worker.
    """
    ignored: dict[str, None] = {}
    extra: dict[str, Any] = {}
    for path, value, part in _unsupported_fields(body, ()):
        field, top = str(path[-1]), part is body
        refused = part.refused.get(field)
        idle = part.hints.get(field, ()) if refused is None else refused.values
        if value is None or _is_one_of(value, idle):
            continue
        taken = top and passes and (body.endpoint_fields is None or field in body.endpoint_fields)
        is_hint = not top or field in body.hints
        if taken and (refused is None or refused.for_worker):
            extra[field] = value
        elif refused is not None:
            name = ".".join(str(part) for part in path)[:200]
            raise invalid(f"{name} cannot be honoured: {refused.reason}", name, code="unsupported_field")
        elif not is_hint and _is_one_of(value, _EMPTY):
            continue
        elif is_hint or ignores_unknown:
            name = ".".join("*" if isinstance(part, int) else part for part in path)
            ignored[name[:_MAX_NAME_CHARS]] = None
        else:
            raise unknown_field(body, field)
    return UnsupportedFields(tuple(ignored)[:_MAX_NAMED], extra)


def unknown_field(body: Body, name: str) -> APIError:
    suggested = suggestion(name[:100], list(type(body).model_fields))
    return invalid(f"Unknown field {name[:100]!r}; {suggested}", name[:200], code="unknown_field")


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


def _unsupported_fields(
    part: BodyPart, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any, BodyPart]]:
    """The fields of a body that its models do not declare: path, value, and the part that has the field."""
    if part.is_ignored:
        yield (*path, "type"), getattr(part, "type", ""), part
        return
    if not part.has_any_field:
        for name, value in (part.model_extra or {}).items():
            yield (*path, name), value, part
    for name, value in vars(part).items():
        if value is None:
            continue  # Most fields are not given.
        if isinstance(value, BodyPart):
            yield from _unsupported_fields(value, (*path, name))
        elif isinstance(value, tuple):
            for number, item in enumerate(value):
                if isinstance(item, BodyPart):
                    yield from _unsupported_fields(item, (*path, name, number))


def _is_one_of(value: Any, values: tuple[Any, ...]) -> bool:
    return any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in values)
