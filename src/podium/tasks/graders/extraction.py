"""Where the answer stands in a response. What is not found there is no answer.

- `final`: the last `Answer: ...` line or `<answer>...</answer>`, whichever begins later; else the last `\\boxed{...}`;
  else the last line that is not empty. What most questions of ours ask for.
- `stated`: the latest of boxes, tags, a JSON object's "answer" and "final answer is"; see `statement`. For mathematics.
- `formula`: the same, and in it the last formula between marks of LaTeX; numbers in prose are none.
- `tag`: inside the last `<answer>...</answer>`.
- `boxed`: inside the last `\\boxed{...}`.
- `field`: the value of the last `"answer": ...` of a JSON object.
- `hashes`: what the last `####` is followed by on its line, as in GSM8K.
- `line`: the last line that is not empty.
- `code`: inside the last fenced block (```), else all of the response.
- `whole`: all of the response.
"""

from __future__ import annotations

from typing import Literal

from podium.tasks.graders.boxes import boxed
from podium.tasks.graders.statement import formula, member, stated
from podium.workers.answer import final_answer, last_block, last_line, tagged

Place = Literal["final", "stated", "formula", "tag", "boxed", "field", "hashes", "line", "code", "whole"]


def find(response: str, place: Place) -> str | None:
    """The answer at a place, without outer space; None: there is none, or it is empty."""
    found: str | None
    match place:
        case "final":
            found = final_answer(response)
        case "stated":
            found = stated(response)
        case "formula":
            found = formula(response)
        case "tag":
            found = tagged(response)
        case "boxed":
            found = boxed(response)
        case "field":
            found = member(response)
        case "hashes":
            found = hashed(response)
        case "line":
            found = last_line(response)
        case "code":
            found = fenced(response)
        case "whole":
            found = response
    found = (found or "").strip()
    return found or None


def hashed(response: str) -> str | None:
    """What stands behind the last `####`, to the end of the line."""
    _, mark, said = response.rpartition("####")
    return said.removeprefix(":").partition("\n")[0] if mark else None


def fenced(response: str) -> str:
    """The inside of the last fenced block; all of a response that has none."""
    block = last_block(response)
    return response if block is None else block
