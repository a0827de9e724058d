"""Lessons that no verdict has taught: plans of the right form, with habits of each kind, and nothing else to know."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

import pytest
from lesson_reading import by_percent, committee, decision, listed, shown_team, written

from podium.baselines.plans import VOTE
from podium.conductor.prompt import PromptSettings, shortened
from podium.warmstart.examples import SFTExample, Shares
from podium.warmstart.recorded_examples import (
    MOST_STEPS,
    ExampleQuestion,
    RecordedSource,
    draw_recorded_example,
    prompts,
)
from podium.workers import Pool, ScriptedWorker
from podium.workers.ratings import Ratings, Tally
from podium.workflow import Acceptance, Workflow, parse, render

NAMES = ("ada", "bob", "cy", VOTE, "dee", "eve")
"""The voting tool in the middle."""
QUESTIONS = (
    ExampleQuestion(
        "How much is 3 plus 4?", "#plus-much", ("7", "a long answer, of which the middle is not shown " * 3)
    ),
    ExampleQuestion("Which town lies on the Rhine?", "#town-rhine", ("Bonn", "Bonn", "Ulm")),
    ExampleQuestion("Name a prime.", "#prime-name", ()),
)
PROMPT = PromptSettings(style="brief", examples=0, question_chars=700, answer_chars=60)
POOL = Pool([ScriptedWorker(name, ["yes"]) for name in NAMES])
TALLIES = {
    "ada": Tally(right=3, questions=10, cost_usd=1),
    "bob": Tally(right=9, questions=10, cost_usd=2),
    "cy": Tally(right=6, questions=10, cost_usd=1),
    "dee": Tally(right=1, questions=10, cost_usd=4),
    "eve": Tally(right=8, questions=10, cost_usd=1),
}
"""On each kind."""
MEANT = by_percent({name: tally.right / tally.questions for name, tally in TALLIES.items()})
RATED = Pool(
    [ScriptedWorker(name, ["yes"]) for name in NAMES],
    Ratings(
        clusters={read.cluster[1:]: dict.fromkeys(read.cluster[1:].split("-"), 1.0) for read in QUESTIONS},
        workers={name: {read.cluster[1:]: tally for read in QUESTIONS} for name, tally in TALLIES.items()},
    ),
)
RATED_ALIKE = Pool(
    [ScriptedWorker(name, ["yes"]) for name in NAMES],
    Ratings(clusters={}, workers={name: {"": tally} for name, tally in TALLIES.items()}),
)
"""On all questions together."""


def plans(
    count: int,
    *,
    later: float,
    questions: Sequence[ExampleQuestion] = QUESTIONS,
    levels: int = 0,
    pool: Pool = POOL,
) -> list[SFTExample]:
    """Lessons that are plans, of one course."""
    return [
        draw_recorded_example(
            "plans",
            index,
            sources=[RecordedSource(tuple(questions), pool)],
            prompt=PROMPT.model_copy(update={"levels": levels}),
            shares=Shares(plan=1, reading=0, from_verdicts=1),
            later=later,
        )
        for index in range(count)
    ]


@pytest.mark.parametrize("pool", [POOL, RATED], ids=["unrated", "rated"])
def test_every_plan_can_be_run_by_the_team_that_its_prompt_shows(pool: Pool) -> None:
    examples = plans(300, later=0.5, pool=pool)
    assert len({tuple(shown_team(example, MEANT)) for example in examples}) > 30
    for example in examples:
        team, found = shown_team(example, MEANT), decision(example)
        if isinstance(found, Workflow):
            *asked, last = [team[step.worker] for step in found.steps]
            assert VOTE not in asked
            assert (last == VOTE) == bool(asked)
        else:
            assert found == Acceptance()


def test_a_thought_distinguishes_the_tenth_worker_from_the_first_and_the_vote() -> None:
    large = Pool([ScriptedWorker(name, ["yes"]) for name in (VOTE, *(f"worker-{n}" for n in range(1, 13)))])
    of_two_digits = 0
    for example in plans(300, later=0, pool=large):
        thought, found = written(example).partition("; steps ")[0], decision(example)
        assert isinstance(found, Workflow)
        asked = [step.worker for step in found.steps if shown_team(example)[step.worker] != VOTE]
        numbers = re.sub(r"^#[a-z-]+", "", thought)
        assert [int(number) for number in re.findall(r"\d(?![^(]*\))|(?<=\()\d+", numbers)] == asked
        of_two_digits += max(asked) > 9
    assert of_two_digits > 30


def test_after_an_earlier_round_every_second_plan_accepts_and_never_before() -> None:
    first, mixed, later = (plans(300, later=share) for share in (0.0, 0.3, 1.0))
    assert not any("Earlier" in example.prompt for example in first)
    assert all(isinstance(decision(example), Workflow) for example in first)
    assert 0.2 < fmean("\nEarlier plan:\n" in example.prompt for example in mixed) < 0.4
    assert all("\nEarlier plan:\n" in example.prompt for example in later)
    assert 0.4 < fmean(decision(example) == Acceptance() for example in later) < 0.6


def test_an_earlier_round_was_a_plan_for_the_same_team_and_answered_as_its_workers_would() -> None:
    for example in plans(300, later=1.0):
        question, earlier = example.prompt.split("\nEarlier plan:\n")
        plan, rest = earlier.split("\nEarlier answer: ")
        answer, _ = rest.split("\nSteps: ")
        workflow = parse(plan, workers=len(shown_team(example)), max_steps=MOST_STEPS)
        assert isinstance(workflow, Workflow)
        (asked,) = [read for read in QUESTIONS if question.startswith(f"Question: {read.text}\n")]
        steps = len(workflow.steps)
        texts = asked.answers or ("",)
        if steps > 1:
            votes = [f"{agree} of {steps - 1} responses agree.\nAnswer: " for agree in range(1, steps)]
            texts = tuple(vote + text for vote in votes for text in texts)
        assert answer in [shortened(text, 60) for text in texts]


def test_a_plan_comes_after_the_kind_of_its_question_who_answers_and_the_number_of_its_steps() -> None:
    for example in plans(100, later=0.5):
        (asked,) = [read for read in QUESTIONS if example.prompt.startswith(f"Question: {read.text}\n")]
        found = decision(example)
        steps = len(found.steps) if isinstance(found, Workflow) else 0
        answering = [step.worker for step in found.steps[: max(1, steps - 1)]] if steps else []
        thought, plan = written(example).split("\n", 1)
        assert thought == f"{asked.cluster}{''.join(map(str, answering))}; steps {steps}"
        assert plan == render(found)
    for example in plans(20, later=0.5, questions=[ExampleQuestion("What?", "", ())]):
        assert re.match(r"\d*; steps \d\nmodel_id = ", written(example))


def test_plans_for_a_kind_have_nothing_to_do_with_the_question_or_its_answers() -> None:
    others = [
        ExampleQuestion(f"Something else, {number}?", read.cluster, ("x",) * len(read.answers))
        for number, read in enumerate(QUESTIONS)
    ]
    one, other = plans(100, later=0.5), plans(100, later=0.5, questions=others)
    assert [example.prompt for example in one] != [example.prompt for example in other]
    assert [example.pieces for example in one] == [example.pieces for example in other]


def test_plans_that_no_verdict_has_taught_have_nothing_to_do_with_the_level_of_thrift() -> None:
    examples = plans(2000, later=0.0, questions=QUESTIONS[:1], levels=2)
    sizes = [
        Counter(len(committee(example)) for example in examples if f"\nThrift: {level}\n" in example.prompt)
        for level in (0, 1)
    ]
    assert set(sizes[0]) == set(sizes[1]) == {1, 2, 3, 5}
    for size in sizes[0]:
        shares = [counts[size] / counts.total() for counts in sizes]
        assert shares[0] == pytest.approx(shares[1], abs=0.08)


def test_plans_that_no_verdict_has_taught_have_nothing_to_do_with_ratings() -> None:
    one, other = plans(100, later=0.5), plans(100, later=0.5, pool=RATED)
    assert [example.pieces for example in one] == [example.pieces for example in other]
    assert not any(figures for example in one for _, _, figures in listed(example))
    for example in other:
        assert all(figures for _, name, figures in listed(example, MEANT) if name != VOTE)


def test_a_prompt_names_a_level_of_thrift_where_there_are_some() -> None:
    named = [
        re.findall(r"^Thrift: (\d+)$", example.prompt, flags=re.MULTILINE)
        for example in plans(100, later=0.5, levels=3)
    ]
    assert {tuple(levels) for levels in named} == {("0",), ("1",), ("2",)}
    assert not any("Thrift" in example.prompt for example in plans(100, later=0.5))


# --- rated workers -----------------------------------------------------------------------------------------


def test_a_question_s_kind_and_ratings_stand_in_the_prompt_as_the_policy_will_be_shown_them() -> None:
    asked = {read.text: prompts([read.text], RATED, PROMPT)[0] for read in QUESTIONS}
    whole = [
        example
        for example in plans(200, later=0.0, pool=RATED)
        if tuple(shown_team(example, MEANT)) == NAMES and f"\nSteps: {MOST_STEPS}\n" in example.prompt
    ]
    assert {example.prompt for example in whole} == set(asked.values())
    for read in QUESTIONS:
        assert f"\nKind: {read.cluster}\nModels:\n3: {VOTE}: \n- 90% 1x: 1\n" in asked[read.text]


def test_rated_workers_are_shown_by_their_ratings_and_never_by_their_names() -> None:
    name = re.compile(rf"\b({'|'.join(TALLIES)})\b")
    rated = plans(300, later=0.5, pool=RATED)
    assert {worker for example in rated for worker in shown_team(example, MEANT)} == set(NAMES)
    assert not any(name.search(example.prompt + written(example)) for example in rated)
    assert all(name.search(example.prompt) for example in plans(50, later=0.5))


def test_a_rating_is_that_of_the_worker_whose_number_stands_behind_it() -> None:
    # Untaught lessons are the same with and without ratings, and without them the prompt has names.
    plain, rated = plans(200, later=0.5), plans(200, later=0.5, pool=RATED)
    for one, other in zip(plain, rated, strict=True):
        assert shown_team(other, MEANT) == shown_team(one)
        assert committee(other, MEANT) == committee(one)


def test_where_workers_are_rated_over_all_questions_alike_no_kind_is_named() -> None:
    questions = [ExampleQuestion(read.text, "", read.answers) for read in QUESTIONS]
    examples = plans(100, later=0.5, questions=questions, pool=RATED_ALIKE)
    assert {worker for example in examples for worker in shown_team(example, MEANT)} == set(NAMES)
    for example in examples:
        assert "Kind" not in example.prompt
        assert re.match(r"\d*; steps \d\nmodel_id = ", written(example))
