"""Reading is the inverse of wording, for every operation and every phrasing."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.lab import OPERATIONS, SKILLS, VALUE_TYPES, clauses, read_problem, word_question
from podium.lab.operations import Operation
from podium.tasks.embedded import draw_problem

PHRASINGS = [
    pytest.param(operation, phrasing, id=f"{operation.name}-{number}")
    for operation in OPERATIONS.values()
    for number, phrasing in enumerate(operation.phrasings)
]


def worded(
    operation: Operation, phrasing: str, rng: Random, number: str | None = None
) -> tuple[str, list[str]]:
    """A clause with drawn values, and the values as they are written. The number is drawn, too, if it is not given."""
    written = [VALUE_TYPES[kind].write(VALUE_TYPES[kind].draw(rng)) for kind in operation.takes]
    literals = [
        VALUE_TYPES[kind].literal.format(value) for kind, value in zip(operation.takes, written, strict=True)
    ]
    if number is None and operation.number is not None:
        number = str(rng.choice(operation.number))
    return phrasing.format(**dict(zip("xy", literals, strict=False)), n=number), written


def test_the_catalogue_is_as_wide_as_promised() -> None:
    assert len(SKILLS) >= 8
    assert len(OPERATIONS) >= 40
    assert all(len(set(operation.phrasings)) >= 3 for operation in OPERATIONS.values())


@pytest.mark.parametrize(("operation", "phrasing"), PHRASINGS)
def test_every_phrasing_is_read_as_its_own_operation(operation: Operation, phrasing: str) -> None:
    for seed in range(20):
        clause, written = worded(operation, phrasing, Random(f"{phrasing}/{seed}"))
        (found,) = clauses(f"Please {clause}, and report.")
        assert found.operation is operation
        assert [value.strip("'") for value in found.values] == written


@pytest.mark.parametrize(("operation", "phrasing"), PHRASINGS)
@pytest.mark.parametrize("reference", ["the result", "that", "it"])
def test_a_reference_is_read_where_a_value_may_stand(
    operation: Operation, phrasing: str, reference: str
) -> None:
    values = {slot: reference for slot, _ in zip("xy", operation.takes, strict=False)}
    (found,) = clauses(phrasing.format(**values, n=7).capitalize())
    assert found.operation is operation


@given(seed=st.integers(0, 10**9), hops=st.integers(1, 4))
def test_reading_a_worded_question_gives_its_problem(seed: int, hops: int) -> None:
    rng = Random(f"test/{seed}")
    problem = draw_problem(rng, hops)
    question = word_question(problem, rng)
    read = read_problem(question)
    assert read is not None, question
    assert read.key == problem.key, question
    assert read.truths == problem.truths


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What is the meaning of life?",
        "Then write it backwards.",
        "Read the Roman numeral 'IIII'.",
        "A and B",
        "Find the remainder of 17 after division by 0.",
        "Find the date 5 days after 30 December 9999.",
        "Negate 'perhaps'.",
        "Decide whether 1000000000000000003 is prime.",
        f"Decide whether {'9' * 400} is prime.",
        f"Decide whether {'9' * 5000} is prime.",
        f"Add {'9' * 5000} to 4.",
    ],
)
def test_a_text_that_poses_no_problem_is_not_read(text: str) -> None:
    assert read_problem(text) is None


@pytest.mark.parametrize(("operation", "phrasing"), PHRASINGS)
def test_no_number_that_stands_in_a_question_is_too_much_for_its_reader(
    operation: Operation, phrasing: str
) -> None:
    for number in ("0", "7", "1000000007", "9" * 400, "9" * 5000):
        values = {slot: number for slot, _ in zip("xy", operation.takes, strict=False)}
        for text in (
            phrasing.format(**values, n=number),
            worded(operation, phrasing, Random(number), number)[0],
        ):
            read_problem(f"Please {text}.")


def test_a_text_that_is_neither_yes_nor_no_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="neither yes nor no: 'perhaps'"):
        VALUE_TYPES["yesno"].read("perhaps")
