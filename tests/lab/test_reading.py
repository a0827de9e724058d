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


def worded(operation: Operation, phrasing: str, rng: Random) -> tuple[str, list[str]]:
    """A clause with drawn values, and the values as they are written."""
    written = [VALUE_TYPES[kind].write(VALUE_TYPES[kind].draw(rng)) for kind in operation.takes]
    literals = [
        VALUE_TYPES[kind].literal.format(value) for kind, value in zip(operation.takes, written, strict=True)
    ]
    number = None if operation.number is None else rng.choice(operation.number)
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
    ],
)
def test_a_text_that_poses_no_problem_is_not_read(text: str) -> None:
    assert read_problem(text) is None
