from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podium.errors import APIError
from podium.server.streaming import StreamedText


def test_one_attempts_text_is_sent_as_it_comes() -> None:
    sent = StreamedText()
    assert [sent.add(0, piece) for piece in ("Six", " by", " seven")] == ["Six", " by", " seven"]
    assert sent.finish("Six by seven", "t") == ""


def test_whitespace_around_a_streamed_answer_does_not_change_the_answer() -> None:
    sent = StreamedText()
    sent.add(0, "42.\n")
    assert sent.finish("42.", "t") == ""


@given(
    st.lists(st.tuples(st.integers(0, 2), st.text("ab", max_size=3)), max_size=12), st.text("ab", max_size=6)
)
def test_streamed_text_is_a_prefix_of_the_answer_or_an_error_is_raised(
    pieces: list[tuple[int, str]], answer: str
) -> None:
    sent = StreamedText()
    told = "".join(sent.add(attempt, piece) for attempt, piece in pieces)
    assert sent.text == told
    try:
        assert told + sent.finish(answer, "t") == answer
    except APIError:
        assert not answer.startswith(told)
