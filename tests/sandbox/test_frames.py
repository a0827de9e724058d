"""Messages arrive whole, or not yet."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from podium.sandbox.inside import frames


@given(st.binary(max_size=300), st.binary(max_size=20))
def test_frame_is_returned_once_complete(body: bytes, more: bytes) -> None:
    frame = frames.to_frame(body)
    assert not any(frames.is_complete(frame[:size]) for size in range(len(frame)))
    received = bytearray(frame + more)
    assert frames.is_complete(received)
    assert frames.pop_frame(received) == body
    assert received == more


def test_frames_cross_a_pipe_until_it_is_closed() -> None:
    source, sink = os.pipe()
    frames.write(sink, b"one")
    frames.write(sink, b"")
    os.write(sink, frames.to_frame(b"cut")[:-1])
    os.close(sink)
    assert [frames.read(source), frames.read(source), frames.read(source)] == [b"one", b"", None]
    os.close(source)
