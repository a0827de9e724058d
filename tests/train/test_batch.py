"""Groups become tensors with less work than they have tokens, and with the same gradient."""

from __future__ import annotations

from dataclasses import replace
from math import log

import pytest
import torch

from podium.train.objective import LOSSES, mean_over_completions, mean_over_limits
from podium.train.runtime import named_generator
from podium.train.settings import GRPOSettings
from podium.train.shared_prefix.batch import MicroBatch, TrainingRow, count_trainable_tokens, micro_batches
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.update import accumulate
from tiny_run import SHAPE, make_group

Group = list[TrainingRow]
MAX_TOKENS = 9
PROMPT = (1, 4, 9, 7)
A, B, C = (5, 6, 2), (5, 6, 8, 2), (11, 2)


@pytest.fixture
def model() -> PolicyModel:
    made = PolicyModel(SHAPE)
    made.initialise(named_generator("tests/batch"), deviation=0.2)
    return made


def weighted_advantages(batch: MicroBatch) -> list[float]:
    """Of each token the sum over its rows, of both signs."""
    return (batch.positive_advantages_N + batch.negative_advantages_N).tolist()


def gradient(model: PolicyModel, groups: list[Group], loss_type: str) -> dict[str, torch.Tensor]:
    model.zero_grad()
    accumulate(model, groups, GRPOSettings(loss_type=loss_type, max_tokens=MAX_TOKENS))
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def plain_gradient(model: PolicyModel, groups: list[Group], loss_type: str) -> dict[str, torch.Tensor]:
    """The same, sequence by sequence through the whole model: no shared prompts, no rows merged, nothing packed."""
    weights = LOSSES[loss_type](
        [len(row.tokens) for group in groups for row in group if row.advantage is not None],
        max_tokens=MAX_TOKENS,
    )
    left = iter(weights)
    loss = torch.zeros(())
    for row in (row for group in groups for row in group if row.advantage is not None):
        whole = (*row.prompt, *row.tokens)
        logprobs = model(torch.tensor([whole]))[0].log_softmax(-1)
        weight = next(left)
        for at in range(len(row.prompt), len(row.prompt) + (row.trainable_tokens or len(row.tokens))):
            loss = loss - row.advantage * weight * logprobs[at - 1, whole[at]]
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters()}


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert max(float(value.abs().max()) for value in one.values()) > 1e-3
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], atol=1e-6, rtol=1e-3, msg=name)


def trimmed(group: Group, *counts: int) -> Group:
    return [replace(row, trainable_tokens=count) for row, count in zip(group, counts, strict=True)]


SUFFIXED = make_group(PROMPT, (A, A, C, A), (1.0, -0.4, None, 0.7), ((8,), (8,), (), (3, 12, 4)))
WHOLE = make_group(PROMPT, (A, B, C, A), (1.0, -0.4, 0.3, 0.7))
TRIMMED = trimmed(WHOLE, 2, 2, 1, 2)
BOTH = trimmed(make_group(PROMPT[:2], (B, B, A), (0.5, 0.5, -1.0), ((9, 7), (10,), ())), 1, 4, 3)


@pytest.mark.parametrize("loss_type", LOSSES)
@pytest.mark.parametrize("groups", [[SUFFIXED], [TRIMMED], [BOTH], [SUFFIXED, TRIMMED, BOTH]])
def test_batched_gradient_equals_the_gradient_of_separate_sequences(
    model: PolicyModel, groups: list[Group], loss_type: str
) -> None:
    assert_same(gradient(model, groups, loss_type), plain_gradient(model, groups, loss_type))


@pytest.mark.parametrize("loss_type", LOSSES)
def test_equal_completions_have_the_gradient_of_completions_kept_apart(
    model: PolicyModel, loss_type: str
) -> None:
    together = [make_group(PROMPT, (A, C, A, B, A), (1.0, -0.5, 0.25, 2.0, -3.0))]
    apart = [
        make_group(PROMPT, (A, C), (1.0, -0.5)),
        make_group(PROMPT, (A, B), (0.25, 2.0)),
        make_group(PROMPT, (A,), (-3.0,)),
    ]
    rows = [
        [batch.grid_GT.shape[0] for batch in micro_batches(groups, LOSSES[loss_type], max_tokens=9)]
        for groups in (together, apart)
    ]
    assert rows == [[3], [2, 2, 1]]
    assert_same(gradient(model, together, loss_type), gradient(model, apart, loss_type))


@pytest.mark.parametrize("loss_type", LOSSES)
def test_a_prompt_suffix_counts_as_the_end_of_a_longer_prompt(model: PolicyModel, loss_type: str) -> None:
    longer = [[row] for row in SUFFIXED]
    assert_same(gradient(model, [SUFFIXED], loss_type), gradient(model, longer, loss_type))


def test_a_trimmed_group_weighs_tokens_by_their_whole_completions(model: PolicyModel) -> None:
    (batch,) = micro_batches([trimmed(WHOLE, 1, 1, 1, 1)], mean_over_completions, max_tokens=9)
    # A, B and A begin alike and are one row; B is longer, so each token of it weighs less.
    expected = (1.0 + 0.7) / (3 * 4) - 0.4 / (4 * 4)
    assert batch.targets_N.tolist() == [5, 11]
    assert weighted_advantages(batch) == pytest.approx([expected, 0.3 / (2 * 4)])


def test_the_tokens_of_a_prompt_suffix_are_read_and_not_trained_on() -> None:
    (batch,) = micro_batches([BOTH], mean_over_limits, max_tokens=1)
    assert batch.inputs_N.tolist() == [*(4, 9, 7), *(4, 10, 5, 6, 8), *(4, 5, 6)]
    assert batch.targets_N.tolist() == [*(9, 7, 5), *(10, 5, 6, 8, 2), *(5, 6, 2)]
    assert weighted_advantages(batch) == pytest.approx([*(0, 0, 1 / 6), 0, *[1 / 6] * 4, *[-1 / 3] * 3])


def test_tokens_after_the_same_beginning_are_one_with_advantages_summed() -> None:
    group = make_group(PROMPT, (A, B, (5, 6), C), (1.0, -0.5, 2.0, 0.25))
    drawn = [replace(row, old_logprobs=(-1.0, -2.0, -3.0, -4.0)) for row in group]
    (batch,) = micro_batches([drawn], mean_over_limits, max_tokens=1)
    assert batch.inputs_N.tolist() == [7, 5, 6, 6, 8, 7, 11]
    assert batch.targets_N.tolist() == [5, 6, 2, 8, 2, 11, 2]
    assert batch.positive_advantages_N.tolist() == [0.75, 0.75, 0.25, 0, 0, 0.0625, 0.0625]
    assert batch.negative_advantages_N.tolist() == [-0.125, -0.125, 0, -0.125, -0.125, 0, 0]
    # Of the four rows one begins with another: it needs no attention of its own.
    assert batch.grid_GT.tolist() == [[0, 1, 2, 0], [0, 1, 3, 4], [5, 6, 0, 0]]
    assert batch.cells_N.tolist() == [0, 1, 2, 6, 7, 8, 9]


def test_a_token_that_was_certain_when_drawn_is_read_and_not_trained_on() -> None:
    group = make_group(PROMPT, ((5, 6, 2), (5, 9, 2)), (1.0, -0.5))
    drawn = [replace(row, old_logprobs=(-1.0, 0.0, -2.0)) for row in group]
    (batch,) = micro_batches([drawn], mean_over_limits, max_tokens=1)
    assert batch.targets_N.tolist() == [5, 6, 2, 9, 2]
    assert batch.positive_advantages_N.tolist() == [0.5, 0, 0.5, 0, 0]
    assert batch.negative_advantages_N.tolist() == [-0.25, 0, 0, 0, -0.25]
    assert batch.token_weights_N.tolist() == [1.0, 0, 0.5, 0, 0.5]


@pytest.mark.parametrize(
    ("probabilities", "skip_suffix_min_prob", "count"),
    [
        ((0.5, 0.9, 0.999), 0.99, 2),
        ((0.5, 0.999, 0.7, 0.999, 1.0), 0.99, 3),
        ((0.999, 0.999, 0.5), 0.99, 3),
        ((0.999, 1.0), 0.99, 1),
        ((0.4,), 0.99, 1),
        ((0.4, 0.9999, 1.0, 1.0), 1.0, 2),
        ((0.999, 1.0), 1.0, 1),
    ],
)
def test_tokens_after_the_last_uncertain_one_are_not_trained_on(
    probabilities: tuple[float, ...], skip_suffix_min_prob: float, count: int
) -> None:
    assert count_trainable_tokens([log(value) for value in probabilities], skip_suffix_min_prob) == count
