"""Guided sampling forbids just the tokens with which a plan's lists would say something else than its thought."""

from __future__ import annotations

import re
from random import Random

import pytest

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import PlainTextCodec
from podium.conductor.open import open_policy
from podium.conductor.policy import Sampling
from podium.conductor.prompt import build_prompt
from podium.planners.controls import random_workflow
from podium.planners.planner import PlanRequest
from podium.team.team_file import open_pool
from podium.train.shared_prefix.checkpoints import read_model
from podium.train.shared_prefix.sampler import sample
from podium.types import Question
from podium.workflow import PlanError, PlanRules, Workflow, parse, render
from podium_lab.exercises.cases import PROMPT, draw_plan, draw_team
from podium_lab.exercises.teams import Shares
from podium_lab.inference import loader
from podium_lab.inference.plan_lists import PlanLists

START = "world-warmstart"


@pytest.fixture(scope="module")
def codec() -> PlainTextCodec:
    return PlainTextCodec.of(Checkpoint.read(START))


@pytest.fixture(scope="module")
def guide(codec: PlainTextCodec) -> PlanLists:
    return PlanLists(codec.decode, Checkpoint.read(START).config["vocab_size"])


def refused_at(guide: PlanLists, tokens: list[int]) -> int | None:
    """The place of the first token that must not follow, or None if all may."""
    for place, token in enumerate(tokens):
        forbidden = guide.forbidden(tokens[:place])
        if forbidden is not None and token in forbidden:
            return place
    return None


def of_length(rng: Random, steps: int) -> Workflow:
    while len((plan := random_workflow(rng, workers=12, max_steps=5)).steps) != steps:
        pass
    return plan


def said_of(plan: Workflow) -> str:
    return ", ".join(f"{place} birth year persons{step.worker}" for place, step in enumerate(plan.steps))


def test_guide_allows_every_lesson_and_forbids_plans_unlike_their_thought(
    codec: PlainTextCodec, guide: PlanLists
) -> None:
    rng = Random("lessons")
    bound = 0
    for _ in range(60):
        case = draw_plan(rng, draw_team(rng), Shares(fitting=0.7, relevant=1.0))
        if not isinstance(case.decision, Workflow):
            continue
        text = f"{case.thought}\n{render(case.decision)}"
        assert refused_at(guide, codec.encode_completion(text)) is None, text
        if "Find the " in text:
            bound += 1
            other = text.replace("Find the ", "Find the other ", 1)
            assert refused_at(guide, codec.encode_completion(other)) is not None, other
    assert bound


def test_a_plan_with_the_steps_of_its_thought_is_never_forbidden(
    codec: PlainTextCodec, guide: PlanLists
) -> None:
    rng = Random("guide")
    for _ in range(60):
        plan = random_workflow(rng, workers=12, max_steps=5)
        text = f"needs persons 3, joins 11; steps {said_of(plan)}\n{render(plan)}"
        assert refused_at(guide, codec.encode_completion(text)) is None, text


def test_a_list_of_another_length_is_forbidden_before_it_closes(
    codec: PlainTextCodec, guide: PlanLists
) -> None:
    rng = Random("guide")
    for _ in range(60):
        plan = random_workflow(rng, workers=12, max_steps=5)
        said = rng.choice([count for count in range(1, 6) if count != len(plan.steps)])
        other = of_length(rng, said)
        steps = said_of(other)
        lists, right = render(plan).split("\n"), render(other).split("\n")
        workers = codec.encode_completion(f"needs persons 3; steps {steps}\n{lists[0]}\n")
        assert refused_at(guide, workers) is not None
        # One of the other lists alone is at fault.
        for fault in (1, 2):
            mixed = [lists[place] if place == fault else right[place] for place in range(3)]
            tokens = codec.encode_completion("\n".join((f"needs persons 3; steps {steps}", *mixed)))
            refused = refused_at(guide, tokens)
            assert refused is not None
            before = codec.decode(tokens[:refused])
            assert ("subtasks" in before, "access_list" in before) == (True, fault == 2)


def test_the_list_of_workers_has_those_that_the_thought_names(
    codec: PlainTextCodec, guide: PlanLists
) -> None:
    rng = Random("named")
    for _ in range(60):
        plan = random_workflow(rng, workers=12, max_steps=5)
        place = rng.randrange(len(plan.steps))
        named = [step.worker for step in plan.steps]
        named[place] = (named[place] + rng.randrange(1, 12)) % 12
        thought = f"needs laws 3; steps {', '.join(f'laws{number}' for number in named)}\n"
        tokens = codec.encode_completion(f"{thought}{render(plan)}")
        refused = refused_at(guide, tokens)
        assert refused is not None
        assert codec.decode(tokens[:refused]).count(", ", len(thought)) == place


def test_guide_forbids_a_subtask_other_than_the_thought_announces(
    codec: PlainTextCodec, guide: PlanLists
) -> None:
    def refused(first: str, second: str) -> str | None:
        """The subtasks before the token that must not follow."""
        thought = "needs 0 proposer laws3; steps 0 favourite dish proposer laws3, 1 birth year persons0"
        lists = f'model_id = [3, 0]\nsubtasks = ["0. {first}", "1. {second}"]\naccess_list = [[], [0]]'
        tokens = codec.encode_completion(f"{thought}\n{lists}")
        place = refused_at(guide, tokens)
        return None if place is None else codec.decode(tokens[:place]).partition('["')[2]

    dish, year = (
        "Find the favourite dish of the proposer of the Rado Act.",
        "Find the birth year of the result of step 0.",
    )
    assert refused(dish, year) is None
    assert refused("Answer the whole question.", "Check the answer and correct it.") is None
    assert refused("Find the teacher of the proposer of the Rado Act.", year) == "0. Find the"
    assert refused("Find the favourite dish of Rado Mill.", year) == "0. Find the favourite dish of"
    assert refused(dish, "Find the birthplace of the result of step 0.") == f'0. {dish}", "1. Find the'


def test_a_thought_of_any_length_is_followed(codec: PlainTextCodec, guide: PlanLists) -> None:
    """The number of ways to say it grows with two to the power of its words."""
    teachers = " ".join(["teacher"] * 60)
    begun = f'needs 0 teacher persons0; steps 0 {teachers} persons0\nmodel_id = [0]\nsubtasks = ["0. Find the'
    assert refused_at(guide, codec.encode_completion(f"{begun} teacher of the teacher")) is None
    assert refused_at(guide, codec.encode_completion(f"{begun} teacher of Rado")) is not None


def test_without_a_thought_that_says_how_many_nothing_is_forbidden(
    codec: PlainTextCodec, guide: PlanLists
) -> None:
    tokens = codec.encode_completion('model_id = [0]\nsubtasks = ["0. Go."]\naccess_list = [[]]')
    assert refused_at(guide, tokens) is None


def test_guided_long_plans_of_the_shipped_start_are_valid_more_often(
    codec: PlainTextCodec, guide: PlanLists
) -> None:
    start = Checkpoint.read(START)
    pool = open_pool("orchestra").profiles
    text = "Which is larger: the birth year of the mayor of Halonmouth or the charter year of the seat of Rado Mill?"
    prompt = codec.encode(build_prompt(PlanRequest(Question(text=text), pool), PROMPT))
    valid = []
    for used in (None, guide):
        rows = sample(
            read_model(start),
            [[prompt] * 60],
            max_tokens=144,
            eos_token_ids=start.eos_token_ids,
            seed="guide",
            guide=used,
        )
        rules = PlanRules(workers=len(pool), max_steps=5)
        plans = [parse(codec.decode(row.tokens), rules) for row in rows]
        valid.append(sum(not isinstance(plan, PlanError) for plan in plans))
    unguided, guided = valid
    assert guided > unguided


async def test_a_guided_checkpoint_writes_the_same_plans_in_use_as_in_training(
    codec: PlainTextCodec, guide: PlanLists
) -> None:
    start = Checkpoint.read(START)
    assert start.prompt.guide
    pool = open_pool("orchestra").profiles
    asked = (
        "Where was the mayor of the seat of Rado Mill born?",
        "How far apart are the birth year of the mayor of Halonmouth and the charter year of the seat of Rado Mill?",
    )
    prompts = [build_prompt(PlanRequest(Question(text=text), pool), PROMPT) for text in asked]
    policy = open_policy(START)
    written = [(await policy.complete(prompt, Sampling())).text for prompt in prompts]
    rows = sample(
        read_model(start),
        [[codec.encode(prompt)] for prompt in prompts],
        max_tokens=144,
        eos_token_ids=start.eos_token_ids,
        seed="greedy",
        temperature=1e-4,
        guide=guide,
    )
    drawn = {row.question: codec.decode(row.tokens) for row in rows}
    assert written == [drawn[0], drawn[1]]


async def test_a_guided_checkpoint_too_large_for_numpy_is_guided_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        loader, "MAX_PARAMETERS_IN_NUMPY", 0
    )  # Parameters up to which NumPy is used; else transformers is.
    pool = open_pool("orchestra").profiles
    text = "Which is larger: the birth year of the mayor of Halonmouth or the charter year of the seat of Rado Mill?"
    prompt = build_prompt(PlanRequest(Question(text=text), pool), PROMPT)
    policy = open_policy(START)
    for number in range(12):
        written = await policy.complete(prompt, Sampling(temperature=1.0, seed=f"guide/{number}"))
        said, workers = re.findall(r"steps (.*)\nmodel_id = \[([^]]*)", written.text)[0]
        assert workers == ", ".join(re.findall(r"[a-z](\d+)", said))
