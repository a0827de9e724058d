"""A team over a real endpoint whose plan the test decides; the same model conducts and works."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chat_model import ChatModel, Say, chat_model
from podium.workers.pool import Pool
from podium.workflow import Access, Step, Workflow, render

PLAN = render(Workflow((Step(0, "Multiply."), Step(1, "Check it.", Access(all=True)))))

TEXT_PLANS = {"plans": "text"}
"""The table [conductor] of a team whose endpoint knows no schema."""


@contextmanager
def approving_team(plan: str = PLAN, answer: str = "42.") -> Iterator[tuple[ChatModel, Pool]]:
    """The endpoint, and a pool of wren, who conducts, and lark."""

    def say(body: dict[str, Any]) -> Say:
        return Say(plan if is_planning(body) else answer)

    with chat_model(say) as model:
        yield model, Pool([model.worker(), model.worker("lark")])


def is_planning(body: dict[str, Any]) -> bool:
    """Whether a request asks for a plan."""
    return "access_list" in json.dumps(body["messages"])
