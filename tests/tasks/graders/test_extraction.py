"""Where an answer stands: each place, and that nothing is found elsewhere."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.tasks.graders.extraction import AnswerPlace, extract

FOUND: list[tuple[AnswerPlace, str, str | None]] = [
    ("final", "Two thoughts.\nAnswer: 5", "5"),
    ("final", "It is 5", "It is 5"),
    ("tag", "<answer>4</answer> no: <Answer> 5 </Answer>", "5"),
    ("tag", "Answer: 5", None),
    ("boxed", "\\boxed{4}, then \\boxed{5}", "5"),
    ("boxed", "\\boxed{\\sqrt{\\frac{1}{2}}}", "\\sqrt{\\frac{1}{2}}"),
    ("boxed", "\\boxed 12", "12"),
    ("boxed", "\\fbox{5}", "5"),
    ("boxed", "\\boxed{}", None),
    ("boxed", "5", None),
    ("field", '{"answer": "4"} or rather {"answer": "5"}', "5"),
    ("field", '{"answer": 5, "sure": true}', "5"),
    ("field", '{\n  "answer": 5\n}', "5"),
    ("field", '{"answer": "\\\\frac{1}{2}"}', "\\frac{1}{2}"),
    ("field", '{"answer": "\\frac{1}{2}"}', "\\frac{1}{2}"),
    ("field", '{"answer": "\\sqrt{2}"}', "\\sqrt{2}"),
    ("field", '{"answer": "a \\"b\\""}', 'a "b"'),
    ("field", "Answer: 5", None),
    ("hashes", "4 + 1 = 5\n#### 5", "5"),
    ("hashes", "#### 4\nno\n####: 1,234\nbye", "1,234"),
    ("hashes", "5", None),
    ("line", "4\n5\n\n", "5"),
    ("code", "```python\nx = 1\n```\nand\n```\nx = 2\n```\ndone", "x = 1"),
    ("code", "x = 1", "x = 1"),
    ("code", "```python\nx = 1", "x = 1"),
    ("whole", "  4\n5 ", "4\n5"),
    ("whole", " \n", None),
]

STATED = [
    ("5 and 6 are 11. So \\boxed{11}.", "11"),
    ("\\boxed{4}, hm. That is far from right, let me think about it. No, \\boxed{5}", "5"),
    ("\\boxed{4}, \\boxed{5}", "4, 5"),
    ("\\boxed{x = 4} \\quad \\text{and} \\quad \\boxed{y = 5}", "x = 4, y = 5"),
    ("\\boxed{5} ... so \\boxed{5}", "5"),
    ("It is \\boxed{20} percent.", "20\\%"),
    ("Cut short: \\boxed{\\frac{1}{2}", "\\frac{1}{2}"),
    ("<answer>5</answer>", "5"),
    ("\\boxed{4} in short. Final answer: 5", "5"),
    ("The final answer is 4, or so I thought. \\boxed{5}", "5"),
    ("**Final Answer**\n\n5 cm", "5 cm"),
    ("**Final Answer**\n\n\\[\n5\n\\]\n", "\\[\n5\n\\]"),
    ("The final answer is 5. I hope it is correct.", "5."),
    ("Answer: 4\nNo.\nAnswer: 5", "5"),
    ("So the answer is 5, which is 4 + 1.", "5"),
    ("The answer is 5. I checked it: the answer is correct.", "5."),
    ('```json\n{"reasoning": "4", "answer": "5"}\n```', "5"),
    ("Answer:\n- 4\n- 5", "4, 5"),
    ("Answer: 5\nThat is because 4 < 5.", "5"),
    ("Thinking of 4.\n\nThere are 5 of them", "There are 5 of them"),
    ("4\n5", "4, 5"),
    ("First 4 were there. Then 5.", "Then 5."),
    ("So\n\\begin{pmatrix}\n1 \\\\ 2\n\\end{pmatrix}", "\\begin{pmatrix}\n1 \\\\ 2\n\\end{pmatrix}"),
    ("<think>It is \\boxed{4}.</think>It is 5", "It is 5"),
]


@pytest.mark.parametrize(("place", "response", "answer"), FOUND)
def test_extract_finds_the_answer_in_each_place(
    place: AnswerPlace, response: str, answer: str | None
) -> None:
    assert extract(response, place) == answer


@pytest.mark.parametrize(("response", "answer"), STATED)
def test_the_latest_statement_of_the_answer_counts(response: str, answer: str) -> None:
    assert extract(response, "stated") == answer


@pytest.mark.parametrize(
    "response", ["", " \n", "Answer:", "**", "So we have 3 + 4 =", "Thus x <", "and 4 is equal to"]
)
def test_extract_returns_none_without_a_stated_answer(response: str) -> None:
    assert extract(response, "stated") is None


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("Here $4$ is less than $x^2$, for 5 reasons", "x^2"),
        ("The answer is $4$, $5$ and $6$.", "4, 5, 6"),
        ("So \\(4\\) is far from \\[\n5\n\\]", "5"),
        ("\\boxed{5}", "5"),
        ("The answer is 5", None),
        ("$ \n 5 \n $", None),
    ],
)
def test_extract_formula_returns_the_text_between_math_marks(response: str, answer: str | None) -> None:
    assert (extract(response, "formula") or "").strip() == (answer or "")


PLACES: tuple[AnswerPlace, ...] = (
    "final", "stated", "formula", "tag", "boxed", "field", "hashes", "line", "code", "whole",
)  # fmt: skip
PIECES = (
    "answer",
    "Answer: ",
    "final answer is ",
    "<answer>",
    "</answer>",
    "\\boxed{",
    "}",
    "\\[",
    "\\]",
    "$",
    "$$",
)
PIECES += (
    '"answer": "',
    "\\begin{a}",
    "\\end{a}",
    "####",
    "```",
    "\n",
    "- 1",
    "4",
    " and ",
    ". ",
    "</think>",
    "\\",
)


@given(response=st.text(max_size=50) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_extract_strips_outer_space(response: str) -> None:
    for place in PLACES:
        found = extract(response, place)
        assert found is None or (found and found == found.strip())
        assert extract(f" \n{response}\n\t", place) == found


def test_a_hostile_text_is_searched_in_bounded_time() -> None:
    started = time.process_time()
    for piece in (*PIECES, "answer is correct ", "\\boxed{1} ", "```a\n", "1\n", "A. ", " ", ", which"):
        for place in PLACES:
            extract(piece * (20_000 // len(piece)), place)
    assert time.process_time() - started < 10
