"""What the cache stores: the key of a request, made of everything that can change the answer, and the reply as JSON.

Texts are cut into pieces at the question's random mark. So the same question with another mark has the same key, and a
stored reply gets the mark of the question that reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from pydantic import BaseModel

from podium.trace import Reply
from podium.workers.base import Request

FORMAT = 1
"""A part of every key, so that replies of an older format are not found."""


def request_key(identity: Mapping[str, Any], request: Request) -> bytes:
    """The key of a request to one worker: the SHA-256 of everything that can change the answer, as canonical JSON.

    Args:
        identity: the identity of the worker. If it has "seed": true, the worker sends the request's seed, and the seed
            is part of the key.
    """
    document: dict[str, Any] = {
        "format": FORMAT,
        "identity": dict(identity),
        "messages": [
            message.model_dump(exclude_defaults=True)
            | {"content": _to_pieces(message.content, request.fence_mark)}
            for message in request.messages
        ],
        "repeat": request.repeat,
        "sample": request.sample,
    }
    if options := request.options.model_dump(exclude_defaults=True):
        document["options"] = options
    if identity.get("seed") is True:
        document["seed"] = request.seed
    return sha256(_to_canonical_json(document)).digest()


def _to_pieces(text: str, fence_mark: str) -> list[str]:
    return text.split(fence_mark) if fence_mark else [text]


def _to_canonical_json(document: Mapping[str, Any]) -> bytes:
    """JSON in a canonical form. Halves of surrogate pairs, which UTF-8 cannot contain, stay as they are."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


class _Entry(BaseModel, defer_build=True):
    """A reply in its stored form. `write_reply` cuts its text into pieces. The schema is built when a cache is used."""

    reply: Reply


def write_reply(reply: Reply, fence_mark: str, seconds: float) -> bytes:
    """A reply as JSON.

    Args:
        fence_mark: the mark of the question.
        seconds: the wall time of the call. A latency that the reply claims replaces it.
    """
    entry = _Entry(reply=reply).model_dump(exclude_defaults=True, exclude={"reply": {"cached", "parameters"}})
    document = entry["reply"]
    document["text"] = _to_pieces(reply.text, fence_mark)
    document.setdefault("latency_s", round(seconds, 6))
    return _to_canonical_json(document)


def read_reply(written: bytes, fence_mark: str) -> Reply:
    """The stored reply, for a question with this fence mark.

    Its `latency_s` is that of the original call, so a cached reply makes no plan look faster.
    """
    document = json.loads(written.decode("utf-8", "surrogatepass"))
    reply = document | {"text": fence_mark.join(document["text"]), "cached": True}
    return _Entry.model_validate({"reply": reply}).reply


def as_cached(paid: Reply, kept: Reply) -> Reply:
    """The stored reply, with the cost and latency of the call that was just made."""
    return replace(
        kept,
        usage=paid.usage,
        cost_usd=paid.cost_usd,
        latency_s=paid.latency_s,
        first_token_s=paid.first_token_s,
        cached=False,
    )
