"""A team in a pool file, at every verb that opens one."""

import json
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


def test_what_a_team_did_is_drawn_under_its_step(podium):
    asked = podium("ask", "Add 2 and 3.", "--pool", "outer.toml", "--planner", "single:team")
    assert asked.status == 0
    lines = [line.strip() for line in asked.out.splitlines()]
    start = lines.index("led by constant:plan.txt:")
    assert [line.split(":")[0] for line in lines[start + 1 : start + 4]] == ["0 ada", "1 ada", "2 bob"]
    assert all(
        "token" in line and "$" in line for line in lines[start + 1 : start + 4] if "skipped" not in line
    )


def test_a_team_is_in_the_trace_and_in_its_cost(podium):
    asked = podium("ask", "Add 2 and 3.", "--pool", "outer.toml", "--planner", "single:team", "--json")
    (round_,) = json.loads(asked.out)["rounds"]
    (span,) = round_["spans"]
    inner = span["reply"]["nested"]["rounds"][0]["spans"]
    assert [step["worker"] for step in inner] == ["ada", "ada", "bob"]
    assert span["spent"]["cost_usd"] == sum(step["spent"]["cost_usd"] for step in inner) > 0


def test_a_team_is_listed_and_checked(podium):
    assert "Adds and checks." in podium("pool", "list", "--pool", "outer.toml").out
    Path("plan.txt").write_text("model_id = [0]\nsubtasks = ['Add.']\naccess_list = [[]]\n")
    checked = podium("pool", "check", "--pool", "outer.toml", "--json")
    workers = [found for found in json.loads(checked.out) if found["role"] == "worker"]
    assert [(found["worker"], found["answered"]) for found in workers] == [("team", True)]


def test_a_circle_of_pools_is_refused_in_one_sentence(podium):
    Path("outer.toml").write_text(OUTER.replace('"pool.toml"', '"outer.toml"'))
    asked = podium("ask", "Q?", "--pool", "outer.toml", "--planner", "single:team")
    assert asked.status == 2
    assert "outer.toml, line 6: Worker 'team': the pool contains itself: " in asked.err
