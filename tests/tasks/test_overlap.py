"""What counts as one question: by its text, folded, and by the runs of words that it shares."""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.tasks.overlap import MAX_QUESTIONS, MIN_WORDS, NGRAM_WORDS, Overlap, overlaps, question_key

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def some_words(name: object, count: int) -> list[str]:
    rng = Random(f"words/{name}")
    return ["".join(rng.choices(LETTERS, k=6)) for _ in range(count)]


def met(texts: Sequence[str], others: Sequence[str]) -> list[Overlap]:
    return overlaps(texts, ((f"row {number}", other) for number, other in enumerate(others)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is  2 + 2?", "what is 2+2"),
        ("It’s “here” – so… say it.", 'it\'s "here" - so say it'),
        (r"Find $\dfrac{1}{2}$ of \(x\).", r"find \frac{1}{2} of x"),
        (r"Let \left( a, b \right) be", r"let (a, b) be"),
        (r"\[x = 1\]", "$$x=1$$"),
        (r"a\!\, b", "a b"),
        ("ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
        ("straße", "STRASSE"),
        ("one\r\n\ttwo", "one two"),
        ("1 − 2", "1 - 2"),
        ("the blank ____ is", "the blank __ is"),
    ],
)
def test_question_key_ignores_case_spacing_and_punctuation(one: str, other: str) -> None:
    assert question_key(one) == question_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x + 1", "x - 1"),
        ("x^2", "x_2 2"),
        ("2 * 3", "2 / 3"),
        ("2(3+4)", "2*3+4"),
        ("1.5", "15"),
        ("1.5", "1, 5"),
        ("x < 2", "x > 2"),
        ("5!", "5"),
        ("20%", "20"),
        (r"\sin x", "sin x"),
        ("-3", "3"),
        ("cat", "cats"),
        ("a b", "ab"),
        ("_ Q _ _", "_ _ Q _"),
        ("...", "???"),
        ("résumé", "resume"),
    ],
)
def test_question_key_differs_if_the_answer_would_differ(one: str, other: str) -> None:
    assert question_key(one) != question_key(other)


@given(st.text())
def test_folding_again_changes_nothing(text: str) -> None:
    assert question_key(question_key(text)) == question_key(text)


@given(st.lists(st.text(LETTERS, min_size=1)), st.sampled_from([" ", "  ", "\n", "\t", ", ", "; ", " “"]))
def test_space_case_and_marks_between_words_do_not_count(said: list[str], between: str) -> None:
    assert question_key(between.join(said).upper()) == " ".join(said)


def test_a_question_that_stands_there_whole_is_the_same() -> None:
    found = met(["What is 2+2?", "What is 2-2?"], ["nothing", "WHAT IS 2 + 2"])
    assert found == [Overlap(0, "row 1", is_equal=True, shared=0.0)]


def test_a_long_question_is_found_by_a_run_of_its_words() -> None:
    asked = some_words("asked", 40)
    inside = " ".join(["before", *asked[10 : 10 + NGRAM_WORDS], "behind"])
    short = " ".join(asked[10 : 9 + NGRAM_WORDS])
    assert met([" ".join(asked)], [short]) == []
    (found,) = met([" ".join(asked)], [short, inside])
    assert (found.index, found.location, found.is_equal) == (0, "row 1", False)
    assert found.shared == pytest.approx(1 / (40 - NGRAM_WORDS + 1))


def test_runs_of_several_texts_are_added_up_and_the_largest_is_named() -> None:
    asked = some_words("asked", 3 * NGRAM_WORDS)
    first, most = " ".join(asked[:NGRAM_WORDS]), " ".join(asked[NGRAM_WORDS : 3 * NGRAM_WORDS])
    (found,) = met([" ".join(asked)], [first, most, first])
    assert found.location == "row 1"
    runs = 2 * NGRAM_WORDS + 1
    assert found.shared == pytest.approx((1 + NGRAM_WORDS + 1) / runs)


def test_a_whole_question_is_named_before_a_longer_part() -> None:
    asked = " ".join(some_words("asked", 20))
    (found,) = met([asked], [f"{asked} and more", asked])
    assert (found.location, found.is_equal, found.shared) == ("row 1", True, 1.0)


def test_a_short_question_must_stand_there_as_a_whole() -> None:
    asked = some_words("asked", MIN_WORDS)
    (found,) = met([" ".join(asked)], [" ".join(["Answer", *asked, "now"])])
    assert (found.is_equal, found.shared) == (False, 1.0)
    assert met([" ".join(asked)], [" ".join(asked[1:])]) == []
    shorter = " ".join(asked[1:])
    assert met([shorter], [f"Answer {shorter} now"]) == []
    assert met([shorter], [shorter.upper()])[0].is_equal


def test_a_prompt_that_all_questions_share_is_no_overlap() -> None:
    prompt = " ".join(some_words("prompt", 30))
    asked = [f"{' '.join(some_words(number, 20))} {prompt}" for number in range(MAX_QUESTIONS + 5)]
    others = [f"{' '.join(some_words(f'other/{number}', 20))} {prompt}" for number in range(5)]
    assert met(asked, others) == []
    (found,) = met(asked, [*others, asked[3]])
    assert (found.index, found.location, found.is_equal, found.shared) == (3, "row 5", True, 1.0)


def test_overlap_counts_a_passage_shared_by_a_small_part_of_all_questions() -> None:
    passage = " ".join(some_words("passage", 30))
    having = [f"{passage} {' '.join(some_words(number, 20))}" for number in range(MAX_QUESTIONS + 2)]
    others = [" ".join(some_words(f"other/{number}", 20)) for number in range(20 * len(having))]
    assert len(met([*having, *others], [passage])) == len(having)
    assert met([*having, *others[:100]], [passage]) == []


def test_overlap_counts_a_passage_shared_by_few_questions() -> None:
    passage = " ".join(some_words("passage", 30))
    asked = [f"{passage} {' '.join(some_words(number, 20))}" for number in range(MAX_QUESTIONS)]
    assert len(met(asked, [passage])) == MAX_QUESTIONS


def test_overlaps_are_sorted_by_shared_text() -> None:
    asked = [" ".join(some_words(number, 30)) for number in range(4)]
    others = [asked[0][:120], asked[1], asked[3][:200]]
    assert [found.index for found in met(asked, others)] == [1, 3, 0]


def test_overlap_of_empty_lists_is_empty() -> None:
    assert met([], ["a"]) == []
    assert met(["a"], []) == []
    assert met(["", "?"], ["", "!"]) == [Overlap(0, "row 0", is_equal=True, shared=0.0)]


@given(st.data())
def test_overlap_finds_part_of_a_question_inside_any_text(data: st.DataObject) -> None:
    asked = [some_words(f"asked/{number}", 25) for number in range(5)]
    index = data.draw(st.integers(0, 4))
    start = data.draw(st.integers(0, 25 - NGRAM_WORDS))
    around = data.draw(st.lists(st.text(LETTERS + " .,!", max_size=20), min_size=2, max_size=2))
    part = data.draw(st.sampled_from([" ", "  ", "\n", ", "])).join(asked[index][start : start + NGRAM_WORDS])
    found = met(
        [" ".join(one) for one in asked], ["nothing of it", f"{around[0]} {part.upper()} {around[1]}"]
    )
    assert [(one.index, one.location) for one in found] == [(index, "row 1")]


@pytest.mark.parametrize("text", ["a " * 60_000, "\\" * 120_000, "1." * 60_000, "(" * 120_000, "’" * 120_000])
def test_hostile_texts_take_time_by_their_length_alone(text: str) -> None:
    begun = time.process_time()
    overlaps([text, "x"], [("there", text)])
    assert time.process_time() - begun < 10
