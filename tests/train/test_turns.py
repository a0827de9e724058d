"""What rollouts ask is sampled together, and kept as the update needs it."""

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
from podium.train.model import PolicyModel
from podium.train.reference import Reference
from podium.train.rollout_sampler import RolloutSampler, Turn
from podium.train.sampler import Samples
from podium.train.settings import GRPOSettings
from podium.train.weights import read_model
from podium.types import Question
from podium.workflow import Step, Workflow

GROUP = 3


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return write_start(tmp_path_factory.mktemp("turns") / "start", accepts=True)


@pytest.fixture(scope="module")
def model(start: Checkpoint) -> PolicyModel:
    return read_model(start)


def asking(
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


def prompts(turn: Turn) -> list[list[int]]:
    return [[*turn.prompt, *rest] for rest in turn.given]


def encoded(start: Checkpoint, asked: Sequence[tuple[int, PlanRequest]], question: int) -> list[list[int]]:
    codec = Codec.of(start)
    return [
        codec.encode(build_prompt(seen, start.prompt))
        for number, seen in asked
        if number // GROUP == question
    ]


def test_a_first_round_shares_its_whole_prompt_within_a_question(
    start: Checkpoint, model: PolicyModel
) -> None:
    asks = asking(start, model)
    texts = asks.answer(FIRST)
    assert [(turn.question, turn.rollouts) for turn in asks.turns] == [(0, (0, 1, 2)), (1, (0, 1, 2))]
    for turn in asks.turns:
        assert turn.given == ((),) * GROUP
        assert prompts(turn) == encoded(start, FIRST, turn.question)
    assert texts == [asks.codec.decode(row) for turn in asks.turns for row in turn.samples.tokens]
    assert len(set(texts)) > 1


def test_a_later_round_reads_each_rollouts_own_past_and_samples_it_alone(
    start: Checkpoint, model: PolicyModel
) -> None:
    asks = asking(start, model)
    asks.answer(FIRST)
    texts = asks.answer(LATER)
    assert len(asks.turns) == 4
    first, second = asks.turns[2:]
    assert (first.question, first.rollouts) == (0, (0, 2))
    assert (second.question, second.rollouts) == (1, (1,))
    for turn in (first, second):
        assert prompts(turn) == encoded(start, LATER, turn.question)
    assert len({rest[0] for rest in first.given}) == 2, "the prompts share more than was found"
    assert second.given == ((),)
    assert texts == [asks.codec.decode(row) for turn in (first, second) for row in turn.samples.tokens]


def test_what_is_drawn_has_the_probability_that_the_whole_prompt_gives_it(
    start: Checkpoint, model: PolicyModel
) -> None:
    asks = asking(start, model, temperature=0.7)
    asks.answer(FIRST)
    asks.answer(LATER)
    reference = Reference(model, temperature=0.7)
    for turn in asks.turns:
        assert turn.log_ratios(reference) == pytest.approx([0.0] * len(turn.rollouts), abs=1e-4)
        whole = [
            reference.log_ratios(prompt, [()], one)
            for prompt, one in zip(prompts(turn), alone(turn), strict=True)
        ]
        assert [nats for (nats,) in whole] == pytest.approx([0.0] * len(turn.rollouts), abs=1e-4)


def alone(turn: Turn) -> list[Samples]:
    drawn = turn.samples
    return [
        Samples((tokens,), (logprobs,), (ended,))
        for tokens, logprobs, ended in zip(drawn.tokens, drawn.logprobs, drawn.ended, strict=True)
    ]


def test_each_round_draws_anew_and_the_same_seed_draws_the_same(
    start: Checkpoint, model: PolicyModel
) -> None:
    one, same, other = (asking(start, model, seed) for seed in ("a", "a", "b"))
    first, second = one.answer(FIRST), one.answer(FIRST)
    assert first != second
    assert [same.answer(FIRST), same.answer(FIRST)] == [first, second]
    assert other.answer(FIRST) != first


def test_each_question_is_asked_at_its_own_level_of_thrift_in_all_rounds(
    start: Checkpoint, model: PolicyModel
) -> None:
    knows = replace(start, prompt=start.prompt.model_copy(update={"levels": 4}))
    asks = asking(knows, model, levels=(3, 0), cost_weights=(0.0, 1.0, 2.0, 4.0))
    asks.answer(FIRST)
    asks.answer(LATER)
    assert len(asks.turns) == 4
    for turn, asked in zip(asks.turns, (FIRST, FIRST, LATER, LATER), strict=True):
        level = knows.prompt.model_copy(update={"cost_sensitivity": (3, 0)[turn.question]})
        seen = [sees for number, sees in asked if number // GROUP == turn.question]
        assert prompts(turn) == [asks.codec.encode(build_prompt(sees, level)) for sees in seen]
        assert prompts(turn) != encoded(start, asked, turn.question)


def test_a_prompt_grown_too_long_in_a_later_round_is_one_sentence(
    start: Checkpoint, model: PolicyModel
) -> None:
    asks = asking(start, model)
    asks.answer(FIRST)
    with pytest.raises(
        ConfigError,
        match=r"^The prompt of the question 'add 1 2' has 1\d\d tokens; with max_tokens = 4 .* the 128 ",
    ):
        asks.answer([(0, request("add 1 2", "3 " * 110))])
    assert len(asks.turns) == 2


def test_a_group_takes_the_advantages_of_its_own_rollouts_and_the_tokens_in_doubt() -> None:
    samples = Samples(
        tokens=((5, 6, 2), (7, 2)), logprobs=((log(0.5), -1e-6, 0.0), (-1e-6, log(0.9))), ended=(True, True)
    )
    turn = Turn(question=0, rollouts=(3, 1), prompt=(1, 4), given=((8,), (9, 9)), samples=samples)
    group = turn.group([0.0, 1.5, None, -0.5], sure=0.99)
    assert group == Group((1, 4), ((5, 6, 2), (7, 2)), (-0.5, 1.5), given=((8,), (9, 9)), open=(1, 2))
    assert turn.group([0.0, None, None, -0.5], sure=0.99).advantages == (-0.5, None)
    assert turn.group([0.0] * 4, sure=1.0).open == (2, 2)


@pytest.mark.parametrize(
    "answers",
    [("3", "3", "3"), ("3", "4", "3"), ("1 2 3", "1 2 4", "1 5"), ("1", "1 2", "1 2 3"), ("", "5 6", "5")],
)
def test_what_prompts_share_is_the_longest_beginning_of_all(
    start: Checkpoint, model: PolicyModel, answers: tuple[str, ...]
) -> None:
    asked = [(number, request("add 1 2", answer)) for number, answer in enumerate(answers)]
    asks = asking(start, model)
    asks.answer(asked)
    (turn,) = asks.turns
    whole = encoded(start, asked, 0)
    assert prompts(turn) == whole
    alike = takewhile(lambda tokens: len(set(tokens)) == 1, zip(*whole, strict=False))
    assert turn.prompt == tuple(tokens[0] for tokens in alike)
