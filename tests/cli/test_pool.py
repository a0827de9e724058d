import json
from pathlib import Path


def test_the_list_shows_workers_as_planners_see_them(podium):
    listed = podium("pool", "list", "--pool", "pool.toml")
    assert listed.status == 0
    assert "0 ada" in listed.out
    assert "Knows sums." in listed.out
    assert "2 workers" in listed.out
    ada, bob = json.loads(podium("pool", "list", "--pool", "pool.toml", "--json").out)
    assert (ada["name"], ada["price"]["output"], bob["latency_s"]) == ("ada", 2.0, 2.0)


def test_the_shipped_pool_answers(podium):
    assert podium("pool", "list").status == 0
    assert podium("pool", "check").status == 0


def test_a_check_fails_if_one_worker_does_not_answer(podium):
    Path("mixed.toml").write_text(
        """
        [[worker]]
        name = "well"
        kind = "scripted"
        replies = ["ready"]
        [[worker]]
        name = "ill"
        kind = "scripted"
        replies = [{ error = "status", message = "The server said 500." }]
        [[worker]]
        name = "slow"
        kind = "scripted"
        replies = ["ready"]
        delay = 60
        """
    )
    checked = podium("pool", "check", "--pool", "mixed.toml", "--timeout", "0.05")
    assert checked.status == 1
    well, ill, slow = checked.out.splitlines()
    assert "ok" in well
    assert ill.endswith("The server said 500.")
    assert slow.endswith("No answer within 50 ms.")
    results = json.loads(podium("pool", "check", "--pool", "mixed.toml", "--timeout", "0.05", "--json").out)
    assert [result["answered"] for result in results] == [True, False, False]


def test_a_pool_of_none_and_an_unknown_key_are_refused(podium):
    Path("none.toml").write_text("")
    refused = podium("pool", "check", "--pool", "none.toml")
    assert refused.status == 2
    assert "at least one [[worker]]" in refused.err
    Path("typo.toml").write_text('[[worker]]\nname = "a"\nkind = "scripted"\nreplise = ["x"]\n')
    refused = podium("pool", "list", "--pool", "typo.toml")
    assert refused.status == 2
    assert "did you mean 'replies'?" in refused.err
    assert podium("pool", "check", "--pool", "pool.toml", "--timeout", "0").status == 2
