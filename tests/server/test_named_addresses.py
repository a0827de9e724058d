"""A caller names addresses in requests: the server passes them on or refuses them, and connects to none of them."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from podium.team.team_file import open_pool
from podium_testing import FaultServer
from running_server import Serve

POOL = '[[worker]]\nname = "a"\nkind = "openai"\nmodel = "m"\nbase_url = "{url}"\nsees = true\n'
TEXT, INPUT = ({"type": kind, "text": "What is this?"} for kind in ("text", "input_text"))
REQUESTS: dict[str, tuple[str, Any, int]] = {
    "an image in chat": (
        "/v1/chat/completions",
        lambda url: {
            "messages": [
                {"role": "user", "content": [TEXT, {"type": "image_url", "image_url": {"url": url}}]}
            ]
        },
        200,
    ),
    "an image in a response": (
        "/v1/responses",
        lambda url: {
            "input": [{"role": "user", "content": [INPUT, {"type": "input_image", "image_url": url}]}]
        },
        200,
    ),
    "an image in a message": (
        "/v1/messages",
        lambda url: {
            "max_tokens": 9,
            "messages": [
                {"role": "user", "content": [TEXT, {"type": "image", "source": {"type": "url", "url": url}}]}
            ],
        },
        200,
    ),
    "a file": (
        "/v1/responses",
        lambda url: {
            "input": [{"role": "user", "content": [INPUT, {"type": "input_file", "file_url": url}]}]
        },
        400,
    ),
    "an image on this machine's disk": (
        "/v1/chat/completions",
        lambda url: {
            "messages": [
                {
                    "role": "user",
                    "content": [TEXT, {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}],
                }
            ]
        },
        400,
    ),
}


@pytest.mark.parametrize(("path", "body", "status"), REQUESTS.values(), ids=REQUESTS)
def test_no_address_that_a_request_names_is_connected_to(
    path: str, body: Any, status: int, serve: Serve, tmp_path: Path
) -> None:
    with FaultServer("Four.").in_thread() as provider, socket.create_server(("127.0.0.1", 0)) as listener:
        (tmp_path / "pool.toml").write_text(POOL.format(url=provider.url))
        address = serve(open_pool(tmp_path / "pool.toml"))
        named = f"http://127.0.0.1:{listener.getsockname()[1]}/x.png"
        reply = httpx.post(address + path, json={"model": "a"} | body(named), timeout=60)
        assert reply.status_code == status, reply.text
        listener.settimeout(0.0)
        with pytest.raises(BlockingIOError):
            listener.accept()
        assert len(provider.requests) == (status == 200)
