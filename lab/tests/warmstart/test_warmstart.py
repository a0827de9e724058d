"""The warm start teaches form, reading and binding, and no plan that is good for its question."""

from __future__ import annotations

import json
import resource
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import PlainTextCodec
from podium.conductor.prompt import build_prompt
from podium.config import build
from podium.errors import ConfigError, RunMismatchError, StoreError
from podium.planners.planner import PlanRequest
from podium.rollout.run_folder import RunFolder
from podium.train.shared_prefix.update import learning_rate
from podium.workflow import Acceptance, PlanRules, Workflow, parse
from podium_lab.exercises.cases import PROMPT, SCOPE, draw_question, draw_team, known_team
from podium_lab.exercises.teams import Shares, claimants, read_thought, skill_thought
from podium_lab.warmstart import supervised
from podium_lab.warmstart.acceptance import AcceptanceCheck, AcceptanceReport
from podium_lab.warmstart.data import batches, encode
from podium_lab.warmstart.examples import SFTExample, draw_example, query_line, query_prompt
from podium_lab.warmstart.supervised import (
    SupervisedStage,
    WarmStartSettings,
    learning_rates,
    make_model,
    make_tokenizer,
    run_warmstart,
    save_policy,
)
from podium_lab.warmstart.tokenizer import BEGIN_ID, END_ID

TEAM = known_team("orchestra")
TINY = WarmStartSettings(
    stages=(SupervisedStage(steps=20), SupervisedStage(steps=10, shares=Shares(relevant=0.5))),
    batch=16,
    vocabulary=700,
    vocabulary_examples=300,
    hidden=32,
    layers=1,
    heads=2,
    kv_heads=1,
    inner=64,
)


def plan_lessons(count: int) -> list[SFTExample]:
    examples = (draw_example("0", index) for index in range(10**6))
    found: list[SFTExample] = []
    while len(found) < count:
        example = next(examples)
        if "\nPlan:\n" in example.prompt:
            found.append(example)
    return found


def test_lessons_of_a_seed_never_change() -> None:
    assert [draw_example("3", i) for i in range(20)] == [draw_example("3", i) for i in range(20)]
    assert draw_example("3", 0) != draw_example("4", 0)


def test_every_plan_in_a_lesson_is_valid() -> None:
    for example in plan_lessons(300):
        models = example.prompt.partition("Models:\n")[2].partition("\nSteps: ")
        limit = int(models[2].partition("\n")[0])
        plan = parse(
            example.pieces[0][0],
            PlanRules(workers=len(models[0].split("\n")), max_steps=limit, later_round=True),
        )
        assert isinstance(plan, Workflow | Acceptance), example


def test_the_learning_rate_spans_stages_and_restarts_where_set() -> None:
    settings = WarmStartSettings(
        stages=(
            SupervisedStage(steps=40),
            SupervisedStage(steps=60),
            SupervisedStage(steps=50, restart=0.5),
        ),
        warmup=0.1,
    )
    rates = learning_rates(settings)
    assert len(rates) == settings.steps == 150
    assert rates[:100] == [learning_rate(i, peak=1.0, iterations=100, warmup=0.1) for i in range(100)]
    assert rates[100:] == [learning_rate(i, peak=0.5, iterations=50, warmup=0.1) for i in range(50)]
    assert max(rates) == 1.0


def test_lessons_about_a_known_pool_come_as_often_as_the_source_says() -> None:
    lookups = Shares(plan=0, team=0, reading=0, lookup=1)

    def drawn(share: float, count: int) -> list[str]:
        return [
            draw_example("source", index, known=TEAM, synthetic_teams=share, shares=lookups).prompt
            for index in range(count)
        ]

    known, some = query_prompt(TEAM), drawn(0.25, 1000)
    assert 0.7 < some.count(known) / 1000 < 0.8
    assert len(set(some)) > 200
    assert set(drawn(0.0, 20)) == {known}


def test_a_team_lesson_lists_the_numbers_that_its_thought_names() -> None:
    examples = [example for i in range(400) if "\nTeam:\n" in (example := draw_example("0", i)).prompt]
    assert len(examples) > 20
    for example in examples:
        named, _, listed = example.pieces[0][0].removeprefix("needs ").partition("\nmodel_id = ")
        numbers = [part.split(" ")[1] for part in named.split(", ")]
        written = listed.strip("[]").split(", ")
        assert len(written) == len(numbers)
        assert all(a == b for a, b in zip(numbers, written, strict=True) if a != "none")


def test_thought_names_each_part_skill_and_a_worker_that_claims_it() -> None:
    rng = Random("thought")
    for _ in range(200):
        _, parts = draw_question(rng)
        team = draw_team(rng)
        named = read_thought(skill_thought(parts.skills, claimants(parts.skills, team, rng)))
        assert [skill for skill, _ in named] == list(parts.skills)
        for skill, number in named:
            fit = team.fit(skill)
            assert int(number) in fit if fit else number == "none"


def test_lesson_tokens_equal_the_tokens_of_a_planning_prompt(tmp_path: Path) -> None:
    tokenizer = make_tokenizer(TINY, TEAM)
    question, _ = draw_question(Random("tokens"))
    team = draw_team(Random("tokens"))
    messages = build_prompt(PlanRequest(question, team.profiles), PROMPT)
    example = SFTExample(messages[0].content, (("model_id = []", True),))
    tokens, learned = encode(example, tokenizer)
    prompt = PlainTextCodec(tokenizer, BEGIN_ID).encode(messages)
    assert tokens[: len(prompt)] == prompt
    assert learned == [False] * len(prompt) + [True] * (len(tokens) - len(prompt))
    assert tokens[-1] == END_ID
    assert tokenizer.decode(tokens[1:-1]) == messages[0].content + "model_id = []"


def test_the_acceptance_check_tokenizes_numbers_as_the_examples_do() -> None:
    tokenizer = make_tokenizer(TINY, TEAM)
    team = draw_team(Random("tokens of rolls"))
    query = query_line(team.profiles[0].name)
    example = SFTExample(query_prompt(team), ((query, False), ("0", True)))
    tokens, learned = encode(example, tokenizer)
    exam = AcceptanceCheck(make_model(TINY, tokenizer.get_vocab_size()), tokenizer, seed=0)
    assert exam.encode((example.prompt, query)) == tokens[: learned.index(True)]


def test_batches_mark_learned_tokens_and_never_padding() -> None:
    tokenizer = make_tokenizer(TINY, TEAM)
    for batch in batches(tokenizer, draw_example, name="0", size=4, count=9):
        assert batch.tokens_BT.shape == batch.learned_BT.shape
        ends = (batch.tokens_BT == END_ID).int().argmax(1)
        for row, end in enumerate(ends.tolist()):
            assert bool(batch.learned_BT[row, end])
            assert not bool(batch.learned_BT[row, end + 1 :].any())


@pytest.mark.parametrize(
    "override",
    [
        *(f"{size}=0" for size in ("hidden", "layers", "heads", "kv_heads", "inner", "rope_theta")),
        *("heads=3", "hidden=30", "hidden=36", "stages=[]"),
        "stages=[{steps=1, shares={plan=0, team=0, reading=0, lookup=0}}]",
    ],
)
def test_settings_of_which_no_policy_can_be_made_are_refused(override: str) -> None:
    with pytest.raises(ConfigError):
        build({}, WarmStartSettings, [override], source="command line")


@pytest.mark.parametrize("largest_file", [1_000, 14_000], ids=["of the weights", "of the tokenizer"])
def test_full_disk_leaves_no_policy_and_says_so_in_a_sentence(largest_file: int, tmp_path: Path) -> None:
    settings = TINY.model_copy(update={"hidden": 4, "inner": 4, "initial": "plain"})
    tokenizer, policy = make_tokenizer(settings, TEAM), tmp_path / "policy"
    model = make_model(settings, tokenizer.get_vocab_size())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, limits[1]))
    try:
        with pytest.raises(StoreError, match="policy cannot be written"):
            save_policy(model, tokenizer, PROMPT, policy)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not policy.exists()
    save_policy(model, tokenizer, PROMPT, policy)
    assert Checkpoint.read(policy).parameters()


@dataclass(frozen=True)
class Whole:
    """A run of `TINY` from beginning to end. Tests read its folder and leave it as it is."""

    folder: Path
    rows: list[dict[str, Any]]
    reports: dict[str, AcceptanceReport]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("warmstart") / "run"
    rows: list[dict[str, Any]] = []
    return Whole(folder, rows, run_warmstart(TINY, folder, show=rows.append, check_cases=20))


def weights(run: Path) -> bytes:
    return (run / "policy" / "model.safetensors").read_bytes()


def test_a_small_warm_start_learns_and_leaves_a_checkpoint(whole: Whole) -> None:
    assert whole.rows[-1]["step"] == TINY.steps
    assert whole.rows[-1]["loss"] < whole.rows[0]["loss"]
    assert set(whole.reports) == {"orchestra", "made-up teams"}
    assert not any(report.passed for report in whole.reports.values())
    assert json.loads((whole.folder / "gate.json").read_text()).keys() == whole.reports.keys()
    checkpoint = Checkpoint.read(whole.folder / "policy")
    assert checkpoint.prompt == PROMPT
    assert checkpoint.scope == SCOPE
    with pytest.raises(RunMismatchError, match="there already"):
        run_warmstart(TINY, whole.folder)


@pytest.mark.parametrize(
    ("usual", "of_stage", "checked"),
    [
        (0.6, 0.0, {"orchestra"}),
        (0.6, 1.0, {"made-up teams"}),
        (0.0, 0.5, {"orchestra", "made-up teams"}),
        (0.0, None, {"orchestra"}),
    ],
)
def test_the_gate_checks_the_teams_that_the_stages_had(
    usual: float, of_stage: float | None, checked: set[str], tmp_path: Path
) -> None:
    stage = SupervisedStage(steps=1, synthetic_teams=of_stage)
    settings = TINY.model_copy(update={"synthetic_teams": usual, "stages": (stage,)})
    assert set(run_warmstart(settings, tmp_path / "run", check_cases=2)) == checked


def test_the_same_seed_makes_the_same_policy(whole: Whole, tmp_path: Path) -> None:
    run_warmstart(TINY, tmp_path / "again", check_cases=2)
    assert weights(tmp_path / "again") == weights(whole.folder)


def test_a_killed_warm_start_goes_on_after_its_last_finished_stage(
    whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(row: dict[str, Any]) -> None:
        if row["step"] > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_warmstart(TINY, tmp_path / "killed", show=interrupt, check_cases=2)
    monkeypatch.setattr(supervised, "make_tokenizer", None)  # Lessons that changed would make another one.
    again: list[int] = []
    run_warmstart(TINY, tmp_path / "killed", show=lambda row: again.append(row["step"]), check_cases=2)
    assert again == [30]

    def rows(run: Path) -> list[tuple[int, float]]:
        return [(row["step"], row["loss"]) for row in RunFolder(run).rows().read()]

    assert rows(tmp_path / "killed") == rows(whole.folder)
    assert weights(tmp_path / "killed") == weights(whole.folder)
    assert not (tmp_path / "killed" / "stages").exists()
