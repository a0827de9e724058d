"""JSON values: found whole, read to the letter, compared with the gold ones, held to a schema."""

import json
from typing import Any

import pytest

from podium.config import build
from podium.errors import ConfigError, GraderError
from podium.tasks.graders.json_grader import Json

TREE = {
    "type": "object",
    "properties": {
        "day": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"},
        "tags": {"type": "array", "uniqueItems": True},
        "tree": {"$ref": "#/$defs/tree"},
    },
    "required": ["day"],
    "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
}


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
    ("value", "score"),
    [
        ({"day": "2024-01"}, 1),
        ({"day": "January"}, 0),
        ({}, 0),
        ([], 0),
        ({"day": "2024-01", "tags": [1, True, "1", [1]]}, 1),
        ({"day": "2024-01", "tags": [1, 1.0]}, 0),
        ({"day": "2024-01", "tags": [{"a": 1, "b": 2}, {"b": 2, "a": 1}]}, 0),
        ({"day": "2024-01", "tree": [[], [[]]]}, 1),
        ({"day": "2024-01", "tree": [[], [0]]}, 0),
    ],
)
async def test_a_schema_holds_beyond_the_gold_values(value: Any, score: float) -> None:
    grader = Json(json_schema=TREE, extra_keys=True)
    assert (await grader(json.dumps(value), "{}")).score == score


async def test_a_schema_is_bounded_on_hostile_values() -> None:
    grader = Json(json_schema=TREE, extra_keys=True)
    many = json.dumps({"day": "2024-01", "tags": [{}] * 24_000})
    deep = '{"day": "2024-01", "tree": ' + "[" * 63 + "]" * 63 + "}"
    assert (await grader(many, "{}")).score == 0
    assert (await grader(deep, "{}")).score == 1


async def test_a_schema_that_fails_is_the_graders_failure() -> None:
    slow = Json(json_schema={"pattern": "(?:a|aa)+(?:a|aa)+(?:a|aa)+$b"}, extra_keys=True)
    text = json.dumps("a" * 3000)
    with pytest.raises(GraderError, match="takes more than 1 s"):
        await slow(text, text)
    nowhere = Json(json_schema={"$ref": "#/nothing"}, extra_keys=True)
    with pytest.raises(GraderError, match="cannot be followed"):
        await nowhere("{}", "{}")
    assert "cannot be checked" in str(Json(json_schema={"$ref": "#/nothing"}).gold_problem("1"))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "thing"}, "no JSON Schema"),
        ({"$ref": "https://example.org/schema"}, "leaves the schema"),
        ({"properties": {"a": {"patternProperties": {}}}}, "patternProperties"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_when_it_is_read(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        build({"kind": "json", "json_schema": schema}, Json)


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
        (Json(json_schema=TREE, extra_keys=True), "{}", True),
        (Json(json_schema=TREE), "{}", False),
        (Json(json_schema=TREE), '{"day": "2024-01"}', True),
    ],
)
def test_a_gold_answer_is_json_that_fits_the_schema(grader: Json, gold: str, good: bool) -> None:
    assert (grader.gold_problem(gold) is None) is good
