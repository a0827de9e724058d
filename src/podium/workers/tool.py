"""What tools of ours share, which run no model and cost nothing: what they work on, and how they say what came of it.

`vote`, `calculator` and `code` are such tools. A sentence that says that there is no result is no answer: votes pass it
over.
"""

from __future__ import annotations

from podium.errors import WorkerError
from podium.types import Usage
from podium.workers.base import Reply, Request
from podium.workers.view import View

_NO_RESULT = "There is no result: "


def responses(view: View) -> list[str]:
    """What a tool is shown, in order; the final response of the round before comes first."""
    previous = [] if view.previous is None else [view.previous]
    return previous + [shown.response for shown in view.earlier]


def material(request: Request) -> list[str]:
    """Where a tool looks for what it is to work on: its subtask, then the responses that it is shown, the latest first.

    Where it was to see none, the question. What says that there is no result holds nothing to work on, and yet it was
    to be seen: the question is about something else then.
    """
    view = request.view
    given = responses(view)
    shown = [text for text in reversed(given) if is_result(text)]
    asked = [] if given or request.missing else [view.question]
    return [view.subtask, *shown, *asked]


def free(text: str) -> Reply:
    """A reply that costs neither dollars nor time."""
    return Reply(text, Usage(), latency_s=0.0)


def stated(answer: str) -> str:
    """An answer in the words by which it is found again."""
    return f"<answer>{answer}</answer>" if "\n" in answer else f"Answer: {answer}"


def no_result(reason: str) -> str:
    """The sentence of a tool that has no result, and why."""
    return f"{_NO_RESULT}{reason}."


def is_result(text: str) -> bool:
    """Whether a response is none of these sentences."""
    return not text.startswith(_NO_RESULT)


def nothing(request: Request, sentence: str) -> Reply:
    """The reply of a tool that finds nothing to work on: `sentence`, where that is the plan's doing.

    Raises:
        WorkerError: "missing": steps that it was to see gave no response.
    """
    if request.missing:
        raise WorkerError(
            f"It has nothing to work on: of the steps that it was to see, {len(request.missing)} gave no response.",
            kind="missing",
        )
    return free(sentence)
