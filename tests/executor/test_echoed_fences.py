"""Fences that a worker copies into its answer are in no answer, whole or streamed."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podium.executor import Execution, StepText
from podium.text.fencing import FenceFilter, remove_fences
from podium.trace import Reply
from podium.types import Profile, Usage
from podium.workers.base import Request, Worker
from podium.workflow import Access, Step, Workflow

MARK = "56f769c82cfeb65e"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param("It is 30.\n<<<end MARK>>>", "It is 30.\n", id="its end"),
        pytest.param(
            "<<<answer MARK>>>>\nIt is 30.", "\nIt is 30.", id="a label of its own, one bracket too many"
        ),
        pytest.param(
            "<<<end MARK>>\nSo 30.\n<<<end MARK", "\nSo 30.\n", id="one bracket too few, and cut off"
        ),
        pytest.param("30.\n<<<end MARK>>>\n\nThe next block", "30.\n", id="what it goes on to write"),
        pytest.param("30.\n<<<your subtask MARK>>>\nAdd 2.", "30.\n", id="a subtask that it invents"),
        pytest.param("30.\n<<<step 1 response MARK>>>\n32", "30.\n", id="a step that it invents"),
        pytest.param("So:\n<<<answer MARK>>>\n30", "So:\n\n30", id="the answer in a block"),
        pytest.param("<<<<end MARK>>>", "<", id="a bracket before it"),
        pytest.param("\n<<<end MARK>>>\n", "\n<<<end MARK>>>\n", id="fences alone"),
        pytest.param("<<<end 0123456789abcdef>>>", "<<<end 0123456789abcdef>>>", id="another mark"),
        pytest.param("The mark is MARK.", "The mark is MARK.", id="no fence"),
        pytest.param("std::cout << 1 <<", "std::cout << 1 <<", id="other brackets"),
    ],
)
def test_a_fence_is_removed_and_nothing_else(written: str, read: str) -> None:
    assert remove_fences(written.replace("MARK", MARK), MARK) == read.replace("MARK", MARK)


pieces = st.lists(
    st.sampled_from(["<", "<<<", ">", ">>>", MARK, MARK[:7], MARK[7:], "end ", "a", "\n", "x" * 61])
)


@given(pieces)
@example(["<", "<", "<", "\n", MARK, "<"])
@example(["<<<end", "\n", MARK, ">>", ">>"])
def test_streamed_text_is_a_prefix_of_the_filtered_answer(written: list[str]) -> None:
    fences, whole = FenceFilter(MARK), remove_fences("".join(written), MARK)
    sent = "".join(fences.add(piece) for piece in written)
    assert whole.startswith(sent)
    assert len(whole) - len(sent) <= 100 or not sent, "only what may begin a fence waits"
    end = "".join([sent, fences.add("\n.")])
    assert end == remove_fences("".join([*written, "\n."]), MARK)


class Echoing(Worker):
    """A worker that ends its answer with the last fence that it was sent, as small models do, and streams by the
    character."""

    def __init__(self) -> None:
        self.profile = Profile(name="a")

    async def answer(self, request: Request) -> Reply:
        fences = [line for line in request.messages[-1].content.splitlines() if line.startswith("<<<")]
        text = f"It is 4.\n{fences[-1]}"
        for piece in text if request.on_text is not None else ():
            request.on_text(piece)
        return Reply(text, Usage(input_tokens=2, output_tokens=1))


async def test_no_fence_is_in_an_answer_or_its_stream(make_context):
    heard = []
    context = make_context([Echoing()], on_event=heard.append, streams=True)
    execution = Execution(context, Workflow((Step(0, "Add."), Step(0, "Check.", Access((0,))))))
    await execution.run()
    assert [span.response for span in execution.spans] == ["It is 4.\n", "It is 4.\n"]
    assert execution.spans[1].messages[-1].content.count("<<<end") == 4
    assert "".join(event.text for event in heard if isinstance(event, StepText)) == "It is 4.\n"
