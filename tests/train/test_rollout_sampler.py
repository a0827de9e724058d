"""The requests of a batch of rollouts are sampled together, and kept as the update needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from math import log

import pytest
from tiny_run import END, POOL, write_start

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import Codec
from podium.conductor.prompt import build_prompt
from podium.errors import ConfigError
from podium.planner import Outcome, PlanRequest
from podium.train.batch import Group
from podium.train.checkpoints import read_model
from podium.train.grpo import ReferencePolicy, log_ratios
from podium.train.model import PolicyModel
from podium.train.rollout_sampler import RolloutSampler, SampledRound
from podium.train.sampler import Samples
from podium.train.settings import GRPOSettings
from podium.types import Question
from podium.workflow import Step, Workflow

GROUP = 3


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return write_start(tmp_path_factory.mktemp("rounds") / "start", accepts=True)


@pytest.fixture(scope="module")
def model(start: Checkpoint) -> PolicyModel:
    return read_model(start)


def make_sampler(
    start: Checkpoint,
    model: PolicyModel,
    seed: str = "turns",
    *,
    levels: Sequence[int] = (0, 0),
    **settings: object,
) -> RolloutSampler:
    settings = {"group": GROUP, "max_tokens": 4, **settings}
    return RolloutSampler(
        model, start, Codec.of(start), END, GRPOSettings(**settings), cost_sensitivity=levels, seed=seed
    )


def request(text: str, *answers: str, worker: int = 0) -> PlanRequest:
    outcomes = tuple(Outcome(Workflow((Step(worker, "Add."),)), answer) for answer in answers)
    return PlanRequest(Question(text=text), POOL.profiles, outcomes=outcomes)


FIRST = [(number, request("add 1 2" if number < GROUP else "add 3 4")) for number in range(2 * GROUP)]
LATER = [
    (0, request("add 1 2", "3", worker=1)),
    (2, request("add 1 2", "4", worker=2)),
    (4, request("add 3 4", "7")),
]
"""The second round: rollout 1 of the first question has ended, and of the second question all but rollout 1."""


def prompts(sampled: SampledRound) -> list[list[int]]:
    return [[*sampled.prompt, *rest] for rest in sampled.prompt_suffixes]


def encoded(start: Checkpoint, requests: Sequence[tuple[int, PlanRequest]], question: int) -> list[list[int]]:
    codec = Codec.of(start)
    return [
        codec.encode(build_prompt(seen, start.prompt))
        for number, seen in requests
        if number // GROUP == question
    ]


def test_a_first_round_shares_its_whole_prompt_within_a_question(
    start: Checkpoint, model: PolicyModel
) -> None:
    sampler = make_sampler(start, model)
    texts = sampler.generate(FIRST)
    assert [(sampled.question, sampled.rollouts) for sampled in sampler.rounds] == [
        (0, (0, 1, 2)),
        (1, (0, 1, 2)),
    ]
    for sampled in sampler.rounds:
        assert sampled.prompt_suffixes == ((),) * GROUP
        assert prompts(sampled) == encoded(start, FIRST, sampled.question)
    assert texts == [
        sampler.codec.decode(row) for sampled in sampler.rounds for row in sampled.samples.tokens
    ]
    assert len(set(texts)) > 1


def test_a_later_round_reads_each_rollouts_own_past_and_samples_it_alone(
    start: Checkpoint, model: PolicyModel
) -> None:
    sampler = make_sampler(start, model)
    sampler.generate(FIRST)
    texts = sampler.generate(LATER)
    assert len(sampler.rounds) == 4
    first, second = sampler.rounds[2:]
    assert (first.question, first.rollouts) == (0, (0, 2))
    assert (second.question, second.rollouts) == (1, (1,))
    for sampled in (first, second):
        assert prompts(sampled) == encoded(start, LATER, sampled.question)
    assert len({rest[0] for rest in first.prompt_suffixes}) == 2, "the prompts share more than was found"
    assert second.prompt_suffixes == ((),)
    assert texts == [
        sampler.codec.decode(row) for sampled in (first, second) for row in sampled.samples.tokens
    ]


def test_what_is_drawn_has_the_probability_that_the_whole_prompt_gives_it(
    start: Checkpoint, model: PolicyModel
) -> None:
    sampler = make_sampler(start, model, temperature=0.7)
    sampler.generate(FIRST)
    sampler.generate(LATER)
    reference = ReferencePolicy(model, temperature=0.7)
    for sampled in sampler.rounds:
        of_rows = log_ratios(sampled.samples, sampled.reference_logprobs(reference))
        assert of_rows == pytest.approx([0.0] * len(sampled.rollouts), abs=1e-4)
        whole = [
            log_ratios(one, reference.logprobs(prompt, [()], one.tokens))
            for prompt, one in zip(prompts(sampled), alone(sampled), strict=True)
        ]
        assert [nats for (nats,) in whole] == pytest.approx([0.0] * len(sampled.rollouts), abs=1e-4)


def alone(sampled: SampledRound) -> list[Samples]:
    drawn = sampled.samples
    return [
        Samples((tokens,), (logprobs,), (ended,))
        for tokens, logprobs, ended in zip(drawn.tokens, drawn.logprobs, drawn.ended, strict=True)
    ]


def test_each_round_draws_anew_and_the_same_seed_draws_the_same(
    start: Checkpoint, model: PolicyModel
) -> None:
    one, same, other = (make_sampler(start, model, seed) for seed in ("a", "a", "b"))
    first, second = one.generate(FIRST), one.generate(FIRST)
    assert first != second
    assert [same.generate(FIRST), same.generate(FIRST)] == [first, second]
    assert other.generate(FIRST) != first


def test_each_question_has_its_own_level_of_cost_sensitivity_in_all_rounds(
    start: Checkpoint, model: PolicyModel
) -> None:
    knows = replace(start, prompt=start.prompt.model_copy(update={"levels": 4}))
    sampler = make_sampler(knows, model, levels=(3, 0), cost_weights=(0.0, 1.0, 2.0, 4.0))
    sampler.generate(FIRST)
    sampler.generate(LATER)
    assert len(sampler.rounds) == 4
    for sampled, requests in zip(sampler.rounds, (FIRST, FIRST, LATER, LATER), strict=True):
        level = knows.prompt.model_copy(update={"cost_sensitivity": (3, 0)[sampled.question]})
        seen = [sees for number, sees in requests if number // GROUP == sampled.question]
        assert prompts(sampled) == [sampler.codec.encode(build_prompt(sees, level)) for sees in seen]
        assert prompts(sampled) != encoded(start, requests, sampled.question)


def test_a_prompt_grown_too_long_in_a_later_round_is_one_sentence(
    start: Checkpoint, model: PolicyModel
) -> None:
    sampler = make_sampler(start, model)
    sampler.generate(FIRST)
    with pytest.raises(
        ConfigError,
        match=r"^The prompt of the question 'add 1 2' has 1\d\d tokens\. With max_tokens = 4 .* of 128 ",
    ):
        sampler.generate([(0, request("add 1 2", "3 " * 110))])
    assert len(sampler.rounds) == 2


def test_a_group_takes_the_advantages_of_its_own_rollouts_and_its_trainable_tokens() -> None:
    samples = Samples(
        tokens=((5, 6, 2), (7, 2)), logprobs=((log(0.5), -1e-6, 0.0), (-1e-6, log(0.9))), ended=(True, True)
    )
    sampled = SampledRound(
        question=0,
        round=0,
        rollouts=(3, 1),
        prompt=(1, 4),
        prompt_suffixes=((8,), (9, 9)),
        samples=samples,
    )
    group = sampled.group([0.0, 1.5, None, -0.5], skip_suffix_min_prob=0.99)
    assert group == Group(
        (1, 4),
        ((5, 6, 2), (7, 2)),
        (-0.5, 1.5),
        prompt_suffixes=((8,), (9, 9)),
        trainable_tokens=(1, 2),
        old_logprobs=samples.logprobs,
    )
    assert sampled.group([0.0, None, None, -0.5], skip_suffix_min_prob=0.99).advantages == (-0.5, None)
    assert sampled.group([0.0] * 4, skip_suffix_min_prob=1.0).trainable_tokens == (2, 2)


@pytest.mark.parametrize(
    "answers",
    [("3", "3", "3"), ("3", "4", "3"), ("1 2 3", "1 2 4", "1 5"), ("1", "1 2", "1 2 3"), ("", "5 6", "5")],
)
def test_what_prompts_share_is_the_longest_beginning_of_all(
    start: Checkpoint, model: PolicyModel, answers: tuple[str, ...]
) -> None:
    requests = [(number, request("add 1 2", answer)) for number, answer in enumerate(answers)]
    sampler = make_sampler(start, model)
    sampler.generate(requests)
    (sampled,) = sampler.rounds
    whole = encoded(start, requests, 0)
    assert prompts(sampled) == whole
    alike = takewhile(lambda tokens: len(set(tokens)) == 1, zip(*whole, strict=False))
    assert sampled.prompt == tuple(tokens[0] for tokens in alike)
