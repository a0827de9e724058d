"""A worker without a price: its plan is not offered as free."""

from __future__ import annotations

from typing import Any

from approving_team import PLAN, TEXT_PLANS, is_planning
from chat_model import Say, chat_model
from podium.types import Price
from podium.workers.pool import Pool
from running_server import Serve


def test_a_plan_whose_worker_has_no_price_is_not_offered_as_free(serve: Serve, opened_once) -> None:
    def answer(body: dict[str, Any]) -> Say:
        return Say(PLAN if is_planning(body) else "42")

    with chat_model(answer) as model:
        pool = Pool([model.worker(), model.worker("lark", price=Price())])
        url = serve(pool, conductor=TEXT_PLANS)
        page = opened_once.go(url, "chat", "#message")
        page.check("text=approve before paying")
        page.fill("#message", "What is 6 x 7?")
        page.keyboard.press("Enter")
        page.wait_for_selector(".approval .first:has-text('and more')")
        assert "since a worker has no price" in page.inner_text(".approval")
        assert "at most" not in page.inner_text(".approval")
