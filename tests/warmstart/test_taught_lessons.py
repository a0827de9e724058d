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
from podium.warmstart.embedded_examples import SFTExample, Shares
from podium.warmstart.recorded_examples import MOST_STEPS, Read, RecordedSource, draw_example
from podium.workers import Pool, ScriptedWorker
from podium.workers.ratings import Ratings, Tally
from podium.workflow import Acceptance, Access, Workflow

KIND = "#sums"
QUESTIONS_MEASURED = 100
PROMPT = PromptSettings(style="brief", examples=0, question_chars=700, answer_chars=60, rounds=True)


def course(
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
        Ratings(kinds={"sums": {"question": 1.0}}, workers=tallies),
    )
    reads = tuple(
        Read(text, KIND, tuple(map(str, row))) for text, row in zip(answers.texts, rows, strict=True)
    )
    worth = CommitteeValues(answers, dict.fromkeys(answers.texts, KIND), cost_weights, rounds)
    return RecordedSource(reads, pool, worth)


def all_lessons(
    made: RecordedSource, count: int, *, roll: float = 0.0, levels: int = 1
) -> Iterator[SFTExample]:
    """Taught plans, or rolls, of any length and round."""
    for index in range(count):
        yield draw_example(
            "taught",
            index,
            courses=[made],
            prompt=PROMPT.model_copy(update={"levels": levels}),
            shares=Shares(plan=1, reading=0, taught=1, roll=roll),
            later=1.0,
        )


def lessons(
    made: RecordedSource, count: int = 200, *, roll: float = 0.0, levels: int = 1
) -> list[SFTExample]:
    """Those of them where plans may be as long as any; of a pool that is taught one round, first rounds alone."""
    assert made.worth is not None
    return [
        lesson
        for lesson in all_lessons(made, count, roll=roll, levels=levels)
        if f"\nSteps: {MOST_STEPS}\n" in lesson.prompt
        and (made.worth.rounds > 1 or "\nEarlier plan:\n" not in lesson.prompt)
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


def test_a_taught_plan_asks_who_is_worth_most_whatever_the_team_and_its_order() -> None:
    places = set()
    for lesson in lessons(course(ONE_KNOWS, ONE_MEASURED)):
        team = shown_team(lesson, ONE_MEANT)
        if "cy" in team:
            best = team.index("cy")
            assert committee(lesson, ONE_MEANT) == ("cy",)
            assert written(lesson).startswith(f"{KIND}{best}; steps 1\nmodel_id = [{best}]\n")
            places.add((best, len(team)))
    assert len(places) > 5


def test_members_stand_in_the_order_in_which_the_prompt_lists_them() -> None:
    drawn = lessons(course(FIVE, FIVE_MEASURED, cost_weights=(0.0,)))
    larger = [lesson for lesson in drawn if len(committee(lesson, FIVE_MEANT)) > 2]
    assert {len(committee(lesson, FIVE_MEANT)) for lesson in larger} >= {3, 5}
    assert ("bob", "eve", "cy", "dee", "ada") in {committee(lesson, FIVE_MEANT) for lesson in larger}
    for lesson in larger:
        asked = committee(lesson, FIVE_MEANT)
        assert list(asked) == [name for _, name, _ in listed(lesson, FIVE_MEANT) if name in asked]


def test_who_was_not_measured_stands_first_in_the_prompt_and_among_the_members() -> None:
    drawn = lessons(course(FIVE, FIVE_MEASURED, cost_weights=(0.0,), unmeasured=("dee",)))
    committees = [(lesson, committee(lesson, FIVE_MEANT)) for lesson in drawn]
    larger = [(lesson, asked) for lesson, asked in committees if len(asked) > 2 and "dee" in asked]
    assert larger
    for lesson, asked in larger:
        assert asked[0] == "dee"
        assert list(asked) == [name for _, name, _ in listed(lesson, FIVE_MEANT) if name in asked]


def test_of_a_pair_who_is_to_win_stands_first_though_the_prompt_lists_the_other_before() -> None:
    # Where ada answers at all she is right; bob answers always and is right more often.
    rows = [[RIGHT if number % 2 else NONE, RIGHT if number % 10 < 6 else 1] for number in range(40)]
    measured = {"ada": 0.5, "bob": 0.6}
    meant = by_percent(measured)
    for lesson in lessons(course(rows, measured, cost_weights=(0.02,)), 40):
        assert [name for _, name, _ in listed(lesson, meant)] == [VOTE, "bob", "ada"]
        assert committee(lesson, meant) == ("ada", "bob")


@pytest.mark.parametrize("roll", [0.0, 1.0], ids=["plans", "rolls"])
def test_nobody_who_is_rated_is_called_by_name_in_a_taught_lesson_and_who_is_not_is(roll: float) -> None:
    drawn = lessons(course(MENDED, MEASURED, rounds=2, unmeasured=("dee",)), roll=roll, levels=1)
    assert {"\nEarlier plan:\n" in lesson.prompt for lesson in drawn} == {True, False}
    for lesson in drawn:
        assert not re.search(r"\b(ada|bob|cy)\b", lesson.prompt + written(lesson))
        assert ("dee" in shown_team(lesson, MEANT)) == (": dee: " in lesson.prompt)
    assert any(": dee: " in lesson.prompt for lesson in drawn)


# --- rolls -------------------------------------------------------------------------------------------------


def test_a_roll_asks_one_question_at_every_level_and_only_its_thoughts_are_learned() -> None:
    levels = 4
    made = course(FIVE, FIVE_MEASURED, cost_weights=(0.0, 0.01, 0.05, 5.0))
    orders = set()
    for lesson in lessons(made, 60, roll=1.0, levels=levels):
        told = [text for text, learned in lesson.pieces if not learned]
        thoughts = [text for text, learned in lesson.pieces if learned]
        assert [learned for _, learned in lesson.pieces] == [True, False] * (levels - 1) + [True]
        named = re.findall(r"^Thrift: (\d)$", lesson.prompt, flags=re.MULTILINE)
        for text in told:
            (level,) = re.fullmatch(r"\nThrift: (\d)\nPlan:\n", text).groups()  # type: ignore[union-attr]
            named.append(level)
        assert sorted(named) == ["0", "1", "2", "3"]
        orders.add("".join(named))
        for level, thought in zip(named, thoughts, strict=True):
            numbers, steps = re.fullmatch(rf"{KIND}(\d+); steps (\d)", thought).groups()  # type: ignore[union-attr]
            assert int(steps) == (1 if len(numbers) == 1 else len(numbers) + 1)
            assert level != "3" or len(numbers) == 1, "the thriftiest asks once"
        assert "Earlier" not in lesson.prompt
        assert "model_id" not in written(lesson)
    assert len(orders) > 10


def test_a_roll_says_what_plans_at_these_levels_say() -> None:
    made = course(ONE_KNOWS, ONE_MEASURED, cost_weights=(0.05, 0.1))
    drawn = [
        lesson for lesson in lessons(made, 60, roll=1.0, levels=2) if "cy" in shown_team(lesson, ONE_MEANT)
    ]
    assert drawn
    for lesson in drawn:
        best = shown_team(lesson, ONE_MEANT).index("cy")
        assert [text for text, learned in lesson.pieces if learned] == [f"{KIND}{best}; steps 1"] * 2


def test_as_many_taught_lessons_are_rolls_as_the_shares_say() -> None:
    made = course(FIVE, FIVE_MEASURED, cost_weights=(0.05, 0.1))
    drawn = lessons(made, 400, roll=0.7, levels=2)
    assert fmean("model_id" not in written(lesson) for lesson in drawn) == pytest.approx(0.7, abs=0.08)


# --- second rounds -----------------------------------------------------------------------------------------


def agreement(lesson: SFTExample) -> tuple[int, int]:
    """How many of how many agreed in the earlier round of a lesson."""
    agree, asked = re.findall(
        r"^Earlier answer: (\d) of (\d) responses agree\.$", lesson.prompt, re.MULTILINE
    )[0]
    return int(agree), int(asked)


def earlier_committee(lesson: SFTExample, rated: Mapping[str, str]) -> tuple[str, ...]:
    """Who answered in the earlier round; `rated` is as `by_percent` makes it."""
    numbers = re.findall(r"\nEarlier plan:\nmodel_id = \[([\d, ]+)\]\n", lesson.prompt)[0]
    team = shown_team(lesson, rated)
    return tuple(name for number in numbers.split(", ") if (name := team[int(number)]) != VOTE)


def test_half_of_the_lessons_follow_a_first_round_where_a_second_may_pay_and_elsewhere_few_that_accept() -> (
    None
):
    two, one = ([*all_lessons(course(MENDED, MEASURED, rounds=rounds), 600)] for rounds in (2, 1))
    later = [lesson for lesson in one if "\nEarlier plan:\n" in lesson.prompt]
    assert fmean("\nEarlier plan:\n" in lesson.prompt for lesson in two) == pytest.approx(0.5, abs=0.08)
    assert len(later) / len(one) == pytest.approx(0.1, abs=0.04)
    assert all(decision(lesson) == Acceptance() for lesson in later)
    assert all("\nRounds: 1\n" in lesson.prompt for lesson in later)


def test_few_are_asked_for_the_sake_of_a_second_round_only_where_one_is_left() -> None:
    made = course(MENDED, MEASURED, rounds=2)
    pairs = dict.fromkeys((1, 2), 0)
    for lesson in lessons(made, 400):
        if "Earlier" in lesson.prompt or not {"ada", "bob", "cy"} <= {*shown_team(lesson, MEANT)}:
            continue
        (left,) = re.findall(r"^Rounds: (\d)$", lesson.prompt, flags=re.MULTILINE)
        pairs[int(left)] += set(committee(lesson, MEANT)) == {"ada", "bob"}
    assert pairs[1] == 0
    assert pairs[2] > 20


@pytest.mark.parametrize("roll", [0.0, 1.0], ids=["plans", "rolls"])
def test_no_plan_is_longer_than_its_prompt_allows(roll: float) -> None:
    made = course(FIVE, FIVE_MEASURED, cost_weights=(0.0,))
    longest: Counter[int] = Counter()
    for lesson in all_lessons(made, 400, roll=roll):
        (allowed,) = map(int, re.findall(r"^Steps: (\d)$", lesson.prompt, flags=re.MULTILINE))
        (steps,) = map(int, re.findall(r"; steps (\d)", written(lesson)))
        assert steps <= allowed
        longest[allowed] = max(longest[allowed], steps)
    assert longest == {1: 1, 2: 1, 3: 3, 4: 4, 5: 5, MOST_STEPS: MOST_STEPS}


def test_a_pair_that_agreed_is_accepted_and_one_that_did_not_is_mended_by_who_is_right_then() -> None:
    seen = Counter[tuple[int, tuple[str, ...]]]()
    for lesson in lessons(course(MENDED, MEASURED, rounds=2), 400):
        if "Earlier" not in lesson.prompt or len(shown_team(lesson, MEANT)) < len(MEASURED) + 1:
            continue
        agree, asked = agreement(lesson)
        assert asked == 2
        assert (decision(lesson) == Acceptance()) == (agree == 2)
        assert set(earlier_committee(lesson, MEANT)) == {"ada", "bob"}
        seen[agree, committee(lesson, MEANT)] += 1
    assert set(seen) == {(2, ()), (1, ("cy",))}


def test_a_second_round_follows_from_how_many_really_agreed_on_that_question() -> None:
    followed = Counter[int]()
    for lesson in lessons(course(MENDED, MEASURED, rounds=2), 400):
        if "Earlier" in lesson.prompt and len(shown_team(lesson, MEANT)) == len(MEASURED) + 1:
            number = int(lesson.prompt.removeprefix("Question: question ").split("\n")[0])
            agree, _ = agreement(lesson)
            assert agree == (2 if number % 2 == 0 else 1)
            followed[agree] += 1
    assert set(followed) == {1, 2}


def test_the_vote_of_a_second_round_counts_the_answer_of_the_first_beside_the_new_ones() -> None:
    _, rows = pair_and_two_more()
    measured = {"ada": 0.8, "bob": 0.5, "cy": 0.3, "dee": 0.4}
    made, meant = course(rows, measured, cost_weights=(0.02,), rounds=2), by_percent(measured)
    votes = 0
    for lesson in lessons(made, 400):
        found = decision(lesson)
        if "Earlier" not in lesson.prompt or not isinstance(found, Workflow) or len(found.steps) == 1:
            continue
        if len(shown_team(lesson, meant)) < len(made.pool):
            continue
        *asked, last = found.steps
        assert set(committee(lesson, meant)) == {"cy", "dee"}
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
    made, meant = course(rows, measured, cost_weights=(0.02,), rounds=2), by_percent(measured)
    mended = Counter[tuple[str, ...]]()
    for lesson in lessons(made, 400):
        if "Earlier" in lesson.prompt and len(shown_team(lesson, meant)) == len(made.pool):
            asked = earlier_committee(lesson, meant)
            if len(asked) == 3 and "dee" not in asked and agreement(lesson) == (1, 3):
                mended[committee(lesson, meant)] += 1
    assert set(mended) == {("dee",)}
