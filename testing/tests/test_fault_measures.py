"""What is measured on requests, against the plain definition."""

from hypothesis import given
from hypothesis import strategies as st

from podium_testing import Minute, Received, most_at_once, worst_minute


def _received(at: float, tokens: int = 0, ended_at: float | None = None) -> Received:
    return Received(
        number=0,
        at=at,
        path="/v1/chat/completions",
        model="m",
        body={},
        headers={},
        fault=None,
        status=200,
        input_tokens=tokens // 2,
        output_tokens=tokens - tokens // 2,
        ended_at=ended_at,
        gone_at=None,
    )


TIMES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 50)), max_size=30)


@given(TIMES)
def test_worst_minute_is_the_maximum_over_all_60_second_windows(asked: list[tuple[int, int]]) -> None:
    windows = [[tokens for at, tokens in asked if start <= at < start + 60] for start in range(-60, 301)]
    expected = Minute(max(map(len, windows)), max(map(sum, windows)))
    assert worst_minute(_received(at, tokens) for at, tokens in asked) == expected


def test_requests_a_full_minute_apart_are_not_counted_in_the_same_minute() -> None:
    assert worst_minute([_received(0.0), _received(60.0)]) == (1, 0)
    assert worst_minute([_received(0.0), _received(59.999)]) == (2, 0)
    assert worst_minute([_received(0.0), _received(2.0)], seconds=1.0) == (1, 0)


@given(st.lists(st.tuples(st.integers(0, 50), st.one_of(st.none(), st.integers(1, 20))), max_size=30))
def test_peak_concurrency_is_the_maximum_over_all_moments(asked: list[tuple[int, int | None]]) -> None:
    spans = [(at, None if lasts is None else at + lasts) for at, lasts in asked]
    moments = [sum(at <= now and (end is None or now < end) for at, end in spans) for now in range(72)]
    assert most_at_once(_received(at, ended_at=end) for at, end in spans) == max(moments)
