"""What a caller is told who asked for what cannot be had: one form for every route, OpenAI's.

`APIError` is raised anywhere and becomes an answer here. So does what the framework itself refuses.
"""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from podium.errors import APIError, PodiumError, StoreError, UsageError, WorkerError

__all__ = [
    "APIError",
    "answer_changed",
    "error_responses",
    "forbidden",
    "install",
    "invalid",
    "missing",
    "refuse",
    "to_api_error",
    "to_body",
    "to_response",
]

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "budget_exceeded",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "invalid_request_error",
    421: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
    431: "invalid_request_error",
    500: "server_error",
    502: "workers_failed",
    503: "server_error",
    504: "timeout_error",
}
"""Type by HTTP status, where nothing more exact is said."""

_SAYS = {
    400: "The request cannot be honoured; `param` names the field, if it is one.",
    401: "No key, or one that is not known.",
    402: "A budget stopped the question before there was an answer; `trace_id` is what was done.",
    403: "The key may not do this.",
    404: "There is no such thing, or not for this key.",
    405: "The address is known, with another method.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    421: "The Host header names another server.",
    422: "The request cannot be understood; `param` names the field.",
    429: "Too many requests; Retry-After says when.",
    431: "The headers are too large.",
    500: "A fault of the server.",
    502: "No worker could answer; the message names those that failed.",
    503: "The server is ending, or cannot write what it has to keep.",
    504: "There was no answer within the server's time for a request.",
}
_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
                "trace_id": {"type": "string"},
            },
        }
    },
}


def invalid(
    message: str, param: str | None = None, *, code: str | None = None, status: int = 400
) -> APIError:
    """A request that cannot be honoured, and the field that is at fault."""
    return APIError(status, "invalid_request_error", message, param=param, code=code)


def forbidden(message: str, param: str | None = None) -> APIError:
    """A request for what this caller may not have."""
    return APIError(403, "permission_error", message, param=param)


def missing(message: str, param: str | None = None, *, code: str | None = None) -> APIError:
    """A request for what there is not."""
    return APIError(404, "not_found_error", message, param=param, code=code)


def answer_changed(trace_id: str) -> APIError:
    """The end of a stream whose answer is another than what was sent of it."""
    return APIError(
        502,
        "answer_changed",
        "A worker broke off after text of it had been sent, and the answer that was given then is another: ask again, "
        "or without stream.",
        code="answer_changed",
        more={"trace_id": trace_id},
    )


def to_body(error: APIError) -> dict[str, Any]:
    """OpenAI's form of an error."""
    return {
        "error": {
            "message": error.message,
            "type": error.type,
            "param": error.param,
            "code": error.code,
            **error.more,
        }
    }


def to_response(error: APIError) -> Response:
    """The HTTP answer that a complaint is."""
    return Response(
        json.dumps(to_body(error)).encode(),
        status_code=error.status,
        headers=error.headers,
        media_type="application/json",
    )


async def refuse(error: APIError, scope: Scope, receive: Receive, send: Send) -> None:
    """Send `error` as the whole answer, from middleware that does not call the application."""
    await to_response(error)(scope, receive, send)


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses=`: the refusals that it knows, as the OpenAPI schema has them."""
    content = {"application/json": {"schema": _SCHEMA}}
    return {status: {"description": _SAYS[status], "content": content} for status in statuses}


ANY_ROUTE = (408, 413, 421, 422, 429, 431, 503, 504)
"""What any route may be refused with, before its own work or around it."""


def install(app: FastAPI) -> None:
    """Have every refusal of `app`, and every fault, answered in this form."""

    async def complained(request: Request, error: Exception) -> Response:
        del request
        return to_response(to_api_error(error))

    for kind in (PodiumError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, complained)


def to_api_error(error: Exception) -> APIError:
    """What a refusal or a fault of any kind is to its caller."""
    match error:
        case APIError():
            told = error
        case UsageError():
            told = invalid(str(error))
        case WorkerError():
            told = APIError(502, "workers_failed", str(error), code="workers_failed")
        case StoreError():
            told = APIError(503, "server_error", str(error), code="store_failed")
        case RequestValidationError():
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"][1:]) or None
            told = invalid(f"{where or 'The body'}: {first['msg']}.", where, status=422)
        case HTTPException():
            kind = _TYPES.get(error.status_code, "invalid_request_error")
            told = APIError(error.status_code, kind, f"{error.detail}.", headers=error.headers)
        case _:
            told = APIError(500, "server_error", "Something is wrong in the server; its log says more.")
    return told
