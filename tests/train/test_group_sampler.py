"""The samples of a round are drawn together, question by question, and grouped as the update needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from math import log

import pytest

from podium.conductor.checkpoint import Checkpoint
from podium.train.rollouts import RolloutSample, RoundSampling
from podium.train.schedule import ScheduledGroup
from podium.train.settings import GRPOSettings
from podium.train.shared_prefix.batch import TrainingRow
from podium.train.shared_prefix.checkpoints import read_model
from podium.train.shared_prefix.grpo import advantages_of, make_group
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.sampler import GroupSampler, common_prefix
from podium.train.shared_prefix.update import ReferencePolicy
from tiny_run import END, write_start

GROUP = 3
PROMPTS = ((1, 4, 8, 9, 7), (1, 4, 10, 11, 12, 7))


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return write_start(tmp_path_factory.mktemp("rounds") / "start", accepts=True)


@pytest.fixture(scope="module")
def model(start: Checkpoint) -> PolicyModel:
    return read_model(start)


def make_sampler(model: PolicyModel, seed: str = "turns", temperature: float = 1.0) -> GroupSampler:
    return GroupSampler(
        model, eos_token_ids=(END,), max_tokens=4, temperature=temperature, seed=seed, guide=None
    )


def first_round() -> list[RolloutSample]:
    return [
        RolloutSample(ScheduledGroup(0, question, 0, "t", f"{question}"), rollout, prompt=prompt)
        for question, prompt in enumerate(PROMPTS)
        for rollout in range(GROUP)
    ]


def second_round() -> list[RolloutSample]:
    """Rollout 1 of the first question has ended, and of the second question all but rollout 1."""
    ends = {(0, 0): [8, 2], (0, 2): [9, 3, 3], (1, 1): []}
    return [
        RolloutSample(
            ScheduledGroup(0, question, 1, "t", f"{question}"),
            rollout,
            prompt=(*PROMPTS[question], *ends[question, rollout]) if (question, rollout) in ends else (),
        )
        for question in range(2)
        for rollout in range(GROUP)
    ]


def write(
    sampler: GroupSampler, samples: list[RolloutSample], *, number: int = 0, greedy: bool = False
) -> list[RolloutSample]:
    """The samples with the completions that the sampler gave them."""
    ended: dict[RolloutSample, RolloutSample] = {}

    def on_end(sample: RolloutSample, tokens: Sequence[int], logprobs: Sequence[float] | None) -> None:
        assert sample not in ended, "called twice"
        ended[sample] = replace(sample, tokens=tuple(tokens), logprobs=tuple(logprobs or ()))

    sampler.draw(samples, on_end, RoundSampling(number, len(samples), greedy))
    return [ended.get(sample, sample) for sample in samples]


def tokens_of(samples: Sequence[RolloutSample]) -> list[tuple[int, ...]]:
    return [sample.tokens for sample in samples]


def test_every_sample_with_a_prompt_is_written_once(model: PolicyModel) -> None:
    for number, samples in enumerate((first_round(), second_round())):
        written = write(make_sampler(model), samples, number=number)
        assert [bool(one.tokens) for one in written] == [bool(sample.prompt) for sample in samples]
        assert all(len(one.logprobs or ()) == len(one.tokens) for one in written)
        assert len(set(tokens_of(written))) > 1


def test_sampled_logprobs_equal_those_under_the_whole_prompt(model: PolicyModel) -> None:
    reference = ReferencePolicy(model, temperature=0.7)
    for number, samples in enumerate((first_round(), second_round())):
        for one in write(make_sampler(model, temperature=0.7), samples, number=number):
            if one.prompt:
                (whole,) = reference.logprobs([TrainingRow(one.prompt, one.tokens, None)])
                assert one.logprobs == pytest.approx(whole, abs=1e-4)


def test_each_round_draws_anew_and_the_same_seed_draws_the_same(model: PolicyModel) -> None:
    one, same, other = (make_sampler(model, seed) for seed in ("a", "a", "b"))
    first, second, again, second_again, others = (
        tokens_of(write(sampler, first_round(), number=number))
        for sampler, number in ((one, 0), (one, 1), (same, 0), (same, 1), (other, 0))
    )
    assert first != second
    assert (again, second_again) == (first, second)
    assert others != first


def test_greedily_the_most_likely_tokens_are_written(model: PolicyModel) -> None:
    import torch  # noqa: PLC0415

    for one in write(make_sampler(model), first_round(), greedy=True):
        with torch.no_grad():
            logits = model(torch.tensor([[*one.prompt, *one.tokens]]))[0]
        assert [*one.tokens] == logits.argmax(-1)[len(one.prompt) - 1 : -1].tolist()


def written(row: int, rollout: int, reward: float | None, tokens: tuple[int, ...]) -> RolloutSample:
    return RolloutSample(
        ScheduledGroup(0, 0, row, "t", "0"),
        rollout,
        prompt=(1, 4, 8) if tokens else (),
        tokens=tokens,
        reward=reward,
    )


@pytest.mark.parametrize(("discount", "later"), [("none", [-1.0, 1.0]), (0.25, [1.0, -1.0])])
def test_a_later_round_is_compared_by_its_own_rewards_under_a_discount(
    discount: float, later: list[float]
) -> None:
    samples = [written(0, 0, 0.0, (5,)), written(0, 1, 1.0, (6,)), written(0, 2, None, (7,))]
    samples += [written(1, 0, 1.0, (5,)), written(1, 1, 0.5, (6,)), written(1, 2, None, ())]
    first, second = advantages_of(samples, GRPOSettings(discount=discount))
    scale = 2**0.5
    assert first[1] == [pytest.approx(-1 / scale, abs=1e-3), pytest.approx(1 / scale, abs=1e-3), None]
    assert tokens_of(second[0]) == [(5,), (6,)]
    assert second[1] == pytest.approx([value / scale for value in later], abs=1e-3)


def test_a_group_has_the_trainable_tokens_of_its_samples() -> None:
    samples = [
        replace(written(0, 3, 0.0, (5, 6, 2)), logprobs=(log(0.5), -1e-6, 0.0)),
        replace(written(0, 1, 0.0, (7, 2)), prompt=(1, 4, 9, 9), logprobs=(-1e-6, log(0.9))),
    ]
    assert make_group(samples, [-0.5, 1.5], 0.99, None) == [
        TrainingRow((1, 4, 8), (5, 6, 2), -0.5, 1, (log(0.5), -1e-6, 0.0)),
        TrainingRow((1, 4, 9, 9), (7, 2), 1.5, 2, (-1e-6, log(0.9))),
    ]
    assert [row.trainable_tokens for row in make_group(samples, [0.0, 0.0], 1.0, None)] == [2, 2]


@pytest.mark.parametrize(
    "prompts",
    [((3,), (3,), (3,)), ((1, 3), (1, 4), (1, 3)), ((1, 2, 3), (1, 2, 4), (1, 5)), ((1,), (1, 2))],
)
def test_common_prefix_is_the_longest_shared_by_all_prompts(prompts: tuple[tuple[int, ...], ...]) -> None:
    alike = takewhile(lambda tokens: len(set(tokens)) == 1, zip(*prompts, strict=False))
    assert common_prefix(prompts) == tuple(tokens[0] for tokens in alike)
