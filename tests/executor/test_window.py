import math

from hypothesis import given
from hypothesis import strategies as st

from podium.executor.window import Window

steps = st.lists(st.tuples(st.floats(0, 30), st.floats(0.5, 40)), max_size=60)


@given(steps)
def test_no_stretch_as_long_as_the_window_holds_more_than_the_limit(waits_and_amounts):
    window, now, admitted = Window(100, 60), 0.0, []
    for wait, amount in waits_and_amounts:
        now += wait
        now += window.wait(amount, now)
        assert window.wait(amount, now) < 1e-6
        window.add(amount, now)
        admitted.append((now, amount))
    for start, _ in admitted:
        inside = [amount for at, amount in admitted if start <= at < start + 60 - 1e-6]
        assert sum(inside) <= 100 + 1e-6


def test_it_says_how_long_to_wait():
    window = Window(10, 60)
    window.add(6, 0.0)
    window.add(3, 20.0)
    assert window.wait(1, 30.0) == 0
    assert window.wait(5, 30.0) == 30.0
    assert window.wait(8, 30.0) == 50.0
    assert window.wait(5, 60.0) == 0


def test_what_is_larger_than_the_limit_waits_for_an_empty_window():
    window = Window(10, 60)
    assert window.wait(50, 0.0) == 0
    window.add(50, 0.0)
    assert window.wait(1, 1.0) == 59.0
    assert window.wait(50, 1.0) == 59.0


def test_an_entry_that_took_less_makes_room_and_one_that_took_more_takes_it():
    window = Window(10, 60)
    entry = window.add(8, 0.0)
    window.correct(entry, 2)
    assert window.total(1.0) == 2
    window.correct(entry, 9)
    assert window.wait(2, 1.0) == 59.0
    assert window.total(60.0) == 0
    window.correct(entry, 1)
    assert window.total(61.0) == 0


def test_a_window_without_a_limit_counts():
    window = Window(math.inf, 60)
    for at in range(100):
        window.add(1, float(at))
    assert window.total(99.0) == 60


def test_a_window_forgets_what_has_left_it_whoever_asks():
    window = Window(math.inf, 60)
    for at in range(1000):
        window.add(1, float(at))
    assert len(window._entries) <= 61
