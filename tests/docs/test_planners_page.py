"""docs/planners.md lists every planner that users can name, and says of each whether a recording can serve it."""

import re
from pathlib import Path

from podium.baselines import VOTE, known_baselines

PAGE = Path(__file__).parents[2] / "docs" / "planners.md"
ROW = re.compile(
    r"^\| `(?P<form>[^`]+)` \|.*\|(?P<needs>[^|]*)\| (?P<recording>yes|no) \|[^|]*\|$", re.MULTILINE
)


def test_the_page_lists_each_planner_with_what_the_registry_says_of_it():
    rows = {row["form"]: row for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}
    assert sorted(rows) == sorted(baseline.form for baseline in known_baselines().values())
    for baseline in known_baselines().values():
        row = rows[baseline.form]
        assert (row["recording"] == "yes") == baseline.on_recordings, baseline.form
        assert (VOTE in row["needs"]) == (VOTE in baseline.needs("")), baseline.form
        assert ("scored answers" in row["needs"]) == baseline.learns, baseline.form


def test_the_page_names_the_planners_that_clients_of_a_server_may_name():
    (sentence,) = re.findall(r"Clients of a server may name only ([^;]+);", PAGE.read_text(encoding="utf-8"))
    assert re.findall("`([^`]+)`", sentence) == [
        one.name for one in known_baselines().values() if one.for_clients
    ]
