"""How a fault server goes down and comes back, encrypts, ends, and runs in a thread; and that nothing of it is left."""

import asyncio
import os
import socket
import ssl
import stat
import urllib.error
import urllib.request
from contextlib import suppress
from typing import Any

import pytest

from podium.errors import ConfigError
from podium_testing import FaultServer, Hang, Rule, SlowDrip, Status
from raw_client import ask, question


def _open_sockets() -> set[int]:
    found = set()
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):  # that of the listing itself
            status = os.fstat(int(name))
            if stat.S_ISSOCK(status.st_mode):
                found.add(status.st_ino)
    return found


# --- down, deaf, up --------------------------------------------------------------------------------------


async def test_down_cuts_and_refuses_and_up_answers_at_the_same_address() -> None:
    async with FaultServer("Four.", rules=[Rule(fault=Hang(), times=1)]) as server:
        url = server.url
        hanging = asyncio.create_task(ask(server))
        await server.wait_for_requests(1)
        for _ in range(3):
            server.down()
            with pytest.raises(ConnectionRefusedError):
                await ask(server)
            server.up()
            assert (await ask(server)).text == "Four."
        assert (await hanging).status is None
        assert server.url == url
    assert server.requests[0].fault == "hang"
    assert not server.requests[0].went_away


async def test_server_answers_after_down_and_up_without_pause() -> None:
    async with FaultServer("Four.") as server:
        for _ in range(20):
            server.down()
            server.up()
        assert (await ask(server)).good


async def test_no_other_program_gets_the_port_of_a_server_that_is_down() -> None:
    async with FaultServer() as server:
        server.down()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", server.port))


async def test_a_deaf_server_leaves_connections_hanging() -> None:
    async with FaultServer("Four.") as server:
        server.deaf()
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await ask(server)
        assert server.requests == ()
        server.up()
        assert (await ask(server)).good


# --- TLS -------------------------------------------------------------------------------------------------


async def test_client_refuses_untrusted_certificate_of_fault_server() -> None:
    async with FaultServer("Four.", tls=True) as server:
        assert server.url == server.https_url
        with pytest.raises(ssl.SSLCertVerificationError):
            await ask(server, encryption=ssl.create_default_context())
        trusting = ssl.create_default_context(cafile=str(server.certificate))
        assert (await ask(server, encryption=trusting)).text == "Four."
    assert len(server.requests) == 1
    assert not server.certificate.exists()


async def test_connection_without_tls_handshake_leaves_no_open_socket() -> None:
    before = _open_sockets()
    async with FaultServer(tls=True) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await asyncio.sleep(0.05)
    writer.transport.abort()
    await asyncio.sleep(0)
    assert _open_sockets() == before


async def test_https_request_to_plain_http_port_is_a_tls_error() -> None:
    async with FaultServer("Four.") as server:
        assert server.https_url == server.url.replace("http", "https")
        with pytest.raises(ssl.SSLError):
            await ask(server, encryption=ssl.create_default_context())
        assert (await ask(server)).good
    assert len(server.requests) == 1


async def test_without_openssl_a_certificate_is_refused_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="https_url"):
        async with FaultServer(tls=True):
            pass


# --- the end ---------------------------------------------------------------------------------------------


async def test_server_end_closes_hanging_requests_and_leaves_no_task_or_socket() -> None:
    before = _open_sockets()
    rules = [Rule(fault=Hang(), contains="hang"), Rule(fault=SlowDrip(seconds=60), contains="drip")]
    async with FaultServer("Four.", rules=rules) as server:
        asked = [asyncio.create_task(ask(server, question(text))) for text in ["hang", "drip", "well"] * 20]
        await server.wait_for_requests(60)
        await asyncio.gather(*asked[2::3])
        _, idle = await asyncio.open_connection("127.0.0.1", server.port)
    seen = await asyncio.gather(*asked)
    idle.transport.abort()
    await asyncio.sleep(0)
    assert [each.good for each in seen] == [False, False, True] * 20
    assert not any(request.in_flight or request.went_away for request in server.requests)
    assert len(asyncio.all_tasks()) == 1
    assert _open_sockets() == before


async def test_a_failure_inside_is_not_hidden_by_the_end() -> None:
    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        raise LookupError("hidden")

    async def fail() -> None:
        async with FaultServer(answer) as server:
            await ask(server)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()


async def test_a_port_that_is_taken_is_an_error_and_leaves_nothing() -> None:
    async with FaultServer() as server:
        with pytest.raises(OSError, match="in use"):
            async with FaultServer(port=server.port):
                pass


# --- a thread of its own ---------------------------------------------------------------------------------


def _status(url: str) -> int:
    content = b'{"model": "m", "messages": []}'
    asked = urllib.request.Request(f"{url}/chat/completions", content, {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(asked, timeout=10) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_fault_server_in_a_thread_serves_synchronous_callers() -> None:
    with FaultServer("Four.", rules=[Rule(fault=Status(code=503), times=1)]).in_thread() as server:
        assert [_status(server.url), _status(server.url)] == [503, 200]
        server.rules = [Rule(fault=Status(code=500))]
        assert _status(server.url) == 500
        server.down()
        with pytest.raises(OSError, match="refused"):
            _status(server.url)
        server.rules = []
        server.up()
        assert _status(server.url) == 200
    assert [request.status for request in server.requests] == [503, 200, 500, 200]
    with pytest.raises(OSError, match="refused"):
        _status(server.url)


def test_a_thread_raises_what_its_server_raised() -> None:
    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        raise LookupError("no answer")

    with pytest.raises(LookupError, match="no answer"), FaultServer(answer).in_thread() as server:
        assert _status(server.url) == 500


def test_in_thread_raises_when_the_port_is_in_use() -> None:
    with (
        FaultServer().in_thread() as server,
        pytest.raises(OSError, match="in use"),
        FaultServer(port=server.port).in_thread(),
    ):
        pass


def test_an_address_that_is_read_too_early_raises() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        _ = FaultServer().url
