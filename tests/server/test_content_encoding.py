"""Compressed bodies are read as plain ones are, within the same limits."""

from __future__ import annotations

import gzip
import json
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from key_storage import KeyStorage
from podium.errors import APIError
from podium.server.body_limits import decode_body
from running_server import Serve

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HELLO = json.dumps({"model": "podium", "messages": [{"role": "user", "content": "Hello?"}]}).encode()
MIB = 2**20


def bare(content: bytes) -> bytes:
    """Deflate without zlib's head and sum, as some clients send it."""
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(content) + compressor.flush()


ENCODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "as it is": ("identity", bytes),
    "gzip": ("gzip", gzip.compress),
    "its old name, in capitals": ("X-GZIP", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "deflate without a head": ("deflate", bare),
    "zstd": ("zstd", zstd.compress),
    "two, one that is none": ("identity,gzip", gzip.compress),
}


def post(url: str, body: bytes, encoding: str) -> tuple[int, Any, httpx.Headers]:
    headers = {"content-type": "application/json", "content-encoding": encoding}
    reply = httpx.post(f"{url}/v1/chat/completions", content=body, headers=headers, timeout=60)
    return reply.status_code, reply.json(), reply.headers


@pytest.mark.parametrize(("encoding", "compress"), ENCODINGS.values(), ids=ENCODINGS)
def test_a_compressed_body_is_read(plain_url: str, encoding: str, compress: Callable[[bytes], bytes]) -> None:
    status, reply, _ = post(plain_url, compress(HELLO), encoding)
    assert (status, reply["object"]) == (200, "chat.completion")


@pytest.mark.parametrize("encoding", ["br", "compress", "gzip, aes", "gzip, zstd"])
def test_an_encoding_that_is_not_known_is_refused_with_those_that_are(plain_url: str, encoding: str) -> None:
    status, reply, headers = post(plain_url, HELLO, encoding)
    assert (status, reply["error"]["code"]) == (415, "unsupported_encoding")
    assert headers["accept-encoding"] == "gzip, deflate, zstd"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", HELLO),
        ("deflate", b"\xff" + HELLO),
        ("zstd", HELLO),
        ("gzip", gzip.compress(HELLO)[:-9]),
        ("deflate", zlib.compress(HELLO)[:-5]),
        ("zstd", zstd.compress(HELLO)[:-1]),
        ("gzip", gzip.compress(HELLO) + b"more"),
        ("zstd", zstd.compress(HELLO) + HELLO),
        # It wants a memory of 128 MiB from its reader.
        ("zstd", zstd.compress(b"a" * (9 * MIB), options={zstd.CompressionParameter.window_log: 27})),
    ],
    ids=lambda value: value if isinstance(value, str) else "body",  # gzip writes the time into it.
)
def test_body_that_does_not_match_its_encoding_is_refused(plain_url: str, encoding: str, body: bytes) -> None:
    status, reply, _ = post(plain_url, body, encoding)
    assert (status, reply["error"]["code"]) == (400, "invalid_encoding"), reply


def test_a_key_is_checked_before_a_body_is_decoded(serve: Serve, tmp_path: Path) -> None:
    storage = KeyStorage(str(tmp_path / "traces.sqlite"))
    storage.add()
    status, reply, _ = post(serve(keys=storage.keys()), HELLO, "gzip")
    assert (status, reply["error"]["type"]) == (401, "authentication_error")


def test_a_body_that_grows_too_large_is_refused(serve: Serve) -> None:
    url = serve(body_bytes=64 * 1024)
    blank = HELLO + b" " * (64 * 1024)
    for encoding, compress in ENCODINGS.values():
        status, reply, _ = post(url, compress(blank), encoding)
        assert (status, reply["error"]["code"]) == (413, "body_too_large"), encoding


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "deflate"])
def test_compression_bomb_is_decoded_no_further_than_the_limit(encoding: str) -> None:
    bomb = dict(ENCODINGS.values())[encoding](bytes(64 * MIB))
    tracemalloc.start()
    try:
        with pytest.raises(APIError, match="is larger than"):
            decode_body(bomb, encoding, MIB)
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()


@given(st.sampled_from(["gzip", "deflate", "zstd"]), st.binary(max_size=4000))
def test_an_encoded_body_is_decoded_again(encoding: str, body: bytes) -> None:
    sent = dict(ENCODINGS.values())[encoding](body)
    assert decode_body(sent, encoding, len(body)) == body
    if body:
        with pytest.raises(APIError, match="is larger than"):
            decode_body(sent, encoding, len(body) - 1)


@given(st.sampled_from(["gzip", "deflate", "zstd"]), st.binary(min_size=1, max_size=200))
def test_any_bytes_are_decoded_or_refused(encoding: str, body: bytes) -> None:
    with suppress(APIError):
        decode_body(body, encoding, MIB)
