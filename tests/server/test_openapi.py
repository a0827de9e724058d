"""Whatever is sent that the OpenAPI schema allows, or nearly allows: no fault, and no answer that it does not know."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode, checks

from running_server import Serve

_CLAIMS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
_EXAMPLES, _MODES = (
    (2000, list(GenerationMode)) if os.environ.get("PODIUM_NIGHTLY") else (80, [GenerationMode.POSITIVE])
)
"""Requests in all, and of which kinds: to make up one that the schema forbids takes as long as the others together."""


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("served")
    with Serve() as starting:
        url = starting(planner="random", store=folder / "traces.sqlite", runs=folder)
        yield schemathesis.openapi.from_url(f"{url}/openapi.json")


def test_every_route_answers_as_the_schema_says(schema: Any) -> None:
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 5
    for operation in operations:
        # At night half of what is sent is not as the schema has it. Only a body, a query or a header can be wrong.
        can_be_wrong = any(map(len, (operation.body, operation.query, operation.headers)))
        for mode in _MODES if can_be_wrong else [GenerationMode.POSITIVE]:

            @seed(operation.label)
            @settings(
                max_examples=max(1, _EXAMPLES // (2 * len(operations))),
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def holds(case: Any) -> None:
                case.call_and_validate(checks=_CLAIMS)

            holds()


@pytest.mark.parametrize("route", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_replies_describe_the_object_podium(schema: Any, route: str) -> None:
    document = schema.raw_schema
    reply = document["paths"][route]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    name = reply["$ref"].rpartition("/")[2]
    assert "PodiumDetails" in str(document["components"]["schemas"][name]["properties"]["podium"])
    details = document["components"]["schemas"]["PodiumDetails"]
    assert {"trace_id", "plan", "steps", "usage"} <= set(details["required"])
