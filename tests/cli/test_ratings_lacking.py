"""What the verbs say of a pool that a Conductor that reads ratings cannot do well with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiny_policy import write_policy

WORKER = '[[worker]]\nname = "{}"\nkind = "scripted"\nreplies = {{ "" = "Answer: 4" }}\nprice = {{ output = 1.0 }}\n'
VOTE = '[[worker]]\nname = "vote"\nkind = "vote"\n'


def pool(*names: str) -> None:
    """Workers by name, of whom ada and bob are rated."""
    tables = [VOTE if name == "vote" else WORKER.format(name) for name in names]
    Path("pool.toml").write_text('ratings = "ratings.json"\n' + "\n".join(tables))
    tally = {"": {"right": 5, "questions": 10, "cost_usd": 0.01}}
    ratings = {"format": 1, "clusters": {}, "workers": {"ada": tally, "bob": tally}}
    Path("ratings.json").write_text(json.dumps(ratings))


@pytest.fixture
def policy() -> str:
    """A policy that reads ratings, and asks each worker of a rated pool of three, whose first is the vote."""
    plan = (
        'model_id = [1, 2, 0]\nsubtasks = ["Answer.", "Answer.", "Vote."]\naccess_list = [[], [], ["all"]]\n'
    )
    said = {"prompt": {"style": "brief"}, "conducts": {"questions": "recorded questions", "ratings": True}}
    return str(write_policy(Path("policy"), plan, podium=said))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (
            ("vote", "cy"),
            "cannot lead this pool: it reads the ratings of workers, and this pool has none; podium rate",
        ),
        (
            ("vote", "ada", "cy", "dee"),
            "this pool has none of cy, dee; podium rate",
        ),
        (
            ("ada", "bob"),
            "its plans end with a worker named 'vote'; "
            'add a [[worker]] with name = "vote" and kind = "vote"',
        ),
        (
            ("ada", "cy"),
            "its plans end with a worker named 'vote'; "
            'add a [[worker]] with name = "vote" and kind = "vote"',
        ),
        (("ada", "bob", "vote"), None),
    ],
)
def test_conductor_names_the_ratings_that_its_pool_lacks(
    podium: Callable[..., Any], policy: str, names: tuple[str, ...], said: str | None
) -> None:
    pool(*names)
    shown = podium("plan", "What is 2 + 2?", "--pool", "pool.toml", "--conductor", policy, "--seed", "1")
    if said is None:
        assert "cannot lead this pool" not in shown.err
    else:
        assert shown.status == 2
        assert shown.err.count(said) == 1


def test_plan_file_numbers_workers_in_pool_file_order(podium: Callable[..., Any]) -> None:
    pool("ada", "bob", "vote")
    Path("plan.txt").write_text(
        'model_id = [0, 1, 2]\nsubtasks = ["Answer.", "Answer.", "Vote."]\naccess_list = [[], [], ["all"]]\n'
    )
    given = ("ask", "What is 2 + 2?", "--pool", "pool.toml", "--planner", "constant:plan.txt", "--json")
    spans = json.loads(podium(*given).out)["rounds"][0]["spans"]
    assert [span["worker"] for span in spans] == ["ada", "bob", "vote"]


def test_the_team_is_the_same_wherever_the_vote_stands_in_a_rated_pool(
    podium: Callable[..., Any], policy: str
) -> None:
    texts, teams = [], []
    for names in (("vote", "ada", "bob"), ("ada", "bob", "vote")):
        pool(*names)
        given = (
            "plan",
            "What is 2 + 2?",
            "--pool",
            "pool.toml",
            "--conductor",
            policy,
            "--json",
            "--seed",
            "1",
        )
        shown = json.loads(podium(*given).out)
        steps = shown["workflow"]["steps"]
        numbers = [step["worker"] for step in steps]
        teams.append([{**step, "worker": names[step["worker"]]} for step in steps])
        texts.append(shown["text"].replace(f"model_id = {numbers}", "model_id = []"))
    assert teams[0] == teams[1]
    assert [step["worker"] for step in teams[0]] == ["ada", "bob", "vote"]
    assert "model_id = []\n" in texts[1], "the numbers of the plan are the file's"
    assert texts[0].strip() == texts[1].strip()
