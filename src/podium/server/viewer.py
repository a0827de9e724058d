"""The viewer's static files, at `/` and under `/viewer/`. In the browser, the viewer shows what the API returns.

The files contain nothing private, so they need no key.
"""

from __future__ import annotations

from pathlib import Path, PurePath

from fastapi import FastAPI, Request, Response
from starlette.staticfiles import StaticFiles

FOLDER = Path(__file__).parent / "viewer"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
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
}


def add_routes(app: FastAPI) -> None:
    """The viewer's routes."""
    files = StaticFiles(directory=FOLDER)

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False, response_class=Response)
    async def page(request: Request) -> Response:
        return await file(request, "index.html")

    @app.api_route("/viewer/{path:path}", methods=["GET", "HEAD"], include_in_schema=False)
    async def file(request: Request, path: str) -> Response:
        response = await files.get_response(path, request.scope)
        response.headers.update(_HEADERS)
        media_type = _MEDIA_TYPES.get(PurePath(path).suffix, "text/plain; charset=utf-8")
        response.headers["content-type"] = media_type
        return response
