"""JSON values: found whole, read to the letter, compared with the gold ones."""

import pytest

from podium.tasks.graders.json_grader import Json


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('{"b": [1, null], "a": 1.0}', '{"a": 1, "b": [1, null]}'),
        ('Let me see.\nAnswer: {"a": 1}', '{"a": 1}'),
        ('**Answer:**\n{\n  "answer": 1\n}', '{"answer": 1}'),
        ('{\n  "answer": 1\n}', '{"answer": 1}'),
        ('Here it is:\n```json\n{"a": 1}\n```\nDone.', '{"a": 1}'),
        ('<answer>{"a": 1}</answer> Done.', '{"a": 1}'),
        ('<answer>\n```json\n{"a": 1}\n```\n</answer>', '{"a": 1}'),
        ("```python\nx = {}\n```\nAnswer: 3", "3"),
        ("0.30000000000000004", "0.3"),
        ('"é"', '"\\u00e9"'),
        ("null", "null"),
    ],
)
async def test_a_value_that_is_the_gold_one_is_right(response: str, gold: str) -> None:
    assert (await Json()(response, gold)).score == 1


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("", "{}"),
        ('{"a": true}', '{"a": 1}'),
        ('{"a": 1}', '{"a": true}'),
        ('{"a": "1"}', '{"a": 1}'),
        ('{"a": 1, "b": 2}', '{"a": 1}'),
        ('{"a": 1}', '{"a": 1, "b": 2}'),
        ("[1, 2]", "[2, 1]"),
        ("[1, 2, 3]", "[1, 2]"),
        ('[{"a": 1}, {"a": 2}]', '{"a": 1}'),
        ('{"a": 1} {"a": 1}', '{"a": 1}'),
        ('{"a": 1, "a": 1}', '{"a": 1}'),
        ('{"a": 2, "a": 1}', '{"a": 1}'),
        ('Here it is: {"a": 1}', '{"a": 1}'),
        ('{"a": 1,}', '{"a": 1}'),
        ("{'a': 1}", '{"a": 1}'),
        ("null", "false"),
        ("0", "false"),
        ("NaN", "0"),
        ("1e999", "1"),
        ("1" * 50, "1" * 49 + "2"),
        ("9" * 5000, "9"),
        ("[" * 70 + "]" * 70, "[]"),
        ("[" * 30_000, "[]"),
        ('```json\n{"a": 2}\n```\n```json\n{"a": 1}\n```\nAnswer: {"a": 2}', '{"a": 1}'),
    ],
)
async def test_json_grader_rejects_any_other_value(response: str, gold: str) -> None:
    assert (await Json()(response, gold)).score == 0


async def test_numbers_may_be_off_by_as_much_as_is_set() -> None:
    assert (await Json(absolute=0.5)('{"a": 1.4}', '{"a": 1}')).score == 1
    assert (await Json(absolute=0.5)('{"a": 1.6}', '{"a": 1}')).score == 0
    assert (await Json(relative=0.01)("[1009]", "[1000]")).score == 1
    assert (await Json(relative=0.01)("[1011]", "[1000]")).score == 0


async def test_keys_that_the_gold_answer_has_not_are_allowed_where_that_is_set() -> None:
    lenient = Json(extra_keys=True)
    assert (await lenient('{"a": {"b": 1, "c": 2}, "d": 3}', '{"a": {"b": 1}}')).score == 1
    assert (await lenient('{"a": {"c": 2}, "d": 3}', '{"a": {"b": 1}}')).score == 0
    assert (await lenient("[1, 2]", "[1]")).score == 0


@pytest.mark.parametrize(
    ("grader", "gold", "good"),
    [
        (Json(), "{}", True),
        (Json(), "[1, {}]", True),
        (Json(), "", False),
        (Json(), "{'a': 1}", False),
        (Json(), '{"a": 1, "a": 1}', False),
        (Json(), "[" * 100 + "]" * 100, False),
        (Json(extra_keys=True), "{}", False),
        (Json(extra_keys=True), '{"a": 1}', True),
    ],
)
def test_a_gold_answer_is_json_that_can_be_graded(grader: Json, gold: str, good: bool) -> None:
    assert (grader.gold_problem(gold) is None) is good
