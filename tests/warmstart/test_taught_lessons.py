"""Lessons that verdicts have taught: which committees are worth most at each level of cost, and second rounds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from statistics import fmean

import pytest
from given_answers import NONE, RIGHT, given_answers, pair_and_third, pair_and_two_more
from lesson_reading import by_percent, committee, decision, listed, shown_team, written

from podium.baselines.plans import VOTE
from podium.conductor.prompt import PromptSettings
from podium.warmstart.committee_value import CommitteeValues
from podium.warmstart.examples import SFTExample, Shares
from podium.warmstart.recorded_examples import (
    MOST_STEPS,
    ExampleQuestion,
    RecordedSource,
    draw_recorded_example,
)
from podium.workers import Pool, ScriptedWorker
from podium.workers.ratings import Ratings, Tally
from podium.workflow import Acceptance, Access, Workflow

KIND = "#sums"
QUESTIONS_MEASURED = 100
PROMPT = PromptSettings(style="brief", examples=0, question_chars=700, answer_chars=60, rounds=True)


def source(
    rows: Sequence[Sequence[int]],
    measured: Mapping[str, float],
    *,
    cost_weights: Sequence[float] = (0.05,),
    rounds: int = 1,
    unmeasured: Sequence[str] = (),
) -> RecordedSource:
    """Questions of one kind that everybody answers for a dollar, over a pool that ends with the vote.

    Args:
        rows: of answers, as `given_answers` takes them; a worker says its number where it is asked.
        measured: names, in the pool's order and that of rows, with accuracies that ratings show.
        unmeasured: those of them that ratings do not know.
    """
    answers = given_answers(tuple(measured), rows, [1] * len(measured))
    tallies = {
        name: {
            "sums": Tally(
                right=share * QUESTIONS_MEASURED, questions=QUESTIONS_MEASURED, cost_usd=QUESTIONS_MEASURED
            )
        }
        for name, share in measured.items()
        if name not in unmeasured
    }
    pool = Pool(
        [ScriptedWorker(name, ["yes"]) for name in (*measured, VOTE)],
        Ratings(clusters={"sums": {"question": 1.0}}, workers=tallies),
    )
    reads = tuple(
        ExampleQuestion(text, KIND, tuple(map(str, row)))
        for text, row in zip(answers.texts, rows, strict=True)
    )
    values = CommitteeValues(answers, dict.fromkeys(answers.texts, KIND), cost_weights, rounds)
    return RecordedSource(reads, pool, values)


def all_lessons(
    made: RecordedSource, count: int, *, level_sweep: float = 0.0, levels: int = 1
) -> Iterator[SFTExample]:
    """Taught plans, or rolls, of any length and round."""
    for index in range(count):
        yield draw_recorded_example(
            "taught",
            index,
            sources=[made],
            prompt=PROMPT.model_copy(update={"levels": levels}),
            shares=Shares(plan=1, reading=0, from_verdicts=1, level_sweep=level_sweep),
            later=1.0,
        )


def examples(
    made: RecordedSource, count: int = 200, *, level_sweep: float = 0.0, levels: int = 1
) -> list[SFTExample]:
    """Those of them where plans may be as long as any; of a pool that is taught one round, first rounds alone."""
    assert made.values is not None
    return [
        example
        for example in all_lessons(made, count, level_sweep=level_sweep, levels=levels)
        if f"\nSteps: {MOST_STEPS}\n" in example.prompt
        and (made.values.rounds > 1 or "\nEarlier plan:\n" not in example.prompt)
    ]


NAMES, MENDED = pair_and_third(mends=True)
MEASURED = dict(zip(NAMES, (0.5, 0.55, 0.45, 0.4), strict=True))
MEANT = by_percent(MEASURED)


def of_five(rng: Random) -> list[int]:
    """Each is right two times of three, apart from the others."""
    return [RIGHT if rng.random() < 2 / 3 else rng.randint(1, 9) for _ in range(5)]


FIVE = [of_five(Random(f"five/{number}")) for number in range(300)]
FIVE_MEASURED = {"ada": 0.55, "bob": 0.9, "cy": 0.7, "dee": 0.6, "eve": 0.8}
"""In another order than the pool's."""
FIVE_MEANT = by_percent(FIVE_MEASURED)
ONE_KNOWS = [[1, 2, RIGHT, 4]] * 20
"""cy alone is always right."""
ONE_MEASURED = {"ada": 0.1, "bob": 0.2, "cy": 0.9, "dee": 0.3}
ONE_MEANT = by_percent(ONE_MEASURED)


# --- whom to ask -------------------------------------------------------------------------------------------


def test_a_plan_from_verdicts_calls_the_best_committee_whatever_the_team_and_its_order() -> None:
    places = set()
    for example in examples(source(ONE_KNOWS, ONE_MEASURED)):
        team = shown_team(example, ONE_MEANT)
        if "cy" in team:
            best = team.index("cy")
            assert committee(example, ONE_MEANT) == ("cy",)
            assert written(example).startswith(f"{KIND}{best}; steps 1\nmodel_id = [{best}]\n")
            places.add((best, len(team)))
    assert len(places) > 5


def test_members_stand_in_the_order_in_which_the_prompt_lists_them() -> None:
    drawn = examples(source(FIVE, FIVE_MEASURED, cost_weights=(0.0,)))
    larger = [example for example in drawn if len(committee(example, FIVE_MEANT)) > 2]
    assert {len(committee(example, FIVE_MEANT)) for example in larger} >= {3, 5}
    assert ("bob", "eve", "cy", "dee", "ada") in {committee(example, FIVE_MEANT) for example in larger}
    for example in larger:
        asked = committee(example, FIVE_MEANT)
        assert list(asked) == [name for _, name, _ in listed(example, FIVE_MEANT) if name in asked]


def test_who_was_not_measured_stands_first_in_the_prompt_and_among_the_members() -> None:
    drawn = examples(source(FIVE, FIVE_MEASURED, cost_weights=(0.0,), unmeasured=("dee",)))
    committees = [(example, committee(example, FIVE_MEANT)) for example in drawn]
    larger = [(example, asked) for example, asked in committees if len(asked) > 2 and "dee" in asked]
    assert larger
    for example, asked in larger:
        assert asked[0] == "dee"
        assert list(asked) == [name for _, name, _ in listed(example, FIVE_MEANT) if name in asked]


def test_of_a_pair_who_is_to_win_stands_first_though_the_prompt_lists_the_other_before() -> None:
    # Where ada answers at all she is right; bob answers always and is right more often.
    rows = [[RIGHT if number % 2 else NONE, RIGHT if number % 10 < 6 else 1] for number in range(40)]
    measured = {"ada": 0.5, "bob": 0.6}
    meant = by_percent(measured)
    for example in examples(source(rows, measured, cost_weights=(0.02,)), 40):
        assert [name for _, name, _ in listed(example, meant)] == [VOTE, "bob", "ada"]
        assert committee(example, meant) == ("ada", "bob")


@pytest.mark.parametrize("level_sweep", [0.0, 1.0], ids=["plans", "level sweeps"])
def test_an_example_from_verdicts_names_only_workers_without_a_rating(
    level_sweep: float,
) -> None:
    drawn = examples(
        source(MENDED, MEASURED, rounds=2, unmeasured=("dee",)), level_sweep=level_sweep, levels=1
    )
    assert {"\nEarlier plan:\n" in example.prompt for example in drawn} == {True, False}
    for example in drawn:
        assert not re.search(r"\b(ada|bob|cy)\b", example.prompt + written(example))
        assert ("dee" in shown_team(example, MEANT)) == (": dee: " in example.prompt)
    assert any(": dee: " in example.prompt for example in drawn)


# --- rolls -------------------------------------------------------------------------------------------------


def test_a_level_sweep_has_one_question_at_every_level_and_only_its_thoughts_are_learned() -> None:
    levels = 4
    made = source(FIVE, FIVE_MEASURED, cost_weights=(0.0, 0.01, 0.05, 5.0))
    orders = set()
    for example in examples(made, 60, level_sweep=1.0, levels=levels):
        told = [text for text, learned in example.pieces if not learned]
        thoughts = [text for text, learned in example.pieces if learned]
        assert [learned for _, learned in example.pieces] == [True, False] * (levels - 1) + [True]
        named = re.findall(r"^Thrift: (\d)$", example.prompt, flags=re.MULTILINE)
        for text in told:
            (level,) = re.fullmatch(r"\nThrift: (\d)\nPlan:\n", text).groups()  # type: ignore[union-attr]
            named.append(level)
        assert sorted(named) == ["0", "1", "2", "3"]
        orders.add("".join(named))
        for level, thought in zip(named, thoughts, strict=True):
            numbers, steps = re.fullmatch(rf"{KIND}(\d+); steps (\d)", thought).groups()  # type: ignore[union-attr]
            assert int(steps) == (1 if len(numbers) == 1 else len(numbers) + 1)
            assert level != "3" or len(numbers) == 1, "the thriftiest asks once"
        assert "Earlier" not in example.prompt
        assert "model_id" not in written(example)
    assert len(orders) > 10


def test_a_roll_says_what_plans_at_these_levels_say() -> None:
    made = source(ONE_KNOWS, ONE_MEASURED, cost_weights=(0.05, 0.1))
    drawn = [
        example
        for example in examples(made, 60, level_sweep=1.0, levels=2)
        if "cy" in shown_team(example, ONE_MEANT)
    ]
    assert drawn
    for example in drawn:
        best = shown_team(example, ONE_MEANT).index("cy")
        assert [text for text, learned in example.pieces if learned] == [f"{KIND}{best}; steps 1"] * 2


def test_as_many_taught_lessons_are_rolls_as_the_shares_say() -> None:
    made = source(FIVE, FIVE_MEASURED, cost_weights=(0.05, 0.1))
    drawn = examples(made, 400, level_sweep=0.7, levels=2)
    assert fmean("model_id" not in written(example) for example in drawn) == pytest.approx(0.7, abs=0.08)


# --- second rounds -----------------------------------------------------------------------------------------


def agreement(example: SFTExample) -> tuple[int, int]:
    """How many of how many agreed in the earlier round of a lesson."""
    agree, asked = re.findall(
        r"^Earlier answer: (\d) of (\d) responses agree\.$", example.prompt, re.MULTILINE
    )[0]
    return int(agree), int(asked)


def earlier_committee(example: SFTExample, rated: Mapping[str, str]) -> tuple[str, ...]:
    """Who answered in the earlier round; `rated` is as `by_percent` makes it."""
    numbers = re.findall(r"\nEarlier plan:\nmodel_id = \[([\d, ]+)\]\n", example.prompt)[0]
    team = shown_team(example, rated)
    return tuple(name for number in numbers.split(", ") if (name := team[int(number)]) != VOTE)


def test_half_of_the_lessons_follow_a_first_round_where_a_second_may_pay_and_elsewhere_few_that_accept() -> (
    None
):
    two, one = ([*all_lessons(source(MENDED, MEASURED, rounds=rounds), 600)] for rounds in (2, 1))
    later = [example for example in one if "\nEarlier plan:\n" in example.prompt]
    assert fmean("\nEarlier plan:\n" in example.prompt for example in two) == pytest.approx(0.5, abs=0.08)
    assert len(later) / len(one) == pytest.approx(0.1, abs=0.04)
    assert all(decision(example) == Acceptance() for example in later)
    assert all("\nRounds: 1\n" in example.prompt for example in later)


def test_a_small_first_committee_is_drawn_only_if_a_second_round_is_left() -> None:
    made = source(MENDED, MEASURED, rounds=2)
    pairs = dict.fromkeys((1, 2), 0)
    for example in examples(made, 400):
        if "Earlier" in example.prompt or not {"ada", "bob", "cy"} <= {*shown_team(example, MEANT)}:
            continue
        (left,) = re.findall(r"^Rounds: (\d)$", example.prompt, flags=re.MULTILINE)
        pairs[int(left)] += set(committee(example, MEANT)) == {"ada", "bob"}
    assert pairs[1] == 0
    assert pairs[2] > 20


@pytest.mark.parametrize("level_sweep", [0.0, 1.0], ids=["plans", "level sweeps"])
def test_no_plan_is_longer_than_its_prompt_allows(level_sweep: float) -> None:
    made = source(FIVE, FIVE_MEASURED, cost_weights=(0.0,))
    longest: Counter[int] = Counter()
    for example in all_lessons(made, 400, level_sweep=level_sweep):
        (allowed,) = map(int, re.findall(r"^Steps: (\d)$", example.prompt, flags=re.MULTILINE))
        (steps,) = map(int, re.findall(r"; steps (\d)", written(example)))
        assert steps <= allowed
        longest[allowed] = max(longest[allowed], steps)
    assert longest == {1: 1, 2: 1, 3: 3, 4: 4, 5: 5, MOST_STEPS: MOST_STEPS}


def test_a_pair_that_agreed_is_accepted_and_one_that_did_not_is_mended_by_who_is_right_then() -> None:
    seen = Counter[tuple[int, tuple[str, ...]]]()
    for example in examples(source(MENDED, MEASURED, rounds=2), 400):
        if "Earlier" not in example.prompt or len(shown_team(example, MEANT)) < len(MEASURED) + 1:
            continue
        agree, asked = agreement(example)
        assert asked == 2
        assert (decision(example) == Acceptance()) == (agree == 2)
        assert set(earlier_committee(example, MEANT)) == {"ada", "bob"}
        seen[agree, committee(example, MEANT)] += 1
    assert set(seen) == {(2, ()), (1, ("cy",))}


def test_a_second_round_follows_from_how_many_really_agreed_on_that_question() -> None:
    followed = Counter[int]()
    for example in examples(source(MENDED, MEASURED, rounds=2), 400):
        if "Earlier" in example.prompt and len(shown_team(example, MEANT)) == len(MEASURED) + 1:
            number = int(example.prompt.removeprefix("Question: question ").split("\n")[0])
            agree, _ = agreement(example)
            assert agree == (2 if number % 2 == 0 else 1)
            followed[agree] += 1
    assert set(followed) == {1, 2}


def test_the_vote_of_a_second_round_counts_the_answer_of_the_first_beside_the_new_ones() -> None:
    _, rows = pair_and_two_more()
    measured = {"ada": 0.8, "bob": 0.5, "cy": 0.3, "dee": 0.4}
    made, meant = source(rows, measured, cost_weights=(0.02,), rounds=2), by_percent(measured)
    votes = 0
    for example in examples(made, 400):
        found = decision(example)
        if "Earlier" not in example.prompt or not isinstance(found, Workflow) or len(found.steps) == 1:
            continue
        if len(shown_team(example, meant)) < len(made.pool):
            continue
        *asked, last = found.steps
        assert set(committee(example, meant)) == {"cy", "dee"}
        assert not any(step.access.steps or step.access.all or step.access.previous for step in asked)
        assert last.access == Access(all=True)
        votes += 1
    assert votes > 15


def test_a_first_round_of_three_is_mended_though_ratings_and_accuracies_order_them_differently() -> None:
    # Three who know one half of the questions and differ on the other, of which the fourth knows all.
    rows = [[RIGHT] * 3 + [4] if number % 2 else [1, 2, 3, RIGHT] for number in range(60)]
    # One of the three is wrong now and then, another each time: so that of three two have it.
    for number in range(1, 60, 2):
        rows[number][number // 2 % 3] = 7
    measured = {"ada": 0.3, "bob": 0.4, "cy": 0.6, "dee": 0.5}
    made, meant = source(rows, measured, cost_weights=(0.02,), rounds=2), by_percent(measured)
    mended = Counter[tuple[str, ...]]()
    for example in examples(made, 400):
        if "Earlier" in example.prompt and len(shown_team(example, meant)) == len(made.pool):
            asked = earlier_committee(example, meant)
            if len(asked) == 3 and "dee" not in asked and agreement(example) == (1, 3):
                mended[committee(example, meant)] += 1
    assert set(mended) == {("dee",)}
