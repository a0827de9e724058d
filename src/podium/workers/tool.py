"""What the built-in tools `vote`, `calculator` and `code` share: which texts they work on, and how they reply.

A tool runs no model and costs nothing. A tool without a result replies with a sentence that says so. Votes do not count
that sentence as an answer.
"""

from __future__ import annotations

from podium.errors import WorkerError
from podium.trace import Reply
from podium.types import Usage
from podium.workers.base import Request
from podium.workers.view import WorkerView

_NO_RESULT = "There is no result: "


def responses(view: WorkerView) -> list[str]:
    """The final response of the previous round, if the tool sees it, and then the responses of steps that it sees."""
    previous = [] if view.previous is None else [view.previous]
    return previous + [shown.response for shown in view.earlier]


def searched_texts(request: Request) -> list[str]:
    """The texts that a tool searches, in order: its subtask, then the responses that it sees, the latest first.

    Sentences of tools without a result are left out. The question is searched only if the step reads no response.
    Otherwise the step is about the responses.
    """
    view = request.view
    shown = responses(view)
    results = [text for text in reversed(shown) if is_result(text)]
    question = [] if shown or request.missing_responses else [view.question]
    return [view.subtask, *results, *question]


def free_reply(text: str) -> Reply:
    """A reply that costs neither dollars nor time."""
    return Reply(text, Usage(), latency_s=0.0)


def as_final_answer(answer: str) -> str:
    """The answer in a form that `final_answer` finds."""
    return f"<answer>{answer}</answer>" if "\n" in answer else f"Answer: {answer}"


def no_result(reason: str) -> str:
    """The sentence by which a tool says that it has no result, and why."""
    return f"{_NO_RESULT}{reason}."


def is_result(text: str) -> bool:
    """Whether a response is a result, and not the sentence of `no_result`."""
    return not text.startswith(_NO_RESULT)


def no_input_reply(request: Request, sentence: str) -> Reply:
    """The reply of a tool that finds nothing to work on: `sentence`.

    Raises:
        WorkerError: of kind "missing" if a step that the tool reads gave no response.
    """
    if silent := len(request.missing_responses):
        raise WorkerError(
            f"It has nothing to work on: of the steps that it reads, {silent} gave no response.",
            kind="missing",
        )
    return free_reply(sentence)
