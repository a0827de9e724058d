"""Messages arrive whole, or not yet."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from podium.sandbox.inside import frames


@given(st.binary(max_size=300), st.binary(max_size=20))
def test_a_frame_is_taken_when_it_is_whole(body: bytes, more: bytes) -> None:
    framed = frames.framed(body)
    assert not any(frames.whole(framed[:size]) for size in range(len(framed)))
    heard = bytearray(framed + more)
    assert frames.whole(heard)
    assert frames.taken(heard) == body
    assert heard == more


def test_frames_cross_a_pipe_until_it_is_closed() -> None:
    source, sink = os.pipe()
    frames.write(sink, b"one")
    frames.write(sink, b"")
    os.write(sink, frames.framed(b"cut")[:-1])
    os.close(sink)
    assert [frames.read(source), frames.read(source), frames.read(source)] == [b"one", b"", None]
    os.close(source)
