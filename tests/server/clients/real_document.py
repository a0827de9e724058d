"""Requests that OpenAI's own OpenAPI document allows, sent to a served team.

    PODIUM_OPENAI_DOCUMENT=openapi.yaml runs/clients.sh -k document

The document stands at https://github.com/openai/openai-openapi. A valid request gets an answer, or one sentence of the
user's own terms that says what a team cannot honour.
"""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode

DOCUMENT = os.environ.get("PODIUM_OPENAI_DOCUMENT")
EXAMPLES = 100
OPERATIONS = (
    ("POST", "/chat/completions"),
    ("POST", "/responses"),
    ("GET", "/models"),
)
pytestmark = pytest.mark.skipif(DOCUMENT is None, reason="PODIUM_OPENAI_DOCUMENT names no file")


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_a_request_of_the_official_document_is_answered_or_refused_by_name(
    method: str, path: str, server: str
) -> None:
    with open(DOCUMENT) as file:
        document = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=f"{server}/v1")
    operation = schema[path][method]

    @seed(1)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def sent(case: Any) -> None:
        if isinstance(case.body, dict):
            case.body |= {"model": "podium"}
        reply = case.call()
        if reply.status_code == 200:
            return
        error = reply.json()["error"]
        assert (reply.status_code, error["type"]) == (400, "invalid_request_error"), error
        assert not re.search(r"\(\)|literal\[|validation|pydantic", error["message"]), error

    sent()
