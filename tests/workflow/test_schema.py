from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from plan_texts import WORKERS, workflows
from podium.workflow import Acceptance, PlanError, PlanRules, Workflow, parse, plan_schema, render
from podium.workflow.schema import SchemaKind

NAMES = ("coder", "vote", "7", "mini")
KINDS: list[SchemaKind] = ["exact", "portable"]


@cache
def validator(kind: SchemaKind, names: tuple[str, ...], later_round: bool) -> Draft202012Validator:
    schema = plan_schema(kind, PlanRules(workers=WORKERS, names=names, later_round=later_round))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def fits(plan: Any, kind: SchemaKind, *, names: tuple[str, ...] = NAMES, later_round: bool = False) -> bool:
    return bool(validator(kind, names, later_round).is_valid(plan))


def last_sees(workflow: Workflow) -> bool:
    """Whether the last step sees a response, or is alone."""
    access = workflow.steps[-1].access
    return len(workflow.steps) == 1 or access.all or access.previous or bool(access.steps)


def written(workflow: Workflow, names: tuple[str, ...] = NAMES) -> Any:
    return json.loads(render(workflow, "structured", names=names, thought="x"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [NAMES, ()])
@given(workflow=workflows())
def test_rendered_plan_fits_the_schema(kind: SchemaKind, names: tuple[str, ...], workflow: Workflow) -> None:
    assert fits(written(workflow, names), kind, names=names) == (kind == "portable" or last_sees(workflow))


@given(workflow=workflows(later_round=True))
def test_rendered_plan_of_a_later_round_fits_the_schema(workflow: Workflow) -> None:
    plan = written(workflow)
    assert fits(plan, "exact", later_round=True) == last_sees(workflow)
    assert fits(plan | {"accept": False}, "portable", later_round=True)


def test_an_acceptance_fits_the_schema_of_later_rounds_alone() -> None:
    plan = json.loads(render(Acceptance(), "structured"))
    assert fits(plan, "exact", later_round=True)
    assert fits(plan | {"steps": []}, "portable", later_round=True)
    assert not any(fits(plan, kind) for kind in KINDS)


@given(workflows(max_steps=6), st.data())
def test_a_plan_that_breaks_a_rule_does_not_fit(workflow: Workflow, data: st.DataObject) -> None:
    plan = written(workflow)
    position = data.draw(st.integers(0, len(plan["steps"]) - 1))
    step = plan["steps"][position]
    breaks: dict[str, Any] = {
        "no thought": lambda: plan.pop("thought"),
        "a further key": lambda: step.update(note="x"),
        "no sees": lambda: step.pop("sees"),
        "an unknown worker": lambda: step.update(worker="codr"),
        "a number": lambda: step.update(worker=0),
        "no text": lambda: step.update(subtask=1),
        "another word": lambda: step.update(sees=["none"]),
        "previous in the first round": lambda: step.update(sees=["previous"]),
        "no list": lambda: step.update(sees="all"),
    }
    exact = {
        "itself": lambda: step.update(sees=[position]),
        "a later step": lambda: step.update(sees=[position + 1]),
        "too many steps": lambda: plan.update(steps=[step | {"sees": []}] * 6),
        "no step": lambda: plan.update(steps=[]),
    }
    how = data.draw(st.sampled_from([*breaks, *exact]))
    (breaks | exact)[how]()
    assert not fits(plan, "exact")
    assert how in exact or not fits(plan, "portable")


@given(workflows(), st.integers(1, 5))
def test_exact_allows_as_many_steps_as_parse_does(workflow: Workflow, most: int) -> None:
    schema = plan_schema("exact", PlanRules(workers=WORKERS, names=NAMES, max_steps=most))
    read = parse(
        render(workflow, "structured", names=NAMES), PlanRules(workers=WORKERS, names=NAMES, max_steps=most)
    )
    fits_schema = Draft202012Validator(schema).is_valid(written(workflow))
    assert fits_schema == (isinstance(read, Workflow) and last_sees(workflow))


@pytest.mark.parametrize(
    ("max_tokens", "steps", "chars"),
    [
        pytest.param(2000, 5, 600, id="room for all"),
        pytest.param(400, 4, 150, id="four steps of a sentence each"),
        pytest.param(300, 3, 135, id="fewer steps rather than shorter texts"),
        pytest.param(60, 1, 120, id="no room at all"),
    ],
)
def test_few_tokens_allow_fewer_steps_before_shorter_texts(max_tokens: int, steps: int, chars: int) -> None:
    schema = plan_schema("exact", PlanRules(workers=2, max_steps=5), max_tokens=max_tokens)
    assert max(form["maxItems"] for form in schema["properties"]["steps"]["anyOf"]) == steps
    assert schema["$defs"]["step0"]["properties"]["subtask"]["maxLength"] == chars


@pytest.mark.parametrize(
    ("worker", "sees", "later_round", "allowed"),
    [
        pytest.param("vote", [], False, False, id="a vote first"),
        pytest.param("vote", ["previous"], True, True, id="a vote on the round before"),
        pytest.param("vote", [], True, False, id="a vote on nothing in a later round"),
        pytest.param("coder", [], False, True, id="a model first"),
    ],
)
def test_schema_requires_access_for_workers_that_need_responses(
    worker: str, sees: list[object], later_round: bool, allowed: bool
) -> None:
    schema = plan_schema(
        "exact", PlanRules(workers=WORKERS, names=NAMES, later_round=later_round), need_responses=(1,)
    )
    first = {"worker": worker, "subtask": "x", "sees": sees}
    steps = [first, {"worker": "coder", "subtask": "y", "sees": [0]}]
    assert Draft202012Validator(schema).is_valid({"thought": "", "steps": steps}) == allowed
    second = [{"worker": "coder", "subtask": "y", "sees": []}, first, first | {"sees": ["all"]}]
    assert Draft202012Validator(schema).is_valid({"thought": "", "steps": second}) == allowed


def test_a_team_of_tools_alone_may_see_nothing() -> None:
    schema = plan_schema("exact", PlanRules(workers=2), need_responses=(0, 1))
    steps = [{"worker": 1, "subtask": "x", "sees": []}]
    assert Draft202012Validator(schema).is_valid({"thought": "", "steps": steps})


def test_all_or_none_schema_allows_no_step_numbers() -> None:
    def sees(*entries: object) -> Any:
        steps = [{"worker": 0, "subtask": "x", "sees": []}, {"worker": 1, "subtask": "y", "sees": [*entries]}]
        return {"thought": "", "steps": steps}

    for kind in KINDS:
        validator = Draft202012Validator(
            plan_schema(kind, PlanRules(workers=2, access="all_or_none", later_round=False))
        )
        assert validator.is_valid(sees("all"))
        assert not validator.is_valid(sees(0))


@pytest.mark.parametrize("later_round", [False, True])
def test_portable_schema_uses_only_widely_supported_keywords(later_round: bool) -> None:
    def objects(schema: Any) -> list[dict[str, Any]]:
        if isinstance(schema, list):
            return [found for entry in schema for found in objects(entry)]
        if not isinstance(schema, dict):
            return []
        return [schema, *(found for value in schema.values() for found in objects(value))]

    schema = plan_schema("portable", PlanRules(workers=WORKERS, names=NAMES, later_round=later_round))
    assert schema["type"] == "object"
    for part in objects(schema):
        if part.get("type") == "object":
            assert part["required"] == [*part["properties"]]
            assert part["additionalProperties"] is False
        bounds = {"minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "pattern", "oneOf"}
        assert not bounds & part.keys()
        assert "prefixItems" not in part
    assert next(iter(schema["properties"])) == "thought"


def test_a_plan_of_the_schema_can_still_be_wrong() -> None:
    plan = {"thought": "", "steps": [{"worker": "mini", "subtask": " ", "sees": []}]}
    assert fits(plan, "exact")
    assert isinstance(parse(json.dumps(plan), PlanRules(workers=WORKERS, names=NAMES)), PlanError)
