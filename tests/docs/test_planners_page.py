"""docs/planners.md lists every planner of Podium's own, and says of each whether a recording can serve it."""

import re
from pathlib import Path

from planner_page import check_page
from podium.planners.registry import own_baselines

PAGE = Path(__file__).parents[2] / "docs" / "planners.md"


def test_planners_page_lists_each_planner_as_in_the_registry():
    check_page(PAGE, own_baselines().values())


def test_the_page_names_the_planners_that_clients_of_a_server_may_name():
    (sentence,) = re.findall(r"Clients of a server may name only ([^;]+);", PAGE.read_text(encoding="utf-8"))
    assert re.findall("`([^`]+)`", sentence) == [
        one.name for one in own_baselines().values() if one.for_clients
    ]
