"""The viewer's static files, at `/` and under `/viewer/`. In the browser, the viewer shows what the API returns.

The files contain nothing private, so they need no key. A process reads them once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request, Response

from podium.server.api_errors import not_found
from podium.server.service import Service

FOLDER = Path(__file__).parent / "viewer"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".md": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    "": "text/plain; charset=utf-8",
}
"""Media types by suffix. The system's own table differs from machine to machine."""
_CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # Browsers that support this let text become HTML only through the policy that DOMPurify makes for itself.
        "require-trusted-types-for 'script'",
        "trusted-types dompurify",
    )
)
_HEADERS = {
    # The browser checks the ETag each time, so that an update shows at once.
    "cache-control": "no-cache",
    "content-security-policy": _CONTENT_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    headers: dict[str, str]


def routes(service: Service) -> APIRouter:
    """The viewer's routes. They do not use the service."""
    del service
    router = APIRouter(include_in_schema=False)
    files = _read(FOLDER)

    @router.api_route("/", methods=["GET", "HEAD"])
    async def page(request: Request) -> Response:
        return _answer(request, files["index.html"])

    @router.api_route("/viewer/{path:path}", methods=["GET", "HEAD"])
    async def file(request: Request, path: str) -> Response:
        if path not in files:
            raise not_found(f"The viewer has no file {path[:100]!r}.")
        return _answer(request, files[path])

    return router


def _answer(request: Request, file: _File) -> Response:
    known = request.headers.get("if-none-match", "")
    if file.headers["etag"] in (mark.strip().removeprefix("W/") for mark in known.split(",")):
        return Response(status_code=304, headers=file.headers)
    return Response(file.content, headers=file.headers)


@cache
def _read(folder: Path) -> Mapping[str, _File]:
    files = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix in _MEDIA_TYPES:
            content = path.read_bytes()
            mark = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            headers = {**_HEADERS, "etag": mark, "content-type": _MEDIA_TYPES[path.suffix]}
            files[path.relative_to(folder).as_posix()] = _File(content, headers)
    return files
