"""The sampler draws from the model's own distribution, and says with which probability."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from podium.train.objective import mean_over_tokens
from podium.train.runtime import named_generator
from podium.train.shared_prefix.batch import TrainingRow, micro_batches
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.update import completion_logprobs
from tiny_run import SHAPE, draw_groups

PROMPTS = [[1, 5, 9, 7, 4], [1, 8, 8], [1, 4, 5, 6, 7, 8, 9, 10]]


@pytest.fixture
def model() -> PolicyModel:
    made = PolicyModel(SHAPE)
    made.initialise(named_generator("tests/sampler"), deviation=0.3)
    return made


def tokens_of(rows: list[TrainingRow]) -> list[tuple[int, ...]]:
    return [row.tokens for row in rows]


def assert_logprobs_are_the_trainers(
    model: PolicyModel, rows: list[TrainingRow], temperature: float = 1.0
) -> None:
    (batch,) = micro_batches([rows], mean_over_tokens, max_tokens=24)
    logprobs = completion_logprobs(model, batch, temperature)
    trained = torch.cat(
        [logprobs[path[-len(row.tokens) :]] for row, path in zip(rows, batch.paths, strict=True)]
    )
    sampled = torch.tensor([value for row in rows for value in row.old_logprobs])
    torch.testing.assert_close(sampled, trained, atol=1e-4, rtol=0)


def test_one_seed_gives_one_batch_and_another_seed_another(model: PolicyModel) -> None:
    first, again, other = (
        draw_groups(
            model,
            PROMPTS,
            [[()] * 4] * len(PROMPTS),
            max_tokens=8,
            seed=seed,
        )
        for seed in ("a", "a", "b")
    )
    assert first == again
    assert first != other


def test_samples_of_a_question_do_not_depend_on_other_questions(model: PolicyModel) -> None:
    together = draw_groups(model, PROMPTS, [[()] * 4] * len(PROMPTS), max_tokens=8, seed="a")
    alone = draw_groups(
        model,
        PROMPTS[:1],
        [[()] * 4] * len(PROMPTS[:1]),
        max_tokens=8,
        seed="a",
    )
    assert tokens_of(together[0]) == tokens_of(alone[0])


def test_rows_that_draw_the_same_tokens_cost_as_much_as_one_row(model: PolicyModel) -> None:
    work = []
    for rows in (1, 16):
        with FlopCounterMode(display=False) as counted:
            (drawn,) = draw_groups(
                model,
                PROMPTS[:1],
                [[()] * rows],
                max_tokens=12,
                seed="a",
                temperature=1e-4,
            )
        assert len(set(tokens_of(drawn))) == 1
        work.append(counted.get_total_flops())
    assert work[0] == work[1]


SUFFIXES = [[(), (4, 6), (4, 6, 8, 10), (9,)] * 4, [(7,)] * 3, [()] * 5 + [(5, 4, 3)] * 6]
"""For each prompt its rows: other numbers of them, with suffixes of other lengths."""


@pytest.mark.parametrize(
    ("suffixes", "early"),
    [
        pytest.param([[()] * 16] * len(PROMPTS), 8, id="bare prompts"),
        pytest.param(SUFFIXES, 4, id="suffixes"),
    ],
)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_sampled_logprobs_equal_the_trainers(
    model: PolicyModel, temperature: float, suffixes: list[list[tuple[int, ...]]], early: int
) -> None:
    drawn = draw_groups(model, PROMPTS, suffixes, max_tokens=24, seed="given", temperature=temperature)
    lengths = [len(row.tokens) for rows in drawn for row in rows]
    assert min(lengths) < early, "no row ended early enough to be dropped from the batch"
    assert max(lengths) == 24
    for rows in drawn:
        assert_logprobs_are_the_trainers(model, rows, temperature)


def test_row_with_a_prompt_suffix_is_sampled_as_with_a_longer_prompt(model: PolicyModel) -> None:
    """Token by token: the same numbers are drawn for the same rows, wherever a further row makes the prompts part."""
    before = (4, 6, 8)
    cuts = [
        draw_groups(model, PROMPTS[:1], [[before] * 16 + [(*before[:cut], 20)]], max_tokens=12, seed="cut")
        for cut in range(4)
    ]
    first, *others = [tokens_of(rows[:16]) for (rows,) in cuts]
    assert len(set(first)) > 8
    assert others == [first] * 3


def test_frequencies_after_given_tokens_follow_the_longer_prompts(
    model: PolicyModel,
) -> None:
    prompt, count = PROMPTS[0], 8_000
    rows = [(), (4, 6), (9,)]
    (drawn,) = draw_groups(model, [prompt], [rows * count], max_tokens=1, seed="many")
    first = torch.tensor([row.tokens[0] for row in drawn]).view(count, 3)
    for place, before in enumerate(rows):
        counts = torch.bincount(first[:, place], minlength=SHAPE.vocab)
        expected = model(torch.tensor([[*prompt, *before]]))[0, -1].softmax(-1) * count
        assert ((counts - expected) ** 2 / expected).sum() < 60  # as above
        other = model(torch.tensor([[*prompt, 8]]))[0, -1].softmax(-1) * count
        assert ((counts - other) ** 2 / other).sum() > 200


def test_rows_with_any_prompt_suffix_can_use_the_full_max_tokens(model: PolicyModel) -> None:
    given = [[(), (4, 6, 8, 10, 4, 6), (9,)] * 16]
    (drawn,) = draw_groups(model, PROMPTS[:1], given, max_tokens=3, seed="limits")
    for row in drawn:
        assert len(row.tokens) == len(row.old_logprobs)
        assert len(row.tokens) == 3 or row.tokens[-1] == 2
        assert 2 not in row.tokens[:-1]
    whole = {place % 3 for place, row in enumerate(drawn) if row.tokens[-1] != 2}
    assert whole == {0, 1, 2}


def test_given_tokens_may_hold_the_end_token(model: PolicyModel) -> None:
    """An earlier plan in a prompt: only a token that is drawn ends a row."""
    (drawn,) = draw_groups(model, PROMPTS[:1], [[(), *[(4, 2, 6)] * 8]], max_tokens=3, seed="ends")
    assert max(map(len, tokens_of(drawn[1:]))) == 3


def test_a_long_prompt_is_sampled_beside_a_short_one_with_long_suffixes(model: PolicyModel) -> None:
    prompts = [[1, *[4] * 109], [1, 5]]
    given = [[(), (7,)] * 4, [(4, 6, 8) * 36, (9,)] * 4]
    drawn = draw_groups(model, prompts, given, max_tokens=18, seed="sums")
    for rows in drawn:
        assert_logprobs_are_the_trainers(model, rows)


def test_sampling_changes_nothing_of_the_model(model: PolicyModel) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    draw_groups(model, PROMPTS, [[()] * 2] * len(PROMPTS), max_tokens=4, seed="a")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_prompt_of_a_single_token_is_refused(model: PolicyModel) -> None:
    with pytest.raises(ValueError, match="at least two tokens"):
        draw_groups(model, [[1]], [[()]], max_tokens=8, seed="a")
