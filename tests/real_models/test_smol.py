"""First contact with a real model: SmolLM2-135M-Instruct behind llama.cpp."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from podium import Budget, Team
from podium.executor import StepText
from podium.workflow import Workflow

pytestmark = pytest.mark.timeout(600)

WORKER = """
[[worker]]
name = "{name}"
kind = "openai"
model = "smol"
base_url = "{url}"
temperature = 0.0
profile = "{profile}"
limits = {{ max_tokens = {most}, retries = 0, timeout = 500 }}
"""


@pytest.fixture
def pool(endpoint: Callable[[str], str], tmp_path: Path):
    """`pool()` is a team file of two workers; what it is given goes into the first one's table, or before both."""

    def write(first: str = "", *, head: str = "", most: int = 48) -> Path:
        path, url = tmp_path / "pool.toml", endpoint("smol")
        path.write_text(
            head
            + WORKER.format(name="writer", url=url, profile="Writes short answers.", most=most)
            + first
            + WORKER.format(name="checker", url=url, profile="Checks and mends an answer.", most=most)
        )
        return path

    return write


async def test_an_untrained_model_writes_a_plan_by_schema(pool) -> None:
    # Of two steps: each token is drawn by a real model.
    head = '[conductor]\nworker = "writer"\nplans = "schema"\nprompt = { style = "short" }\n[plan]\nmax_steps = 2\n'
    async with Team.open(pool(head=head, most=400)) as team:
        plan = await team.plan("Which day comes after Monday?", seed="0")
    assert isinstance(plan.decision, Workflow), plan.decision
    assert {step.worker for step in plan.decision.steps} <= {0, 1}
    written = json.loads(plan.text)
    assert list(written) == ["thought", "steps"]


async def test_an_answer_arrives_in_pieces(pool) -> None:
    async with Team.open(pool("stream = true\n"), planner="single:writer") as team:
        events = [event async for event in team.stream("Name three colours.", seed="0")]
    pieces = [event.text for event in events if isinstance(event, StepText)]
    assert len(pieces) > 3
    assert "".join(pieces) == events[-1].trace.answer


async def test_the_second_step_reads_what_the_first_answered(pool) -> None:
    plan = (
        'model_id = [0, 1]\nsubtasks = ["Name one animal.", "Repeat that animal."]\naccess_list = [[], [0]]'
    )
    async with Team.open(pool(most=16), planner="single:writer") as team:
        trace = await team.run(plan, "Which animal is the largest?", seed="0")
    first, second = trace.spans
    assert (first.worker, second.worker) == ("writer", "checker")
    assert first.response
    assert first.response in "".join(message.content for message in second.messages)
    assert trace.answer == second.response
    assert second.usage.input_tokens > first.usage.input_tokens > 0
    assert not second.usage.estimated


async def test_thoughts_that_a_server_leaves_in_the_text_are_no_answer(pool) -> None:
    # Without its own parser for this model, llama.cpp passes on what a grammar makes it write.
    grammar = r'root ::= "<think>\nI " [a-z ]{5,30} "\n</think>\n\n" [A-Z] [a-z]{2,10} "."'
    extra = f"extra = {{ grammar = '''{grammar}''' }}\n"
    async with Team.open(pool(extra), planner="single:writer") as team:
        trace = await team.ask("Name one city.", seed="0")
    assert trace.answer is not None
    assert "think" not in trace.answer
    assert trace.answer.endswith(".")
    assert trace.spans[0].reply.reasoning.strip().startswith("I ")


async def test_truncated_real_answer_is_marked_and_counted(pool) -> None:
    async with Team.open(pool(most=5), planner="single:writer", budget=Budget(calls=1)) as team:
        trace = await team.ask("Tell a long story.", seed="0")
    assert trace.answer
    assert trace.spans[0].reply.finish == "length"
    assert trace.spans[0].usage.output_tokens == 5
