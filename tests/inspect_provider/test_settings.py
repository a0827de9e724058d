"""What names the team of an Inspect model: the model's name and the settings of -M."""

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from podium.errors import ConfigError
from podium.inspect_provider.provider import read_settings

WORKER = '[[worker]]\nname = "ada"\nkind = "scripted"\nreplies = ["5"]\n'


@pytest.mark.parametrize(
    ("name", "given", "workers", "planner"),
    [
        ("own.toml", {}, "ada", "conductor"),
        ("ollama", {}, None, "conductor"),
        ("own.toml", {"plan.planner": "single:ada"}, "ada", "single:ada"),
        ("conductor", {"pool": "own.toml"}, "ada", "conductor"),
        ("single:ada", {"pool": "own.toml"}, "ada", "single:ada"),
        ("any-name", {"pool": "own.toml", "plan.planner": "random"}, "ada", "random"),
        ("own.toml", {"plan": {"planner": "random"}}, "ada", "random"),
    ],
)
def test_inspect_model_name_selects_a_planner_or_a_team(name, given, workers, planner):
    Path("own.toml").write_text(WORKER)
    settings = read_settings(name, given)
    assert settings.plan.planner == planner
    assert workers in (None, *(worker.name for worker in settings.worker))


def test_keys_that_inspect_has_changed_reach_workers_with_a_dash() -> None:
    Path("own.toml").write_text("".join(WORKER.replace("ada", name) for name in ("a-b", "a_b", "my-small.2")))
    given = {"worker.my_small.2.limits.timeout": 60, "worker.a_b.limits.timeout": 61}
    workers = read_settings("own.toml", given).worker
    assert [worker.limits.timeout for worker in workers[1:]] == [61, 60]
    assert workers[0].limits.timeout not in (60, 61)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"plannr": "random"}, "unknown key 'plannr'"),
        ({"plan.max_steps": 0}, "plan.max_steps is 0, but it should be greater than or equal to 1."),
        ({"budget.usd": "much"}, 'budget.usd is "much", but it should be a number.'),
        ({"plan.planner": "random", "plan.cost_sensitivity": 1}, "cost_sensitivity is for a Conductor"),
        ({"conductor.checkpoint": "x", "conductor.base_url": "http://x"}, "keep one of them"),
        ({"conductor.base_url": "http://x"}, "needs both base_url and model."),
        ({"budget.day_usd": -1}, "budget.day_usd is -1, but it should be greater than or equal to 0."),
    ],
)
def test_settings_that_cannot_be_used_are_refused_in_one_sentence(given, sentence):
    with pytest.raises(ConfigError) as refused:
        read_settings("ollama", given)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_installed_package_has_the_entry_point_of_the_provider():
    found = entry_points(group="inspect_ai")
    assert [entry.value for entry in found if entry.name == "podium"] == ["podium.inspect_provider.registry"]
