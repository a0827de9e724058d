"""What goes wrong below a reply: time limits, connections, TLS, proxies."""

import asyncio
import ssl
from base64 import b64encode

import pytest

from chat_endpoint import KEY, ask, failure, wire
from chat_worker import ChatClient
from podium.errors import ConfigError
from podium_testing.port import self_signed


async def test_a_body_that_never_ends_is_a_timeout_too() -> None:
    async with wire(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{", then_hang=True) as port:
        client = ChatClient(f"http://127.0.0.1:{port}", KEY)
        assert (await failure(client, timeout=0.2)).kind == "timeout"
        await client.close()


async def test_unfinished_connection_attempt_is_a_connect_timeout() -> None:
    # TLS that is never agreed on.
    async with wire(b"", then_hang=True, read=False) as port:
        client = ChatClient(f"https://127.0.0.1:{port}", KEY)
        error = await failure(client, timeout=30.0, connect_timeout=0.2)
        await client.close()
    assert (error.kind, error.retryable) == ("timeout", True)
    assert "no connection within 0.2 s (connect_timeout)" in str(error)


@pytest.mark.parametrize(
    ("reply", "kind", "retryable"),
    [
        (b"", "connection", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{", "connection", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", "connection", True),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "protocol", False),
    ],
)
async def test_broken_connection_is_retryable_and_other_protocol_is_not(
    reply: bytes, kind: str, retryable: bool
) -> None:
    async with wire(reply) as port:
        client = ChatClient(f"http://127.0.0.1:{port}", KEY)
        for stream in (False, True):
            error = await failure(client, stream=stream)
            assert (error.kind, error.retryable) == (kind, retryable)
        await client.close()


async def test_an_untrusted_certificate_is_reported_and_not_retried() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with (
        self_signed() as (context, _),
        await asyncio.start_server(hang_up, "127.0.0.1", 0, ssl=context) as server,
    ):
        assert isinstance(context, ssl.SSLContext)
        client = ChatClient(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", KEY)
        error = await failure(client)
        await client.close()
    assert (error.kind, error.retryable) == ("connection", False)
    assert "its certificate is not trusted" in str(error)
    assert "SSL_CERT_FILE" in str(error)


def _reply(status: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status, len(body), body)


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment without proxies and exceptions from them."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


async def test_a_proxy_of_the_environment_gets_its_password(proxied: pytest.MonkeyPatch) -> None:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        body = b'{"choices": [{"message": {"content": "4"}}]}'
        writer.write(_reply(b"200 OK", body))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        proxied.setenv("http_proxy", f"http://me:hush-hush@127.0.0.1:{port}")
        client = ChatClient("http://models.invalid/v1", KEY)
        assert (await ask(client)).text == "4"
        await client.close()
    assert requests[0].startswith(b"POST http://models.invalid/v1/chat/completions HTTP/1.1")
    assert b64encode(b"me:hush-hush") in requests[0]
    assert "hush" not in repr(client) + repr(vars(client)) + repr(vars(client.endpoint))


@pytest.mark.parametrize(
    ("variables", "url", "proxy"),
    [
        ({"ALL_PROXY": "http://p:1"}, "https://models.invalid/v1", "http://p:1"),
        ({"all_proxy": "http://p:1"}, "http://models.invalid/v1", "http://p:1"),
        ({"ALL_PROXY": "http://p:1", "https_proxy": "http://q:2"}, "https://models.invalid/v1", "http://q:2"),
        (
            {"ALL_PROXY": "socks5://p:1", "HTTPS_PROXY": "http://q:2"},
            "https://models.invalid/v1",
            "http://q:2",
        ),
        ({"HTTPS_PROXY": "p:3128"}, "https://models.invalid/v1", "http://p:3128"),
        ({"ALL_PROXY": "http://p:1", "no_proxy": "models.invalid"}, "https://models.invalid/v1", None),
        ({"ALL_PROXY": "socks5://p:1", "no_proxy": "invalid"}, "https://models.invalid/v1", None),
        ({"ALL_PROXY": "socks5://p:1"}, "http://localhost:11434/v1", None),
        ({"ALL_PROXY": "socks5://p:1"}, "http://127.0.0.1:8080/v1", None),
        ({"HTTP_PROXY": "http://p:1"}, "https://models.invalid/v1", None),
    ],
)
def test_the_environment_names_the_proxy(
    proxied: pytest.MonkeyPatch, variables: dict[str, str], url: str, proxy: str | None
) -> None:
    for name, value in variables.items():
        proxied.setenv(name, value)
    assert ChatClient(url, KEY).endpoint.proxy == proxy


@pytest.mark.parametrize("name", ["ALL_PROXY", "all_proxy", "HTTPS_PROXY"])
@pytest.mark.parametrize("kind", ["socks5", "socks5h", "socks4", "SOCKS"])
def test_a_socks_proxy_is_refused_in_one_sentence(proxied: pytest.MonkeyPatch, name: str, kind: str) -> None:
    proxied.setenv(name, f"{kind}://me:hush-hush@p.invalid:1080")
    with pytest.raises(ConfigError) as caught:
        ChatClient("https://models.invalid/v1", KEY)
    assert str(caught.value) == (
        f"the environment names the proxy {kind.lower()}://p.invalid:1080 for models.invalid, and Podium speaks to "
        "HTTP proxies only; set HTTPS_PROXY to one, or add models.invalid to NO_PROXY."
    )


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("reply", "kind", "retryable"),
    [
        (_reply(b"407 No", b"Not me:hu%2Fsh, nor bWU6aHUvc2g=."), "status", False),
        (_reply(b"502 Bad", b"I am me:hu/sh."), "status", True),
        (b"", "connection", True),
    ],
)
async def test_a_proxys_password_is_in_no_error(
    proxied: pytest.MonkeyPatch, scheme: str, reply: bytes, kind: str, retryable: bool
) -> None:
    async with wire(reply) as port:
        proxied.setenv(f"{scheme}_proxy", f"http://me:hu%2Fsh@127.0.0.1:{port}")
        client = ChatClient(f"{scheme}://models.invalid/v1", KEY)
        error = await failure(client)
        await client.close()
    # A tunnel that was refused is no reply of the endpoint.
    assert (error.kind, error.retryable) == ("connection" if scheme == "https" else kind, retryable)
    assert all(secret not in str(error) for secret in ("hu/sh", "hu%2F", "bWU6aHUvc2g"))


async def test_a_proxy_that_is_down_is_a_connection_that_failed(proxied: pytest.MonkeyPatch) -> None:
    async with wire(b"") as port:
        pass
    proxied.setenv("http_proxy", f"http://me:hush-hush@127.0.0.1:{port}")
    client = ChatClient("http://models.invalid/v1", KEY)
    error = await failure(client)
    await client.close()
    assert (error.kind, error.retryable) == ("connection", True)
    assert "hush" not in str(error)
