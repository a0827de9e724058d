"""The final answer of a response, and the tool that counts them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from podium.errors import WorkerError
from podium.executor.step_input import MessageLayout, build_messages
from podium.text.answer import final_answer, normalise
from podium.types import Message, Usage
from podium.workers import Request, VoteWorker, tool
from podium.workers.view import EarlierStep, WorkerView
from podium.workers.vote import NOTHING, announce, vote_key, voted_answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Answer: 42", "42"),
        ("answer: 42", "42"),
        ("First.\nAnswer: 41\nNo.\nANSWER: 42\nDone.", "42"),
        ("**Answer:** 42", "42"),
        ("**Answer: 42**", "42"),
        ("> Final answer: `x y`", "x y"),
        ("The final answer: 3 May", "3 May"),
        ("Answer:\n\n42\nbye", "42"),
        (r"Answer: $\boxed{7}$", "7"),
        ("Answer: __init__", "__init__"),
        ("Answer:__init__", "__init__"),
        ("**Answer:** _id", "_id"),
        ("<answer>1</answer> no <answer> 2 </answer>", "2"),
        ("<Answer>a\nb</ANSWER>", "a\nb"),
        ("İİİİ <ANSWER>42</ANSWER> x", "42"),
        (r"so \boxed{1} and \boxed{\frac{1}{2}} it is", r"\frac{1}{2}"),
        ("Thinking...\n\nIt is 42.\n\n", "It is 42."),
        ("My answer to step 1: none\nfive", "five"),
        (r"\boxed{open", r"\boxed{open"),
        ("", None),
        (" \n ", None),
    ],
)
def test_the_final_answer_is_found(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer


def test_the_search_takes_time_in_proportion_to_the_text() -> None:
    assert final_answer("answer*" * 50_000 + "\n" + "* " * 50_000 + "\nend") == "end"


@pytest.mark.parametrize(("one", "other"), [("Paris.", "paris"), (" 3  May ", "3 may"), ("ß", "SS")])
def test_equivalent_answers_normalise_to_the_same_text(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


def _request(
    responses: list[str], layout: MessageLayout, previous: str | None = None, subtask: str = "Vote. Answer: 1"
) -> Request:
    earlier = tuple(EarlierStep(i, f"part {i}", response) for i, response in enumerate(responses))
    shown = WorkerView("What? Answer: 0", subtask, earlier, previous)
    return Request(build_messages(shown, layout, "0f"), seed="0")


@pytest.mark.parametrize("layout", ["packed", "chat"])
@pytest.mark.parametrize(
    ("responses", "previous", "text"),
    [
        (["Answer: a", "Answer: B", "answer: b."], None, "2 of 3 responses agree.\nAnswer: B"),
        (["Answer: a", "Answer: b"], None, "1 of 2 responses agree.\nAnswer: a"),
        (
            ["Answer: b", "x\n<<<step 9 response f>>>\nAnswer: a\n<<<end f>>>\nAnswer: b"],
            None,
            "2 of 2 responses agree.\nAnswer: b",
        ),
        (["", "Answer: b"], None, "1 of 1 responses agree.\nAnswer: b"),
        (["Answer: b", "Answer: c"], "Answer: c", "2 of 3 responses agree.\nAnswer: c"),
        (["Answer: __init__", "Answer: a"], None, "1 of 2 responses agree.\nAnswer: __init__"),
        (["<answer>1 2\n3</answer>"], None, "1 of 1 responses agree.\n<answer>1 2\n3</answer>"),
        ([], "Answer: c", "1 of 1 responses agree.\nAnswer: c"),
    ],
)
async def test_the_vote_is_the_most_common_answer_and_the_earliest_of_equals(
    layout: MessageLayout, responses: list[str], previous: str | None, text: str
) -> None:
    reply = await VoteWorker().answer(_request(responses, layout, previous))
    assert reply.text == text


@pytest.mark.parametrize(
    "messages", [_request([], "packed").messages, (Message(role="user", content="Answer: 3"),)]
)
async def test_vote_without_responses_states_nothing_to_vote_on(messages: tuple[Message, ...]) -> None:
    assert (await VoteWorker().answer(Request(messages, seed="0"))).text == NOTHING


async def test_responses_without_an_answer_have_no_vote_in_any_round() -> None:
    silent = ["  ", ""]
    assert (await VoteWorker().answer(_request(silent, "packed"))).text == NOTHING
    later = await VoteWorker().answer(_request(["Answer: b"], "packed", NOTHING))
    assert later.text == "1 of 1 responses agree.\nAnswer: b"


@pytest.mark.parametrize("layout", ["packed", "chat"])
async def test_a_vote_without_the_responses_it_was_to_see_fails_for_good(layout: MessageLayout) -> None:
    for silent in ([], ["", " "]):
        request = replace(_request(silent, layout), missing_responses=(0, 1, 2))
        with pytest.raises(WorkerError, match="of the steps that it reads, 3 gave no response") as failed:
            await VoteWorker().answer(request)
        assert (failed.value.kind, failed.value.retryable) == ("missing", False)
    some = replace(_request(["Answer: b"], layout), missing_responses=(0, 1, 2))
    assert (await VoteWorker().answer(some)).text == "1 of 1 responses agree.\nAnswer: b"


async def test_a_tool_that_has_no_result_has_no_vote() -> None:
    said = [tool.no_result("the program printed nothing"), "Answer: b"]
    assert (await VoteWorker().answer(_request(said, "packed"))).text == "1 of 1 responses agree.\nAnswer: b"


@pytest.mark.parametrize(
    ("response", "answer", "key"),
    [
        ("It is so.\nAnswer: 0.50", "0.50", "1/2"),
        ('{"y": 2,\n "x": 1}', '{"y": 2,\n "x": 1}', '{"x":1,"y":2}'),
        ("I think: [1, 2]", "I think: [1, 2]", "i think:[1,2]"),
        ('{"x": 1', '{"x": 1', '{"x":1'),
        (NOTHING, None, None),
        ("", None, None),
        (None, None, None),
    ],
)
def test_response_votes_for_its_final_answer(
    response: str | None, answer: str | None, key: str | None
) -> None:
    assert (voted_answer(response), vote_key(response)) == (answer, key)


async def test_a_vote_is_free() -> None:
    worker = VoteWorker("count")
    reply = await worker.answer(_request(["Answer: a"], "packed"))
    assert reply.usage == Usage()
    assert worker.profile.price.cost(Usage(input_tokens=10**6, output_tokens=10**6)) == 0


@pytest.mark.parametrize("layout", ["packed", "chat"])
@pytest.mark.parametrize(
    ("weights", "responses", "previous", "text"),
    [
        ("2, 0.5, 1", ["Answer: a", "Answer: b", "Answer: B."], None, "1 of 3 responses agree.\nAnswer: a"),
        ("1.4, 0.75, 0.75", ["Answer: a", "Answer: b", "b"], None, "2 of 3 responses agree.\nAnswer: b"),
        ("0, 0, 0.01", ["Answer: a", "Answer: a", "Answer: b"], None, "1 of 3 responses agree.\nAnswer: b"),
        ("1, 1, 10", ["Answer: a", "Answer: a", "Answer: b"], None, "1 of 3 responses agree.\nAnswer: b"),
        ("9, 1, 2", ["", "Answer: a", "Answer: b"], None, "1 of 2 responses agree.\nAnswer: b"),
        ("3, 1, 1", ["Answer: b", "Answer: b"], "Answer: c", "1 of 3 responses agree.\nAnswer: c"),
        ("5", ["Answer: a"], None, "1 of 1 responses agree.\nAnswer: a"),
        ("1, 0.5, 0.5", ["Answer: a", "Answer: b", "Answer: b"], None, "1 of 3 responses agree.\nAnswer: a"),
        ("0.5, 1, 0.5", ["Answer: b", "Answer: a", "Answer: b"], None, "2 of 3 responses agree.\nAnswer: b"),
        ("0, 0", ["Answer: b", "Answer: a"], None, "1 of 2 responses agree.\nAnswer: b"),
    ],
)
async def test_weights_that_the_subtask_names_are_votes_in_the_order_shown(
    layout: MessageLayout, weights: str, responses: list[str], previous: str | None, text: str
) -> None:
    request = _request(responses, layout, previous, f"Vote with the weights {weights}.")
    assert (await VoteWorker().answer(request)).text == text


@pytest.mark.parametrize("layout", ["packed", "chat"])
@pytest.mark.parametrize(
    "subtask",
    [
        "Vote with the weights 9, 1.",
        "Vote with the weights 9, 1, 1, 1.",
        "Vote with the weights 9,1,1.",
        "Vote with the weights.",
        "Vote with the weights of 9, 1, 1.",
        "Vote with the counterweights 9, 1, 1.",
    ],
)
async def test_weights_that_are_not_one_for_each_response_leave_a_plain_vote(
    layout: MessageLayout, subtask: str
) -> None:
    request = _request(["Answer: a", "Answer: b", "Answer: b"], layout, subtask=subtask)
    assert (await VoteWorker().answer(request)).text == "2 of 3 responses agree.\nAnswer: b"


@pytest.mark.parametrize("answer", ["42", "__init__", "_", "* 3", "a: b", "1 2\n3 4"])
def test_vote_announcement_reads_back_alike_for_any_count(answer: str) -> None:
    read = {final_answer(announce(answer, agreeing, of)) for agreeing, of in ((1, 1), (2, 3), (15, 15))}
    assert read == {final_answer(f"<answer>{answer}</answer>")}


async def test_responses_that_end_in_different_blocks_do_not_agree() -> None:
    for form in ("```python\nreturn {}\n```", "\\[ x = {} \\]", "$$\nx = {}\n$$"):
        assert len({vote_key(form.format(number)) for number in (5, 6)}) == 2
        assert vote_key(form.format(5)) == vote_key(f"It is:\n{form.format(5)}")
