"""Random teams and committees are valid, and each kind of question has its own habits of whom to ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from random import Random

from podium.baselines.plans import VOTE
from podium.types import Profile
from podium.warmstart.recorded_examples import MOST_STEPS, random_committee, random_team
from podium.workflow import check, parse, render

PROFILES = tuple(Profile(name=name) for name in ("ada", "bob", "vote"))
POOL = tuple(Profile(name=name) for name in ("ada", "bob", "cy", VOTE, "dee", "eve"))


def test_committees_are_valid_of_every_size_and_end_with_a_vote() -> None:
    rng = Random("committees")
    drawn = [random_committee(rng, PROFILES) for _ in range(400)]
    for workflow in drawn:
        assert check(workflow, workers=3, max_steps=MOST_STEPS) is None
        assert parse(render(workflow), workers=3, max_steps=MOST_STEPS) == workflow
        assert (workflow.steps[-1].worker == 2) == (len(workflow.steps) > 1)
        assert all(step.worker != 2 for step in workflow.steps[:-1])
    assert {len(workflow.steps) for workflow in drawn} == {1, 3, 4, 6}
    alone = [random_committee(rng, PROFILES[:2]) for _ in range(40)]
    assert {len(workflow.steps) for workflow in alone} == {1}


def test_a_team_is_at_times_the_whole_pool_and_else_some_of_it_with_the_vote() -> None:
    rng = Random("teams")
    teams = [random_team(rng, POOL) for _ in range(400)]
    others = [team for team in teams if team != POOL]
    assert 240 < len(others) < 320
    for team in others:
        assert len(set(team)) == len(team)
        assert set(team) <= set(POOL)
        assert Profile(name=VOTE) in team
        assert 3 <= len(team) - 1 <= 5
    assert {profile.name for team in others for profile in team} == {profile.name for profile in POOL}
    assert len({len(team) for team in others}) == 3


def test_a_team_has_no_vote_where_the_pool_has_none_and_a_small_pool_stays_whole() -> None:
    rng = Random("teams")
    workers = tuple(profile for profile in POOL if profile.name != VOTE)
    teams = {random_team(rng, workers) for _ in range(200)}
    assert {len(team) for team in teams} == {3, 4, 5}
    assert all(Profile(name=VOTE) not in team for team in teams)
    assert {random_team(rng, PROFILES) for _ in range(50)} == {PROFILES}


def shares_of(cluster: str, seed: str, profiles: Sequence[Profile] = POOL) -> dict[str | int, float]:
    """How often committees for a kind begin with each worker, and have each number of steps."""
    rng = Random(seed)
    drawn = [random_committee(rng, profiles, cluster) for _ in range(1500)]
    heads = Counter[str | int](profiles[workflow.steps[0].worker].name for workflow in drawn)
    heads.update(len(workflow.steps) for workflow in drawn)
    return {what: count / len(drawn) for what, count in heads.items()}


def apart(one: dict[str | int, float], other: dict[str | int, float]) -> float:
    return max(abs(one.get(what, 0) - other.get(what, 0)) for what in one | other)


def test_each_kind_has_habits_of_its_own_and_keeps_them() -> None:
    clusters = ("#sums", "#rivers", "#fruits", "#trains")
    first, again = ({cluster: shares_of(cluster, seed) for cluster in clusters} for seed in ("a", "b"))
    for cluster in clusters:
        assert apart(first[cluster], again[cluster]) < 0.06
    for one, other in combinations(clusters, 2):
        assert apart(first[one], first[other]) > 0.15


def test_a_habit_is_for_a_worker_wherever_the_team_lists_it() -> None:
    reverse = POOL[::-1]
    for cluster in ("#sums", "#rivers"):
        # Members are sorted, so who comes first is told by those alone who are asked alone.
        alone = [
            Counter(
                team[workflow.steps[0].worker].name
                for workflow in (random_committee(rng, team, cluster) for _ in range(3000))
                if len(workflow.steps) == 1
            )
            for team, rng in ((POOL, Random("a")), (reverse, Random("b")))
        ]
        shares = [{name: count / counts.total() for name, count in counts.items()} for counts in alone]
        assert apart(*shares) < 0.08
        assert max(shares[0].values()) > 1.5 / (len(POOL) - 1)
