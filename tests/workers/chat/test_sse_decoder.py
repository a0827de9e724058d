"""Server-sent events, in any pieces."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.workers.chat.response_reader import SSEDecoder


def _read(*chunks: bytes) -> list[bytes]:
    events = SSEDecoder()
    return [data for chunk in chunks for data in events.feed(chunk)] + list(events.end())


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        (b"", []),
        (b"data: a\n\ndata:b\n\ndata:  c\n\n", [b"a", b"b", b" c"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data\n\n", [b""]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", [b"a", b"b", b"c"]),
        (b": comment\ndata: a\n: another\n\n\n\n", [b"a"]),
        (b"event: x\nid: 7\nretry: 9\nnonsense\ndata: a\n\nevent: y\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", [b"a"]),
        (b"data: a: b", [b"a: b"]),
        (b"data: a\n\ndata: b\n", [b"a", b"b"]),
        ("data: ü\n\n".encode(), ["ü".encode()]),
    ],
)
def test_sse_events_follow_the_standard_and_include_an_unfinished_event(
    stream: bytes, data: list[bytes]
) -> None:
    assert _read(stream) == data
    assert _read(*(stream[i : i + 1] for i in range(len(stream)))) == data


@given(
    st.lists(
        st.sampled_from([b"data: a", b"data:", b": c", b"\n", b"\r", b"\r\n", b"x", b"\n\n"]), max_size=30
    ),
    st.lists(st.integers(0, 200), max_size=8),
)
def test_sse_decoding_does_not_depend_on_stream_splits(parts: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(parts)
    places = [0, *sorted(cuts), len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(places)]
    whole = b"".join(pieces)
    assert _read(*pieces) == _read(whole)


def test_pending_bytes_are_counted_until_the_event_is_complete() -> None:
    events = SSEDecoder()
    assert list(events.feed(b"data: " + b"x" * 1000)) == []
    assert 1000 <= events.pending < 2000
    assert list(events.feed(b"y\ndata: z\n")) == []
    assert 1000 <= events.pending < 2000
    assert list(events.feed(b"\n")) == [b"x" * 1000 + b"y\nz"]
    assert events.pending == 0
    for _ in range(100):
        assert list(events.feed(b": only a ")) == []
        assert list(events.feed(b"comment\n")) == []
    assert events.pending == 0
