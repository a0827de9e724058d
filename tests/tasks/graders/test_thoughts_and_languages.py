"""Every grader scores the answer and not the thoughts before it, in other languages and widths, too."""

from __future__ import annotations

import asyncio
import json

import pytest

from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.choice import Choice
from podium.tasks.graders.code_grader import Code
from podium.tasks.graders.json_grader import Json
from podium.tasks.graders.judge import Judge
from podium.tasks.graders.math_graders import Math, Numeric
from podium.tasks.graders.text_graders import Exact, Normalised, Regex, SetOf
from podium.tasks.task import Grade
from podium.text.answer import final_answer
from podium.text.same_answer import answer_key
from podium.workers.spec import ScriptedSpec

THOUGHTS = (
    "<think>\n{}\n</think>\n\n",
    "{}\n</think>\n\n",
    "<thinking>{}</thinking>",
    "[THINK]{}[/THINK]",
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
)
PROGRAMS = json.dumps({"form": "programs", "inputs": [""], "outputs": ["4"]})
CASES: tuple[tuple[GraderSettings, str, str, str], ...] = (
    (Choice(), "C", "C", "The answer is B.\nAnswer: B\n\\boxed{B}"),
    (Math(), "4", "4", "Answer: 5\n\\boxed{5}"),
    (Numeric(), "4", "4", "Answer: 5\n\\boxed{5}"),
    (Exact(), "Paris", "Paris", "<answer>Rome</answer>\nAnswer: Rome"),
    (Normalised(), "Paris", "Paris", "Answer: Rome"),
    (SetOf(), "blue, red", "red, blue", "Answer: red"),
    (Regex(), "ab\\d+", "ab12", "Answer: ab"),
    (Json(), '{"a": 4}', '{"a": 4}', '```json\n{"a": 5}\n```\nAnswer: 5'),
    (Code(allow_weak_sandbox=True), PROGRAMS, "print(4)", "```python\nprint(5)\n```"),
)  # grader, gold, the right answer, thoughts with a wrong one


def grade(grader: GraderSettings, response: str, gold: str) -> Grade:
    return asyncio.run(grader(response, gold))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case[0].kind))
def test_thoughts_of_any_form_change_no_grade(case: tuple[GraderSettings, str, str, str]) -> None:
    grader, gold, right, wrong = case
    for form in THOUGHTS[: 2 if isinstance(grader, Code) else None]:
        assert grade(grader, form.format(wrong) + right, gold).score == 1, form
        assert grade(grader, form.format(right) + wrong, gold).score == 0, form
    assert grade(grader, f"<think>\n{right}", gold).score == 0


def test_judge_sees_no_thoughts_and_verdicts_in_its_thoughts_are_ignored() -> None:
    def judged(*replies: str) -> float:
        worker = ScriptedSpec(name="judy", kind="scripted", replies=list(replies))
        return grade(Judge(worker=worker), "<think>Rome?</think>Paris", "Paris").score

    assert judged("<think>\nWRONG\n</think>\nRIGHT", "RIGHT") == 1
    assert grade(
        Judge(worker=ScriptedSpec(name="judy", kind="scripted", replies=["RIGHT"])), "<think>Paris", "x"
    ) == Grade(0.0)


LETTERS = (
    "Antwort: C",
    "Die richtige Antwort ist C.",
    "Endgültige Antwort: (C)",
    "**Antwort:** C) Rom",
    "Réponse : C",
    "La réponse est C.",
    "Respuesta: C",
    "La respuesta correcta es C",
    "La respuesta final es: C",
    "Resposta: C",
    "A resposta é C.",
    "Risposta: C",
    "Ответ: C",
    "Ответ — C",
    "Правильный ответ: C",
    "答案：C",
    "答案是 C。",
    "正确答案是：C",
    "最终答案：**C**",
    "答案为C",
    "答え：C",
    "答えはCです。\n答え: C",
    "正解：**C**",
    "正解はC。",
    "정답: C",
    "Jawaban: C",
    "Jibu: C",
    "الإجابة: C",
    "उत्तर: C",
    "Odpowiedź: C",
    "Ｃ",
    "Ａｎｓｗｅｒ：Ｃ",
    "（Ｃ）",
    '{"answer": "C"}',
    '```json\n{"answer": "C", "confidence": 0.9}\n```',
    '{"choice": "C"}',
    '{"answer": "B"} is wrong.\n\n{"answer": "C"}',
    "Option C is the correct answer.",
    "So (C) is the right option.",
    "Option B is not correct. Option C is correct.",
)
NO_LETTERS = (
    "Antwort: B",
    "Antwort: B oder C",
    "答案：A、C",
    "La réponse est B.",
    "Ответ: B, C",
    '{"answer": "B", "answer": "C"}',
    '{"answer": ["B", "C"]}',
    '{"answer": "C or B"}',
    "Is it true that option C is the correct answer?",
    "Option C is incorrect.",
    "Option C is not the correct answer.",
    "Antwort: Cobalt",
    "C is the third letter",
)


@pytest.mark.parametrize("response", LETTERS)
def test_a_letter_is_read_in_other_languages_widths_and_json(response: str) -> None:
    assert Choice().judge(response, "C").score == 1


@pytest.mark.parametrize("response", NO_LETTERS)
def test_choice_grader_scores_0_without_a_claimed_letter_in_any_language(response: str) -> None:
    assert Choice().judge(response, "C").score == 0


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("Antwort: 18\nDas war es.", "18"),
        ("La réponse finale : 18\nVoilà.", "18"),
        ("答案：18\n。", "18"),
        ("<think>Answer: 7</think>Answer: 18", "18"),
        ("Answer： 18\nEnd.", "18"),
        ("<answer>5</answer> or <answer>6</answer>", "5 or 6"),
        ("<answer>5</answer>\n<answer>5</answer>", "5"),
        ("<answer>5</answer> no, <answer>6</answer>", "6"),
    ],
)
def test_votes_find_the_answer_where_graders_do(response: str, answer: str) -> None:
    assert final_answer(response) == answer
    assert answer_key(str(final_answer(response))) == answer_key(answer)


@pytest.mark.parametrize(
    ("grader", "response", "gold"),
    [
        (Exact(), "Ｐａｒｉｓ", "Paris"),
        (Exact(), "ﬁne", "fine"),
        (Normalised(), "Ｐａｒｉｓ！", "Paris"),
        (Numeric(), "１２．５", "12.5"),
        (Numeric(), "Antwort: 1.234,50 €", "1234.5"),
        (Math(), "答案：１２", "12"),
        (SetOf(), "２，１", "1, 2"),
        (Regex(), "ＡＢ１２", "AB\\d+"),
        (Regex(), "１２", "１２"),
        (Json(), '{"a": "Ｐａｒｉｓ"}', '{"a": "Paris"}'),
    ],
)
def test_variants_of_a_character_are_one_to_every_grader(
    grader: GraderSettings, response: str, gold: str
) -> None:
    assert grade(grader, response, gold).score == 1


@pytest.mark.parametrize("grader", [Exact(), Normalised(), Numeric(), Math()], ids=lambda grader: grader.kind)
def test_a_superscript_is_no_digit(grader: GraderSettings) -> None:
    assert grade(grader, "10²", "102").score == 0
    assert grade(grader, "10⁴", "104").score == 0
