"""The tool that computes: where it looks, what it says, and when it has nothing to work on."""

from __future__ import annotations

import pytest

from podium.errors import WorkerError
from podium.executor.step_input import MessageLayout, build_messages
from podium.types import Usage
from podium.workers import Request, tool
from podium.workers.calculator import NO_EXPRESSION, CalculatorWorker
from podium.workers.view import EarlierStep, WorkerView

STYLES: tuple[MessageLayout, ...] = ("packed", "chat")


def request(
    subtask: str = "Compute it.",
    responses: tuple[str, ...] = (),
    *,
    layout: MessageLayout = "packed",
    question: str = "What is it?",
    missing: tuple[int, ...] = (),
) -> Request:
    earlier = tuple(EarlierStep(i, f"part {i}", response) for i, response in enumerate(responses))
    shown = WorkerView(question, subtask, earlier)
    return Request(build_messages(shown, layout, "0f"), seed="0", missing_responses=missing)


async def said(asked: Request) -> str:
    reply = await CalculatorWorker().answer(asked)
    assert (reply.usage, reply.latency_s) == (Usage(), 0.0)
    return reply.text


@pytest.mark.parametrize("layout", STYLES)
@pytest.mark.parametrize(
    ("subtask", "responses", "text"),
    [
        ("Compute (3 + 4) * 5.", ("Answer: 1 + 1",), "(3 + 4) * 5 = 35\nAnswer: 35"),
        ("Compute it.", ("Answer: 1 + 1", "By 9 * 9:\nAnswer: 2 * 3"), "2 * 3 = 6\nAnswer: 6"),
        ("Compute it.", ("Answer: 1 + 1", "Answer: seven"), "1 + 1 = 2\nAnswer: 2"),
        ("3 * 4, then 1/0, then 5 * 6", (), None),
        ("1/0", (), "There is no result: 1/0 has no value here, for it divides by zero."),
        ("9**9**9", (), "There is no result: 9**9**9 has no value here, for it is too large."),
        ("2/3 to 4 decimal places", (), "2/3 = 0.6667\nAnswer: 0.6667"),
        ("(0xf << 2) - 0x3e", (), "(0xf << 2) - 0x3e = -0x2\nAnswer: -0x2"),
        ("0x10 / 3", (), "0x10 / 3 = 16/3\nAnswer: 16/3"),
        ("Compute it.", ("Answer: 42",), NO_EXPRESSION),
        ("Compute it.", (tool.no_result("1/0 has no value here"),), NO_EXPRESSION),
    ],
)
async def test_calculator_computes_its_subtask_or_else_the_latest_answer(
    layout: MessageLayout, subtask: str, responses: tuple[str, ...], text: str | None
) -> None:
    several = "3 * 4 = 12\n5 * 6 = 30\n1/0 has no value here, for it divides by zero.\nAnswer: 30"
    assert await said(request(subtask, responses, layout=layout)) == (several if text is None else text)


async def test_calculator_computes_the_question_when_no_responses_are_visible() -> None:
    assert await said(request(question="What is 6 * 7?")) == "6 * 7 = 42\nAnswer: 42"
    for unhelpful in ("I do not know.", tool.no_result("1/0 has no value here")):
        assert await said(request(responses=(unhelpful,), question="What is 6 * 7?")) == NO_EXPRESSION


async def test_without_the_responses_it_was_to_see_it_fails_for_good() -> None:
    with pytest.raises(WorkerError) as failed:
        await said(request(question="What is 6 * 7?", missing=(0, 1)))
    assert (failed.value.kind, failed.value.retryable) == ("missing", False)
    assert await said(request("Compute 1 + 1.", missing=(0, 1))) == "1 + 1 = 2\nAnswer: 2"
