"""Files that Podium 0.1 wrote are read for ever: folders, settings, pools, recordings, traces, money and keys.

Everything in `files` was written by that version, or for it, and stays as it is: where a test here fails, what reads
is mended and not what is read. All tests work in a copy.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from podium.conductor import Checkpoint, PromptSettings, build_prompt
from podium.conductor.opening import open_conductor
from podium.conductor.prompt import PolicyNumbering
from podium.config import load
from podium.evals import Comparison, ConstantPlanFront
from podium.orchestrator.team import open_pool
from podium.planner import Outcome, Planner, PlanRequest
from podium.recordings import Recording
from podium.rollout import RewardSettings
from podium.rollout.random_pools import PoolDraw
from podium.trace import Trace
from podium.train.settings import Experiment, GRPOSettings, Stage
from podium.types import Limits, Question
from podium.warmstart.data import SourceSettings
from podium.warmstart.examples import Shares
from podium.warmstart.supervised import SupervisedStage, WarmStartSettings, run_warmstart
from podium.workers.ratings import Ratings, Tally
from podium.workflow import Workflow, parse

SUM, RIVER = "Add 21 apples to the basket.", "Spell river number 20 backwards."
RATED = ("--pool", "pools/rated.toml")
WHOLE = '"Answer the question."'
ALONE = 'model_id = [{}]\nsubtasks = ["Answer the question."]\naccess_list = [[]]'
TEAM = (
    f'model_id = [0, 0, 1, 3]\nsubtasks = [{WHOLE}, {WHOLE}, {WHOLE}, "Vote."]\n'
    'access_list = [[], [], [], ["all"]]'
)
"""Plans with the numbers of the pool: the policy has its own, by which the vote comes first."""


def rows(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(file).read_text().splitlines()]


async def planned(planner: Planner) -> list[str]:
    """What is written for two questions."""
    pool = open_pool("pools/rated.toml")
    asked = [
        PlanRequest(Question(text=text), pool.profiles_for(text), max_steps=4, seed="s")
        for text in (SUM, RIVER)
    ]
    return [(await planner.plan(situation)).text for situation in asked]


# --- checkpoints -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("brief", PromptSettings(style="brief", pool="described", examples=0)),
        (
            "levels",
            PromptSettings(
                style="brief",
                examples=0,
                question_chars=100,
                answer_chars=60,
                levels=8,
                cost_sensitivity=5,
                rounds=True,
            ),
        ),
        ("full", PromptSettings(style="full", pool="anonymous", examples=2)),
        ("empty", PromptSettings()),
    ],
)
def test_a_checkpoint_names_its_prompt_settings(name: str, prompt: PromptSettings) -> None:
    shutil.copy(f"podium-json/{name}.json", "start/podium.json")
    assert Checkpoint.read("start").prompt == prompt


@pytest.mark.parametrize(
    ("thrift", "plans"),
    [
        (None, [ALONE.format(2), ALONE.format(2)]),
        (0, [ALONE.format(2), ALONE.format(2)]),
        (1, [TEAM, TEAM]),
        (1.5, [TEAM, ALONE.format(0)]),
        (2, [ALONE.format(0), ALONE.format(0)]),
    ],
)
@pytest.mark.parametrize("folder", ["start", "run/policy", "run/checkpoints/000001"])
async def test_a_policy_plans_at_each_level_what_it_planned(
    folder: str, thrift: float | None, plans: list[str]
) -> None:
    assert await planned(open_conductor(folder, cost_sensitivity=thrift)) == plans


def test_a_prompt_has_the_words_that_policies_were_trained_on() -> None:
    prompt = Checkpoint.read("start").prompt.model_copy(update={"cost_sensitivity": 2})
    workflow = parse(ALONE.format(0), workers=4, max_steps=4)
    assert isinstance(workflow, Workflow)
    profiles = open_pool("pools/rated.toml").profiles_for(SUM)
    situation = PlanRequest(Question(text=SUM), profiles, (Outcome(workflow, "Answer: yes"),), max_steps=4)
    (message,) = build_prompt(PolicyNumbering.of(profiles, prompt).request(situation), prompt)
    assert message.content == Path("prompt.txt").read_text()


# --- runs --------------------------------------------------------------------------------------------------


def test_a_training_goes_on_where_it_was_stopped_as_if_it_had_not_been(podium: Any) -> None:
    (before,) = rows("run/metrics.jsonl")
    trained = podium("train", "--run", "run", "--config", "train.toml")
    assert trained.out.endswith("The trained policy is in run/policy\n")
    first, second = rows("run/metrics.jsonl")
    assert first == before
    _, whole = rows("whole.jsonl")
    figures = ("iteration", "valid", "accuracy", "reward", "penalty", "steps", "calls", "cost_usd", "lr")
    assert [second[name] for name in figures] == pytest.approx([whole[name] for name in figures])
    assert second["workers"] == pytest.approx(whole["workers"])
    refused = podium("train", "--run", "run", "--config", "train.toml", "grpo.lr=1e-5", status=2)
    assert "run is a run of another configuration: grpo.lr was 0.01 and is now 1e-05" in refused.err


def test_a_run_is_evaluated_as_it_was(podium: Any) -> None:
    before = Comparison.load(Path("run/comparison.json"))
    assert (before.questions, before.tasks, before.pool[0]) == (8, "small/test", "vote")
    assert len([row for row in before.rows if row.kind == "conductor"]) == 3
    podium("eval", "--run", "run", "--max-steps", "4", "--early-stop")
    after = Comparison.load(Path("run/comparison.json"))
    # The bandits learn otherwise now, and there is one more.
    old_rows, new_rows = ([row for row in table.rows if row.kind != "bandit"] for table in (before, after))
    for old, new in zip(old_rows, new_rows, strict=True):
        assert (old.kind, old.accuracy, old.steps, old.calls, old.cost_usd) == (
            new.kind, new.accuracy, new.steps, new.calls, new.cost_usd,
        )  # fmt: skip


def test_a_report_is_written_of_an_old_run(podium: Any) -> None:
    assert podium("report", "run").out == "run/report.html\n"
    page = Path("run/report.html").read_text()
    assert "Oracle (a bound for one answer)" in page
    assert "8 held-out questions of small/test" in page


def test_a_warm_start_that_was_killed_goes_on_after_its_stage(podium: Any) -> None:
    settings = load(Path("warmstart.toml"), WarmStartSettings)
    (before, *_) = rows("warm/metrics.jsonl")
    run_warmstart(settings, Path("warm"), check_cases=2)
    first, second = rows("warm/metrics.jsonl")
    assert first == before
    assert second["step"] == 5
    assert Checkpoint.read("warm/policy").prompt.levels == 3
    table = podium("eval", "--run", "warm", "--markdown", "--max-steps", "4").out
    assert table.count("\n| Conductor, cost sensitivity ") == 3


def test_constant_plans_of_an_earlier_search_are_read() -> None:
    frontier = ConstantPlanFront.load(Path("plans.json"))
    best = frontier.within(0.001)
    assert (frontier.max_steps, frontier.seed) == (4, "0")
    assert best is not None
    assert len(best.workflow.steps) == 4


# --- settings ----------------------------------------------------------------------------------------------


def test_every_key_of_a_reinforcement_is_known() -> None:
    assert load(Path("train.toml"), Experiment) == Experiment(
        start="start",
        pool="pools/rated.toml",
        tasks="small.parquet",
        pool_draw=PoolDraw(random=True, min_workers=3, max_workers=4),
        curriculum=(
            Stage(start=0, hop_shares=(0.5, 0.5)),
            Stage(start=10, hop_shares=(0.25, 0.25, 0.25, 0.25)),
        ),
        grpo=GRPOSettings(
            iterations=2, questions=4, group=8, lr=1e-2, optimizer="muon", warmup=0.0, temperature=0.9, max_tokens=4,
            max_steps=4, early_stop=True, rounds=1, loss_type="dr_grpo", floor=0.1, cost_weights=(0.0, 200.0, 2000.0),
            kl=0.01, kl_end=0.001, sure=0.999, clip=0.3, max_norm=2.0, dtype="fp32", minutes=10.0, seed=3, save_every=1,
            eval_every=0,
        ),
        reward=RewardSettings(cost=8.0, calls=0.01, latency=0.001),
    )  # fmt: skip


def test_every_key_of_a_warm_start_is_known() -> None:
    assert load(Path("warmstart.toml"), WarmStartSettings) == WarmStartSettings(
        seed=1, tasks="small.parquet",
        extra_sources=(SourceSettings(tasks="small.parquet", pool="pools/rated.toml", weight=0.5),),
        cost_weights=(0.0, 0.01, 0.1), early_stop=True, question_chars=60, pool="pools/rated.toml", synthetic_teams=0.5,
        stages=(
            SupervisedStage(
                steps=3, synthetic_teams=0.0,
                shares=Shares(
                    plan=1.0, team=0.0, reading=0.1, level_sweep=0.5, from_verdicts=0.9, relevant=0.5, fitting=0.4,
                    steps=(0.5, 0.5),
                ),
            ),
            SupervisedStage(
                steps=2, restart=0.5, shares=Shares(plan=1.0, reading=0.0, level_sweep=0.0, from_verdicts=1.0)
            ),
        ),
        lr=2e-3, matrix_lr=4e-3, batch=4, warmup=0.1, vocabulary=400, vocabulary_examples=60, hidden=16, layers=1,
        heads=2, kv_heads=1, inner=16, initial="plain", rope_theta=10000.0, dtype="fp32",
    )  # fmt: skip


# --- pools, ratings, recordings ----------------------------------------------------------------------------


def test_every_key_of_a_worker_is_known() -> None:
    azure, *others = pool = open_pool("pools/every.toml")
    assert pool.names == ("azure", "program", "function", "simulated", "calculator", "code", "vote")
    assert azure.profile.sees
    assert not azure.profile.calls_tools
    assert azure.fallback == "program"
    assert azure.limits == Limits(
        concurrency=8, rpm=600, tpm=100000, timeout=60, connect_timeout=5, first_token_timeout=20, max_tokens=1000,
        max_usd=0.1, retries=2, retry_share=0.5, hedge=0.9, failures=5, probe_after=30,
    )  # fmt: skip
    assert azure.identity is not None
    assert azure.identity["query"] == {"api-version": "2024-10-21"}
    assert others[2].profile.description == "Knows dates."


async def test_teams_are_led_by_whom_their_keys_name() -> None:
    teams: dict[str, Any] = {team.profile.name: team for team in open_pool("pools/teams.toml")}
    leaders = {name: team.orchestrator for name, team in teams.items()}
    planners = {name: leader.planner.name for name, leader in leaders.items()}
    assert [*planners.items()][1:] == [
        ("thrifty", "conductor:start"),
        ("served", "conductor:leader"),
        ("consistent", "self-consistency:ada:2"),
    ]
    assert planners["team"].startswith("constant:")
    thrifty = leaders["thrifty"]
    assert (thrifty.settings.early_stop, thrifty.budget.rounds, thrifty.max_steps) == (True, 2, 4)
    assert await planned(thrifty.planner) == [TEAM, ALONE.format(0)], "at a level of 1.5"
    assert teams["team"].limits.max_usd == 0.5


def test_failures_of_scripts_pass_or_do_not(podium: Any) -> None:
    asked = podium(
        "ask", "2 + 3?", "--pool", "pools/scripted.toml", "--planner", "constant:plan.txt", "--json"
    )
    adds, doubles, checks = Trace.model_validate_json(asked.out).spans
    assert [attempt.error_kind for attempt in adds.attempts] == ["rate_limited", None]
    assert doubles.answered_by == "cy"
    assert checks.response == "Right.\nAnswer: 5"


def test_ratings_of_a_question_are_what_they_were() -> None:
    ratings = Ratings.open(Path("ratings.json"))
    assert (ratings.cluster_of(SUM), ratings.cluster_of(RIVER)) == ("add-apples", "backwards-number")
    assert ratings.totals["ada"] == Tally(right=9.5, questions=16, cost_usd=0.00064)
    ada, _, _, vote = open_pool("pools/rated.toml").profiles_for(SUM)
    assert (vote.name, ada.name) == ("vote", "ada")
    assert ada.rating is not None
    assert ada.rating.accuracy == pytest.approx((8 + 3 * 9.5 / 16) / 11)


def test_a_recording_is_shown_rated_and_extended(podium: Any) -> None:
    shown = podium("replay", "show", "small.parquet").out
    assert "28 questions (8 test, 16 train, 4 validation)" in shown.replace("\n", " ")
    podium("rate", "small.parquet", "again.json", *RATED, "--kinds", "2")
    assert Path("again.json").read_text() == Path("ratings.json").read_text()
    podium("record", "half.parquet", "--pool", "pools/recorder.toml", "--questions", "6", "--samples", "1")
    assert Recording.open(Path("half.parquet")).header.questions == 6
