"""A team in a team file, at every verb that opens one."""

from pathlib import Path

import pytest

OUTER = """
[[worker]]
name = "team"
kind = "podium"
profile = "Adds and checks."
pool = "pool.toml"
plan.planner = "constant:plan.txt"
"""


@pytest.fixture(autouse=True)
def _outer(_own_place: None) -> None:
    Path("outer.toml").write_text(OUTER)


def test_steps_of_a_nested_team_are_drawn_below_its_step(podium):
    asked = podium("ask", "Add 2 and 3.", "--pool", "outer.toml", "--planner", "single:team")
    assert asked.status == 0
    lines = [line.strip() for line in asked.out.splitlines()]
    start = lines.index("led by constant:plan.txt:")
    assert [line.split(":")[0] for line in lines[start + 1 : start + 4]] == ["0 ada", "1 ada", "2 bob"]
    assert all(
        "token" in line and "$" in line for line in lines[start + 1 : start + 4] if "skipped" not in line
    )
