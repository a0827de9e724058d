"""The learning rate's course, and the step."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from podium.train.shared_prefix.update import adamw, learning_rate, optimizer_step


@given(st.integers(1, 500), st.floats(0, 0.5))
def test_the_rate_rises_then_falls_and_is_never_zero_or_above_its_peak(
    iterations: int, warmup: float
) -> None:
    rates = [learning_rate(i, peak=1e-3, iterations=iterations, warmup=warmup) for i in range(iterations)]
    top = rates.index(max(rates))
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert min(rates) > 0
    assert max(rates) <= 1e-3


def test_the_rate_at_the_ends_of_a_course() -> None:
    course = [learning_rate(i, peak=1.0, iterations=100, warmup=0.1) for i in (0, 10, 55, 100)]
    assert course == pytest.approx([1 / 11, 1.0, 0.5, 0.0])


def test_a_step_clips_all_gradients_together_and_clears_them() -> None:
    model = torch.nn.Linear(3, 2)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 10.0)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    norm = optimizer_step(adamw(model), model, rate=0.5, max_norm=1.0)
    assert norm == pytest.approx(10 * 8**0.5, rel=1e-5)
    assert all(parameter.grad is None for parameter in model.parameters())
    for parameter, old in zip(model.parameters(), before, strict=True):
        # Adam's first step is as long as the rate, whatever the gradient's size.
        torch.testing.assert_close(parameter, old - 0.5, atol=1e-4, rtol=1e-4)
