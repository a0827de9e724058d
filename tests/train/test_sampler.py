"""The sampler draws from the model's own distribution, and says with which probability."""

from __future__ import annotations

import pytest
import torch
from tiny_run import SHAPE

from podium.train.batch import Group, micro_batches
from podium.train.grpo import completion_logprobs
from podium.train.model import PolicyModel
from podium.train.randomness import generator
from podium.train.sampler import sample

PROMPTS = [[1, 5, 9, 7, 4], [1, 8, 8], [1, 4, 5, 6, 7, 8, 9, 10]]


@pytest.fixture
def model() -> PolicyModel:
    made = PolicyModel(SHAPE)
    made.initialise(generator("tests/sampler"), deviation=0.3)
    return made


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_sampled_logprobs_equal_the_trainers(model: PolicyModel, temperature: float) -> None:
    drawn = sample(model, PROMPTS, group=16, max_tokens=24, end=2, seed="equal", temperature=temperature)
    lengths = [len(row) for samples in drawn for row in samples.tokens]
    assert min(lengths) < 8, "no row ended early enough to be dropped from the batch"
    assert max(lengths) == 24
    for prompt, samples in zip(PROMPTS, drawn, strict=True):
        group = Group(tuple(prompt), samples.tokens, (1.0,) * 16)
        (batch,) = micro_batches([group], "bnpo", max_tokens=24)
        trained = completion_logprobs(model, batch, temperature)
        sampled = torch.tensor([value for row in samples.logprobs for value in row])
        torch.testing.assert_close(sampled, trained, atol=1e-4, rtol=0)


def test_one_seed_gives_one_batch_and_another_seed_another(model: PolicyModel) -> None:
    first, again, other = (
        sample(model, PROMPTS, group=4, max_tokens=8, end=2, seed=seed) for seed in ("a", "a", "b")
    )
    assert first == again
    assert first != other


def test_a_question_is_sampled_alike_whatever_stands_beside_it(model: PolicyModel) -> None:
    together = sample(model, PROMPTS, group=4, max_tokens=8, end=2, seed="a")
    alone = sample(model, PROMPTS[:1], group=4, max_tokens=8, end=2, seed="a")
    assert together[0].tokens == alone[0].tokens


def test_frequencies_follow_the_probabilities(model: PolicyModel) -> None:
    prompt = PROMPTS[0]
    (drawn,) = sample(model, [prompt], group=20_000, max_tokens=1, end=2, seed="many")
    counts = torch.bincount(torch.tensor([row[0] for row in drawn.tokens]), minlength=SHAPE.vocab)
    expected = model(torch.tensor([prompt]))[0, -1].softmax(-1) * 20_000
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < 60  # 22 degrees of freedom: exceeded by chance once in 50,000 seeds


def test_rows_end_at_the_end_token_or_at_the_limit(model: PolicyModel) -> None:
    for samples in sample(model, PROMPTS, group=32, max_tokens=6, end=2, seed="ends"):
        for row, logprobs, ended in zip(samples.tokens, samples.logprobs, samples.ended, strict=True):
            assert len(row) == len(logprobs) <= 6
            assert 2 not in row[:-1]
            assert ended == (row[-1] == 2)
            assert ended or len(row) == 6


def test_sampling_changes_nothing_of_the_model(model: PolicyModel) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    sample(model, PROMPTS, group=2, max_tokens=4, end=2, seed="a")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize(
    ("prompt", "message"), [([1], "at least two tokens"), ([1] * 126, "exceed the model's 128 positions")]
)
def test_prompts_that_cannot_be_continued_are_refused(
    model: PolicyModel, prompt: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        sample(model, [prompt], group=2, max_tokens=8, end=2, seed="a")
