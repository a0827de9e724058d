"""Log-probabilities of tokens equal those of torch, and so do their gradients."""

from __future__ import annotations

import pytest
import torch

from podium.train.logprob import token_logprobs
from podium.train.randomness import generator


@pytest.mark.parametrize("count", [1, 256, 700])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_values_and_gradients_equal_those_of_a_plain_log_softmax(
    count: int, temperature: float, dtype: torch.dtype
) -> None:
    draw = generator(f"{count}")
    hidden = torch.randn(count, 12, generator=draw, dtype=dtype).requires_grad_()
    weight = torch.randn(31, 12, generator=draw, dtype=dtype).requires_grad_()
    targets = torch.randint(31, (count,), generator=draw)
    aim = torch.randn(count, generator=draw, dtype=dtype)

    plain = (hidden @ weight.T / temperature).log_softmax(-1).gather(1, targets.unsqueeze(1)).squeeze(1)
    expected = torch.autograd.grad((plain * aim).sum(), (hidden, weight))
    fused = token_logprobs(hidden, weight, targets, temperature=temperature)
    found = torch.autograd.grad((fused * aim).sum(), (hidden, weight))

    torch.testing.assert_close(fused.to(dtype), plain, atol=1e-5, rtol=1e-5)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_a_token_that_is_nearly_impossible_has_a_finite_logprob() -> None:
    hidden = torch.tensor([[100.0, 0.0]], requires_grad=True)
    logprobs = token_logprobs(hidden, torch.eye(2), torch.tensor([1]))
    logprobs.sum().backward()
    assert logprobs.item() == -100.0
    assert hidden.grad.tolist() == [[-1.0, 1.0]]
