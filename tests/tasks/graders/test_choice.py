"""Letters of multiple choice, as models write them; and lists of letters, which are no choice."""

import pytest

from podium.tasks.graders.choice import Choice

OPTIONS = '{"letter": "C", "options": ["Oslo", "Lima", "Rome", "Both A and B"]}'


@pytest.mark.parametrize(
    "response",
    [
        "C",
        "c",
        "(C)",
        "**C**",
        "C.",
        "C)",
        "C: Rome",
        "C. because it is the capital",
        "(C) Rome\n\nThe others are wrong.",
        "C\n\nExplanation: A and B are too small.",
        "A is too small. B is too big.\nC",
        "Answer: C",
        "answer: c",
        "Ａｎｓｗｅｒ： Ｃ",
        "**Answer:** C",
        "### Answer: Option C",
        "Answer:\n\nC",
        'Answer: "C"',
        "Answer: [C]",
        "Answer: C (Rome)",
        "Answer: C - Rome",
        "Answer: C, because A is wrong",
        "Answer: (C) Rome",
        "Answer: C. Rome\n\nA. Oslo is too cold.\nB. Lima is too far.",
        "Answer: C\nA) is too small.",
        "My final answer: C",
        "<answer>C</answer>",
        "<answer>\n(C) Rome\n</answer>",
        "\\boxed{C}",
        "So $\\boxed{\\text{C}}$.",
        "\\boxed{\\textbf{(C)}}",
        "The final answer is \\(\\boxed{C}\\).",
        "The answer is (C).",
        "the answer is $C$.",
        "The answer is **C**: Rome",
        "The answer is C because B is wrong",
        "The answer is option C.",
        "The answer choice is C.",
        "The correct answer is:\n\n**C. Rome**",
        "The correct answer is C, not A.",
        "The correct option is C",
        "The best choice is (C) Rome, since (A) and (B) are false.",
        "I think the answer is A. No: the answer is C. A is too small.",
        "Answer: A\nWait.\nAnswer: C",
        "The answer is C.\n\nTell me if the choice is unclear.",
        "Answer: C. I and II only",
        "Answer: C: I, II, and III",
        "(C) A and B only",
        "Answer: C. Franklin D. Roosevelt",
    ],
)
def test_a_letter_is_found_as_models_write_it(response: str) -> None:
    grade = Choice().judge(response, "C")
    assert (grade.score, grade.found) == (1, "C")
    assert Choice().judge(response, "B").score == 0


@pytest.mark.parametrize(
    "response",
    [
        "A, B, C, D",
        "ABCD",
        "A B C D",
        "A-D",
        "A/B/C/D",
        "A; B; C; D",
        "(A)(B)(C)(D)",
        "A) B) C) D)",
        "A. B. C. D.",
        "(A) and (C)",
        "(B), (D)",
        "A or C",
        "B or maybe D",
        "C and D",
        "A & B",
        "A (or C)",
        "D, or B",
        "both A and C",
        "A. Oslo, B. Lima, C. Rome, D. Bonn",
        "(A) Oslo (B) Lima (C) Rome (D) Bonn",
        "A. Oslo\nB. Lima\nC. Rome\nD. Bonn",
        "A\nB\nC\nD",
        "C, A and B are right",
    ],
)
@pytest.mark.parametrize("form", ["{}", "Answer: {}", "<answer>{}</answer>", "So the answer is {}"])
def test_a_list_of_letters_is_no_choice(form: str, response: str) -> None:
    assert [Choice().judge(form.format(response), gold).score for gold in "ABCD"] == [0] * 4


@pytest.mark.parametrize(
    "response",
    [
        "",
        " \n",
        "D",
        "Answer: D",
        "Answer: none of them",
        "Answer: not C",
        "Answer: Cobalt",
        "The answer is Cobalt",
        "The answer is not C",
        "C++",
        "C is the third letter",
        "I chose C because it fits",
        "Of A, B and C the last",
        "All of A, B, C and D are right",
        "The atom is C",
        "The answer is C.\nAnswer: D",
        "The answer is C. No, the answer is A or C.",
        "C\n\nAnswer: B",
    ],
)
def test_choice_grader_scores_other_answers_0(response: str) -> None:
    assert Choice().judge(response, "C").score == 0


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ("Answer: Rome", 1),
        ("rome", 1),
        ("The answer is Rome.", 1),
        ("It is in Italy.\nRome", 1),
        ("Answer: C", 1),
        ("Answer: Lima", 0),
        ("Answer: Rome, Italy", 0),
        ("Answer: Rome or Lima", 0),
        ("Oslo, Lima, Rome", 0),
        ("Rome is not it", 0),
    ],
)
def test_choice_grader_accepts_the_option_text_if_the_gold_lists_options(response: str, score: float) -> None:
    assert Choice().judge(response, OPTIONS).score == score
    assert Choice().judge(response, "C").score == (score if response == "Answer: C" else 0)


def test_a_text_that_two_options_share_stands_for_neither() -> None:
    gold = '{"letter": "A", "options": ["the same", "The same!", "another"]}'
    assert Choice().judge("Answer: the same", gold).score == 0
    assert Choice().judge("Answer: A", gold).score == 1


@pytest.mark.parametrize(
    ("place", "right", "wrong"),
    [
        ("tag", "<answer>(C)</answer>", "Answer: C"),
        ("boxed", "\\boxed{\\text{C}}", "Answer: C"),
        ("line", "So:\nC", "C\nSo."),
        ("whole", "C", "So:\nC"),
    ],
)
def test_a_place_for_the_answer_may_be_demanded(place: str, right: str, wrong: str) -> None:
    grader = Choice.model_validate({"answer": place})
    assert [grader.judge(response, "C").score for response in (right, wrong)] == [1, 0]


@pytest.mark.parametrize("gold", ["A", "J", "Z", " C ", '{"letter": "C"}', OPTIONS])
def test_a_gold_answer_is_a_letter_or_a_letter_with_its_options(gold: str) -> None:
    assert Choice().gold_problem(gold) is None


@pytest.mark.parametrize(
    "gold",
    [
        "",
        "c",
        "AB",
        "C.",
        "3",
        "Rome",
        "[1]",
        "{}",
        '{"letter": "c"}',
        '{"letter": 2}',
        '{"letter": "C", "options": ["Oslo", "Lima"]}',
        '{"letter": "C", "options": "Oslo"}',
        '{"letter": "A", "options": [1, 2]}',
        '{"letter": "C", "texts": []}',
        "[" * 10_000,
    ],
)
def test_choice_grader_refuses_a_gold_answer_without_a_letter(gold: str) -> None:
    assert "no letter" in str(Choice().gold_problem(gold))
    assert Choice().judge("Answer: C", gold).score == 0


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ("The correct answer is C. Option A is incorrect since it is small.", 1),
        ("Answer: C. Option B is wrong because it ignores friction.", 1),
        ("Answer: C (option A ignores friction)", 1),
        ("The answer is (C). (A) and (B) are incorrect.", 1),
        ("The answer is C rather than A.", 1),
        ("Answer: C. All of the above (A, B and D)", 1),
        ("Answer: C, and B is not wrong", 0),
        ("Answer: C (option A is as good)", 0),
    ],
)
def test_options_that_are_denied_are_no_second_choice(response: str, score: float) -> None:
    assert Choice().judge(response, "C").score == score
