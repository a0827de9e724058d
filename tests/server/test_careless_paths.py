"""Paths as clients put them together: with slashes too many, or with /v1 twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from key_storage import KeyStorage
from running_server import Serve

ASKED: list[Any] = [{"role": "user", "content": "Hello?"}]
CHAT: dict[str, Any] = {"model": "podium", "messages": ASKED}
PATHS = {
    "//v1/chat/completions": CHAT,
    "/v1/chat/completions/": CHAT,
    "/v1//chat///completions//": CHAT,
    "/v1/v1/chat/completions": CHAT,
    "//v1//v1//chat/completions/": CHAT,
    "/v1/responses/": {"model": "podium", "input": "Hello?"},
    "/v1/v1/messages": {**CHAT, "max_tokens": 9},
    "//v1/messages/count_tokens/": CHAT,
    "/api//ask/": {"question": "Hello?"},
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Serve() as starting:
        yield starting(store=tmp_path_factory.mktemp("kept") / "traces.sqlite")


@pytest.mark.parametrize("path", PATHS)
def test_careless_path_of_a_post_request_is_answered(url: str, path: str) -> None:
    reply = httpx.post(url + path, json=PATHS[path], timeout=20)
    assert reply.status_code in (200, 202), reply.text


@pytest.mark.parametrize(
    "path", ["/v1/models/", "//v1/models", "/v1/v1/models/podium", "/healthz/", "//", "/viewer//index.html"]
)
def test_careless_path_of_a_get_request_is_answered(url: str, path: str) -> None:
    assert httpx.get(url + path, timeout=20).status_code == 200


@pytest.mark.parametrize("path", ["/v1/chat", "/v1chat/completions", "/v2//chat/completions", "/v1/v1"])
def test_unknown_path_is_not_found(url: str, path: str) -> None:
    assert httpx.post(url + path, json=CHAT, timeout=20).status_code == 404


def test_an_error_has_the_form_of_its_api(url: str) -> None:
    reply = httpx.post(f"{url}//v1//messages/", json={"model": "gpt-9", "messages": ASKED, "max_tokens": 9})
    assert (reply.status_code, reply.json()["type"]) == (404, "error")


@pytest.mark.parametrize("path", ["//v1/chat/completions", "/v1/v1/chat/completions", "/v1//models"])
async def test_a_careless_path_needs_a_key_as_the_route_does(serve: Serve, tmp_path: Path, path: str) -> None:
    storage = KeyStorage(str(tmp_path / "traces.sqlite"))
    key, _ = await storage.added()
    url = serve(keys=storage.keys())
    async with httpx.AsyncClient(base_url=url, timeout=20) as client:
        method = "GET" if path.endswith("models") else "POST"
        sent = {} if method == "GET" else {"json": CHAT}
        refused = await client.request(method, url + path, **sent)
        taken = await client.request(method, url + path, headers={"authorization": f"Bearer {key}"}, **sent)
    assert (refused.status_code, taken.status_code) == (401, 200)
