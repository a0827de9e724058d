"""What names the team of an Inspect model: the model's name and the settings of -M."""

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from podium.errors import ConfigError
from podium.inspect_provider.provider import read_settings


@pytest.mark.parametrize(
    ("name", "given", "pool", "planner"),
    [
        ("embedded", {}, "embedded", "conductor"),
        ("pool.toml", {"planner": "single:ada"}, "pool.toml", "single:ada"),
        ("configs/pool.toml", {}, "configs/pool.toml", "conductor"),
        ("conductor", {"pool": "pool.toml"}, "pool.toml", "conductor"),
        ("random", {}, "embedded", "random"),
        ("single:ada", {"pool": "pool.toml"}, "pool.toml", "single:ada"),
        ("any-name", {"pool": "pool.toml", "planner": "random"}, "pool.toml", "random"),
    ],
)
def test_a_models_name_is_a_planner_or_a_pool_unless_the_settings_say_otherwise(name, given, pool, planner):
    settings = read_settings(name, given)
    assert (settings.pool, settings.planner) == (pool, planner)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"plannr": "random"}, "podium/embedded: unknown key 'plannr'; did you mean 'planner'?"),
        ({"max_steps": 0}, "podium/embedded: max_steps is 0, but it should be greater than or equal to 1."),
        ({"budget_usd": "much"}, 'podium/embedded: budget_usd is "much", but it should be a number.'),
        (
            {"planner": "random", "cost_sensitivity": 1},
            "podium/embedded: cost_sensitivity is for a Conductor; leave it out.",
        ),
        (
            {"planner": "random", "conductor": "x", "conductor_url": "http://x"},
            "planner random plans without a Conductor; leave conductor and conductor_url out.",
        ),
        (
            {"conductor": "x", "conductor_url": "http://x", "conductor_model": "m"},
            "conductor names a folder, conductor_url a server; give one of them.",
        ),
        (
            {"cost_sensitivity": 0, "conductor_url": "http://x", "conductor_model": "m"},
            "cost_sensitivity is for a Conductor of Podium's own; leave it out, or conductor_url.",
        ),
        (
            {"conductor_url": "http://x", "conductor_model": "m", "conductor_price": [-1.0, 2.0]},
            "conductor_price is below 0; give dollars per million tokens.",
        ),
        ({"conductor_url": "http://x"}, "needs both conductor_url and conductor_model."),
        ({"replay": True}, "replay answers from a response cache; name its file with cache."),
        ({"day_budget_usd": -1}, "day_budget_usd is -1, but it should be greater than or equal to 0."),
        ({"conductor_price": [1.0, 2.0]}, "needs both conductor_url and conductor_model."),
    ],
)
def test_settings_that_cannot_be_used_are_refused_in_one_sentence(given, sentence):
    with pytest.raises(ConfigError) as refused:
        read_settings("embedded", given)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_nothing_of_podium_loads_inspect_before_inspect_loads_podium():
    program = "import sys, podium.cli.app, podium.library; sys.exit('inspect_ai' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_installed_package_has_the_entry_point_of_the_provider():
    found = entry_points(group="inspect_ai")
    assert [entry.value for entry in found if entry.name == "podium"] == ["podium.inspect_provider.registry"]
