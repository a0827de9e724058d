"""A baseline opens by name, and a wrong name gets one sentence that says the way out."""

import subprocess
import sys

import pytest

from podium.errors import ConfigError
from podium.planners import (
    Cascade,
    Committee,
    Constant,
    RandomPlans,
    SelfConsistency,
    Single,
    baseline_syntaxes,
    find_baseline,
    open_baseline,
)
from podium.planners.rating_router import RatingRouter
from podium.planners.registry import own_baselines
from podium.types import Profile
from podium.workflow import Step, Workflow, render

POOL = tuple(Profile(name=name) for name in ("ada", "gpt-4:mini", "vote"))
PLAN = Workflow((Step(1, "Do it."),))


def plan_for(question, pool):
    return PLAN


@pytest.mark.parametrize(
    ("name", "planner"),
    [
        ("single:ada", Single("ada")),
        ("single:gpt-4:mini", Single("gpt-4:mini")),
        ("self-consistency:ada:5", SelfConsistency("ada", 5)),
        ("self-consistency:gpt-4:mini:3", SelfConsistency("gpt-4:mini", 3)),
        ("random", RandomPlans(seed="7")),
    ],
)
def test_every_form_of_a_baseline_name_opens_its_planner(name, planner):
    assert open_baseline(name, POOL, seed="7") == planner


def test_a_constant_plan_is_read_from_its_file(tmp_path):
    file = tmp_path / "plan.txt"
    file.write_text(render(PLAN), encoding="utf-8")
    opened = open_baseline(f"constant:{file}", POOL)
    assert opened == Constant(PLAN, ("ada", "gpt-4:mini", "vote"), name=f"constant:{file}")


@pytest.mark.parametrize(
    "planner",
    [
        Committee(("ada", "ada", "gpt-4:mini")),
        Committee(("gpt-4:mini",)),
        Cascade(("ada", "ada"), "gpt-4:mini"),
        RatingRouter(0.0),
        RatingRouter(12.5),
    ],
)
def test_a_team_that_is_chosen_is_opened_by_its_own_name(planner):
    assert open_baseline(planner.name, POOL) == planner
    baseline, argument = find_baseline(planner.name)
    assert set(baseline.needs(argument)) <= {"ada", "gpt-4:mini", "vote"}
    assert not baseline.for_clients


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("singel:ada", "There is no baseline 'singel:ada'; did you mean single:WORKER?"),
        (
            "unheard",
            f"There is no baseline 'unheard'; known: {', '.join(baseline_syntaxes())}.",
        ),
        (
            "",
            f"There is no baseline ''; known: {', '.join(baseline_syntaxes())}.",
        ),
        ("random:3", "There is no baseline 'random:3'; did you mean random?"),
        ("single", "The baseline 'single' names no worker; write one after a colon: ada, gpt-4:mini, vote."),
        ("single:adda", "The pool has no worker named 'adda'; did you mean 'ada'?"),
        (
            "self-consistency:ada",
            "The baseline 'self-consistency:ada' is not of the form self-consistency:WORKER:SAMPLES, with "
            "a number of samples.",
        ),
        ("self-consistency:ada:0", "Self-consistency takes 1 to 1000 samples, not 0."),
        (
            "constant",
            "The baseline 'constant' names no file; write constant:FILE, a file with a plan's lists.",
        ),
        (
            "committee",
            "The baseline 'committee' names no worker; write one after a colon: ada, gpt-4:mini, vote.",
        ),
        ("committee:ada+bob", "The pool has no worker named 'bob'; known: ada, gpt-4:mini, vote."),
        (
            "cascade:ada",
            "The baseline 'cascade:ada' is not of the form cascade:A+B>C.",
        ),
        (
            "cascade:ada>gpt-4:mini",
            "cascade:ada>gpt-4:mini: one worker alone cannot disagree; name two or more before the >.",
        ),
        (
            "by-ratings:cheap",
            "The baseline 'by-ratings:cheap' needs the accuracy that a dollar has to buy, a number from 0 on, such as "
            "by-ratings:0.",
        ),
        ("constant:/no/such", "/no/such: there is no such file; check the path."),
    ],
)
def test_a_wrong_name_gets_a_sentence(name, sentence):
    with pytest.raises(ConfigError) as refused:
        open_baseline(name, POOL)
    assert str(refused.value) == sentence


def test_each_baseline_stands_under_its_own_name():
    assert all(name == baseline.name for name, baseline in own_baselines().items())


def test_naming_a_planner_imports_its_module_alone():
    listed = "print(*(name for name in sys.modules if name.startswith('podium.planners.')))"
    code = f"import sys, podium.planners as b; {listed}; b.find_baseline('best-of-n:ada'); {listed}"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = (set(line.split()) for line in shown.stdout.splitlines())
    assert after - before - {"podium.planners.rounds"} == {"podium.planners.judged"}
