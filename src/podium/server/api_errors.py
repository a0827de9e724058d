"""Errors as clients expect them: in Anthropic's form under /v1/messages, in OpenAI's everywhere else.

Any code may raise an `APIError`. `add_error_handlers` turns it into a response, and also errors of Podium and of the
web framework.
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
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "An error: `message` says what to do, `param` names the field at fault, if it is one.",
        "content": {"application/json": {"schema": _SCHEMA}},
    }
}
"""What the OpenAPI schema says about every status that a route does not describe itself."""


def invalid(
    message: str, param: str | None = None, *, code: str | None = None, status: int = 400
) -> APIError:
    """The error for a request that cannot be honoured. `param` is the field at fault."""
    return APIError(status, "invalid_request_error", message, param=param, code=code)


def forbidden(message: str, param: str | None = None) -> APIError:
    return APIError(403, "permission_error", message, param=param)


def not_found(message: str, param: str | None = None, *, code: str | None = None) -> APIError:
    return APIError(404, "not_found_error", message, param=param, code=code)


def answer_changed(trace_id: str) -> APIError:
    """The error that ends a stream whose final answer does not begin with the text already sent."""
    return APIError(
        502,
        "answer_changed",
        "A worker broke off after part of its text had been sent, and the final answer differs from that text: ask "
        "again, or without stream.",
        code="answer_changed",
        more={"trace_id": trace_id},
    )


def took_too_long(seconds: float, recorded: str) -> APIError:
    """The error for a question that had no answer within the server's limit of `seconds`. Its trace has the status
    `recorded`."""
    return APIError(
        504,
        "timeout_error",
        f"There was no answer within {seconds:g} s, and the question is recorded as {recorded}: ask for less, or "
        "have the server started with a longer serve.timeout.",
        code="request_timeout",
    )


def to_body(error: APIError) -> dict[str, Any]:
    return {
        "error": {
            "message": error.message,
            "type": error.type,
            "param": error.param,
            "code": error.code,
            **error.more,
        }
    }


_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def to_anthropic_body(error: APIError) -> dict[str, Any]:
    kind = _ANTHROPIC.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {**to_body(error)["error"], "type": kind}}


def to_response(error: APIError, path: str = "") -> Response:
    body = to_anthropic_body(error) if path.startswith("/v1/messages") else to_body(error)
    return Response(
        json.dumps(body).encode(),
        status_code=error.status,
        headers=error.headers,
        media_type="application/json",
    )


async def send_error(error: APIError, scope: Scope, receive: Receive, send: Send) -> None:
    """Send `error` as the whole answer, from middleware that does not call the application."""
    await to_response(error, scope["path"])(scope, receive, send)


def add_error_handlers(app: FastAPI) -> None:
    async def respond(request: Request, error: Exception) -> Response:
        return to_response(to_api_error(error), request.url.path)

    for kind in (PodiumError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, respond)


def to_api_error(error: Exception) -> APIError:
    """Any exception as an `APIError`. The details of a bug stay in the server's log."""
    match error:
        case APIError():
            converted = error
        case UsageError():
            converted = invalid(str(error))
        case WorkerError():
            converted = APIError(502, "workers_failed", str(error), code="workers_failed")
        case StoreError():
            converted = APIError(503, "server_error", str(error), code="store_failed")
        case RequestValidationError():
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"][1:]) or None
            converted = invalid(f"{where or 'The body'}: {first['msg']}.", where, status=422)
        case HTTPException():
            kind = "not_found_error" if error.status_code == 404 else "invalid_request_error"
            converted = APIError(error.status_code, kind, f"{error.detail}.", headers=error.headers)
        case _:
            converted = APIError(500, "server_error", "The server has an internal error; its log says more.")
    return converted
