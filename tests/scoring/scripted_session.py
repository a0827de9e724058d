"""Sessions over scripted workers: three tasks, and plans whose answers and costs can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.calls import CallState
from podium.config import build
from podium.scoring import ScoringSession, ScoringSettings
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.trace import Trace
from podium.types import Price, Profile, Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker

RIGHT = 'model_id = [0]\nsubtasks = ["Multiply."]\naccess_list = [[]]'
WRONG = 'model_id = [1]\nsubtasks = ["Guess."]\naccess_list = [[]]'
CHECKED = 'model_id = [1, 0]\nsubtasks = ["Guess.", "Multiply."]\naccess_list = [[], ["all"]]'
BROKEN = 'model_id = [2]\nsubtasks = ["Multiply."]\naccess_list = [[]]'
ACCEPT = "model_id = []\nsubtasks = []\naccess_list = []"
UNREADABLE = "I would ask the first worker."

TASKS = {
    f"sums/{number}": Task(
        f"sums/{number}", Question(text=f"What is {number} times 7?"), str(7 * number), Exact()
    )
    for number in (6, 7, 8)
}


def make_session(
    tasks: Mapping[str, Task] = TASKS, *, kept: list[Trace] | None = None, delay: float = 0.0, **settings: Any
) -> ScoringSession:
    """A session by settings as a file has them. Only the answer to sums/6 is 42, which ada says; down always fails.

    A token costs a dollar: a reply of ada 3, one of bob 1.

    Args:
        kept: gets the traces that the session keeps.
        delay: seconds that each reply takes.
    """
    replies = {"ada": {"": "Answer: 42"}, "bob": {"": "41"}, "down": {}}
    workers = [
        ScriptedWorker(name, says, delay=delay, profile=Profile(name=name, price=Price(output=1e6)))
        for name, says in replies.items()
    ]
    traces: list[Trace] = [] if kept is None else kept
    return ScoringSession(
        build(settings, ScoringSettings), tasks, Pool(workers), CallState(), on_trace=traces.append
    )
