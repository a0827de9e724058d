"""The sampler draws from the model's own distribution, and says with which probability."""

from __future__ import annotations

import pytest
import torch
from tiny_run import SHAPE
from torch.utils.flop_counter import FlopCounterMode

from podium.train.objective import mean_over_tokens
from podium.train.runtime import generator
from podium.train.shared_prefix.batch import Group, MicroBatch, micro_batches
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.sampler import sample
from podium.train.shared_prefix.update import completion_logprobs

PROMPTS = [[1, 5, 9, 7, 4], [1, 8, 8], [1, 4, 5, 6, 7, 8, 9, 10]]


@pytest.fixture
def model() -> PolicyModel:
    made = PolicyModel(SHAPE)
    made.initialise(generator("tests/sampler"), deviation=0.3)
    return made


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_sampled_logprobs_equal_the_trainers(model: PolicyModel, temperature: float) -> None:
    drawn = sample(
        model,
        PROMPTS,
        prompt_suffixes=[[()] * 16] * len(PROMPTS),
        max_tokens=24,
        eos_token_ids=(2,),
        seed="equal",
        temperature=temperature,
    )
    lengths = [len(row) for samples in drawn for row in samples.tokens]
    assert min(lengths) < 8, "no row ended early enough to be dropped from the batch"
    assert max(lengths) == 24
    for prompt, samples in zip(PROMPTS, drawn, strict=True):
        group = Group(tuple(prompt), samples.tokens, (1.0,) * 16)
        (batch,) = micro_batches([group], mean_over_tokens, max_tokens=24)
        logprobs = completion_logprobs(model, batch, temperature)
        (paths,) = batch.paths
        trained = torch.cat([logprobs[path] for path in paths])
        sampled = torch.tensor([value for row in samples.logprobs for value in row])
        torch.testing.assert_close(sampled, trained, atol=1e-4, rtol=0)


def test_one_seed_gives_one_batch_and_another_seed_another(model: PolicyModel) -> None:
    first, again, other = (
        sample(
            model,
            PROMPTS,
            prompt_suffixes=[[()] * 4] * len(PROMPTS),
            max_tokens=8,
            eos_token_ids=(2,),
            seed=seed,
        )
        for seed in ("a", "a", "b")
    )
    assert first == again
    assert first != other


def test_samples_of_a_question_do_not_depend_on_other_questions(model: PolicyModel) -> None:
    together = sample(
        model, PROMPTS, prompt_suffixes=[[()] * 4] * len(PROMPTS), max_tokens=8, eos_token_ids=(2,), seed="a"
    )
    alone = sample(
        model,
        PROMPTS[:1],
        prompt_suffixes=[[()] * 4] * len(PROMPTS[:1]),
        max_tokens=8,
        eos_token_ids=(2,),
        seed="a",
    )
    assert together[0].tokens == alone[0].tokens


def test_rows_that_draw_the_same_tokens_cost_as_much_as_one_row(model: PolicyModel) -> None:
    work = []
    for rows in (1, 16):
        with FlopCounterMode(display=False) as counted:
            (drawn,) = sample(
                model,
                PROMPTS[:1],
                prompt_suffixes=[[()] * rows],
                max_tokens=12,
                eos_token_ids=(2,),
                seed="a",
                temperature=1e-4,
            )
        assert len(set(drawn.tokens)) == 1
        work.append(counted.get_total_flops())
    assert work[0] == work[1]


def test_frequencies_follow_the_probabilities(model: PolicyModel) -> None:
    prompt = PROMPTS[0]
    (drawn,) = sample(
        model,
        [prompt],
        prompt_suffixes=[[()] * 20_000] * len([prompt]),
        max_tokens=1,
        eos_token_ids=(2,),
        seed="many",
    )
    counts = torch.bincount(torch.tensor([row[0] for row in drawn.tokens]), minlength=SHAPE.vocab)
    expected = model(torch.tensor([prompt]))[0, -1].softmax(-1) * 20_000
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < 60  # 22 degrees of freedom: exceeded by chance once in 50,000 seeds


SUFFIXES = [[(), (4, 6), (4, 6, 8, 10), (9,)] * 4, [(7,)] * 3, [()] * 5 + [(5, 4, 3)] * 6]
"""For each prompt its rows: other numbers of them, with suffixes of other lengths."""


def after_suffixes(
    logprobs_N: torch.Tensor, batch: MicroBatch, suffixes: list[tuple[int, ...]]
) -> torch.Tensor:
    """The log-probabilities of the drawn tokens, row after row."""
    (paths,) = batch.paths
    return torch.cat([logprobs_N[path[len(suffix) :]] for suffix, path in zip(suffixes, paths, strict=True)])


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logprobs_after_prompt_suffixes_equal_the_trainers(model: PolicyModel, temperature: float) -> None:
    drawn = sample(
        model,
        PROMPTS,
        prompt_suffixes=SUFFIXES,
        max_tokens=24,
        eos_token_ids=(2,),
        seed="given",
        temperature=temperature,
    )
    lengths = [len(row) for samples in drawn for row in samples.tokens]
    assert min(lengths) < 4, "no row ended early enough to be dropped from the batch"
    assert max(lengths) == 24
    for prompt, suffixes, samples in zip(PROMPTS, SUFFIXES, drawn, strict=True):
        assert len(samples.tokens) == len(samples.logprobs) == len(samples.ended) == len(suffixes)
        group = Group(tuple(prompt), samples.tokens, (1.0,) * len(suffixes), prompt_suffixes=tuple(suffixes))
        (batch,) = micro_batches([group], mean_over_tokens, max_tokens=24)
        trained = after_suffixes(completion_logprobs(model, batch, temperature), batch, suffixes)
        sampled = torch.tensor([value for row in samples.logprobs for value in row])
        torch.testing.assert_close(sampled, trained, atol=1e-4, rtol=0)


def test_row_with_a_prompt_suffix_is_sampled_as_with_a_longer_prompt(model: PolicyModel) -> None:
    """Token by token: the same numbers are drawn for the same rows, wherever the prompt is cut."""
    before = (4, 6, 8)
    cuts = [
        sample(
            model,
            [[*PROMPTS[0], *before[:cut]]],
            prompt_suffixes=[[before[cut:]] * 16],
            max_tokens=12,
            eos_token_ids=(2,),
            seed="cut",
        )
        for cut in range(4)
    ]
    assert len(set(cuts[0][0].tokens)) > 8
    assert [cut[0].tokens for cut in cuts[1:]] == [cuts[0][0].tokens] * 3


def test_frequencies_after_given_tokens_follow_the_longer_prompts(
    model: PolicyModel,
) -> None:
    prompt, count = PROMPTS[0], 8_000
    rows = [(), (4, 6), (9,)]
    (drawn,) = sample(
        model, [prompt], prompt_suffixes=[rows * count], max_tokens=1, eos_token_ids=(2,), seed="many"
    )
    first = torch.tensor([row[0] for row in drawn.tokens]).view(count, 3)
    for place, before in enumerate(rows):
        counts = torch.bincount(first[:, place], minlength=SHAPE.vocab)
        expected = model(torch.tensor([[*prompt, *before]]))[0, -1].softmax(-1) * count
        assert ((counts - expected) ** 2 / expected).sum() < 60  # as above
        other = model(torch.tensor([[*prompt, 8]]))[0, -1].softmax(-1) * count
        assert ((counts - other) ** 2 / other).sum() > 200


def test_rows_with_any_prompt_suffix_can_use_the_full_max_tokens(model: PolicyModel) -> None:
    given = [[(), (4, 6, 8, 10, 4, 6), (9,)] * 16]
    (drawn,) = sample(
        model, PROMPTS[:1], prompt_suffixes=given, max_tokens=3, eos_token_ids=(2,), seed="limits"
    )
    for row, logprobs, ended in zip(drawn.tokens, drawn.logprobs, drawn.ended, strict=True):
        assert len(row) == len(logprobs)
        assert (len(row), ended) == (3, False) or (row[-1] == 2 and ended and 2 not in row[:-1])
    whole = {place % 3 for place, ended in enumerate(drawn.ended) if not ended}
    assert whole == {0, 1, 2}


def test_given_tokens_may_hold_the_end_token(model: PolicyModel) -> None:
    """An earlier plan in a prompt: only a token that is drawn ends a row."""
    (drawn,) = sample(
        model, PROMPTS[:1], prompt_suffixes=[[(4, 2, 6)] * 8], max_tokens=3, eos_token_ids=(2,), seed="ends"
    )
    assert max(map(len, drawn.tokens)) == 3


def test_a_long_prompt_is_sampled_beside_a_short_one_with_long_suffixes(model: PolicyModel) -> None:
    prompts = [[1, *[4] * 109], [1, 5]]
    given = [[(), (7,)] * 4, [(4, 6, 8) * 36, (9,)] * 4]
    drawn = sample(model, prompts, prompt_suffixes=given, max_tokens=18, eos_token_ids=(2,), seed="sums")
    for prompt, own, samples in zip(prompts, given, drawn, strict=True):
        group = Group(tuple(prompt), samples.tokens, (1.0,) * len(own), prompt_suffixes=tuple(own))
        (batch,) = micro_batches([group], mean_over_tokens, max_tokens=18)
        trained = after_suffixes(completion_logprobs(model, batch), batch, own)
        sampled = torch.tensor([value for row in samples.logprobs for value in row])
        torch.testing.assert_close(sampled, trained, atol=1e-4, rtol=0)


def test_rows_end_at_the_end_token_or_at_the_limit(model: PolicyModel) -> None:
    for samples in sample(
        model,
        PROMPTS,
        prompt_suffixes=[[()] * 32] * len(PROMPTS),
        max_tokens=6,
        eos_token_ids=(2,),
        seed="ends",
    ):
        for row, logprobs, ended in zip(samples.tokens, samples.logprobs, samples.ended, strict=True):
            assert len(row) == len(logprobs) <= 6
            assert 2 not in row[:-1]
            assert ended == (row[-1] == 2)
            assert ended or len(row) == 6


def test_sampling_changes_nothing_of_the_model(model: PolicyModel) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    sample(
        model, PROMPTS, prompt_suffixes=[[()] * 2] * len(PROMPTS), max_tokens=4, eos_token_ids=(2,), seed="a"
    )
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_prompt_of_a_single_token_is_refused(model: PolicyModel) -> None:
    with pytest.raises(ValueError, match="at least two tokens"):
        sample(model, [[1]], prompt_suffixes=[[()]], max_tokens=8, eos_token_ids=(2,), seed="a")
