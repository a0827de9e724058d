import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from podium.store import TraceStore
from podium.trace import Trace
from refused_commands import one_sentence
from scripted_team import write_team
from tiny_policy import write_policy


def kept() -> list[Trace]:
    with TraceStore(Path("kept/traces.sqlite"), create=False) as store:
        return list(store.iterate())


def test_ask_prints_plan_and_steps_before_the_answer(ask):
    asked = ask("What is 2 + 3?")
    assert asked.status == 0
    assert asked.err == ""
    assert asked.out.endswith("\nAnswer\nRight.\nAnswer: 5\n")
    for part in (
        "What is 2 + 3?",
        "3 steps",
        "0 ada",
        "Add the numbers.",
        "1 ada  skipped",
        "sees the question and step 0",
    ):
        assert part in asked.out


def test_ask_prints_no_escape_sequences_to_a_pipe(ask):
    assert "\x1b" not in ask("What is \x1b[31m2\x1b[0m + 3?").out


def test_json_is_the_trace_and_the_trace_is_kept(ask):
    asked = ask("What is 2 + 3?", "--json", "--seed", "s")
    trace = Trace.model_validate_json(asked.out)
    assert kept() == [trace]
    assert (trace.answer, trace.seed, trace.status) == ("Right.\nAnswer: 5", "s", "ok")
    assert asked.out.count("\n") == 1


def test_seeds_differ_from_question_to_question_unless_given(ask):
    seeds = {Trace.model_validate_json(ask("What is 2 + 3?", "--json").out).seed for _ in range(3)}
    assert len(seeds) == 3


def test_a_vote_may_stop_early_and_workers_that_were_not_called_are_named(podium):
    write_team(Path("two.toml"))
    sampled = ("--pool", "two.toml", "--planner", "self-consistency:ada:5", "--seed", "s", "--no-store")
    question = ("ask", "What is 2 + 3?", *sampled)
    everybody = Trace.model_validate_json(podium(*question, "--json").out)
    stopped = Trace.model_validate_json(podium(*question, "plan.early_stop=true", "--json").out)
    assert (everybody.early_stop, stopped.early_stop) == (False, True)
    assert everybody.calls == 6
    assert stopped.calls < 6
    assert stopped.cost_usd < everybody.cost_usd
    drawn = podium(*question, "plan.early_stop=true").out
    assert drawn.count("It was not called: no answer of it could change the vote.") == 6 - stopped.calls


def test_no_store_keeps_nothing(ask):
    assert ask("What is 2 + 3?", "--no-store").status == 0
    assert not Path("kept").exists()


def test_a_question_may_begin_with_a_minus(ask):
    assert Trace.model_validate_json(ask("-5 + 3 = ?", "--json").out).question.text == "-5 + 3 = ?"


def test_a_failed_question_is_status_1_with_its_trace_drawn_and_kept(ask):
    Path("plan.txt").write_text('model_id = [0]\nsubtasks = ["Fail."]\naccess_list = [[]]')
    asked = ask("What is 2 + 3?")
    assert asked.status == 1
    assert "No answer" in asked.out
    assert asked.err.startswith("podium: No step succeeded. Step 0: ")
    assert [trace.status for trace in kept()] == ["failed"]


def test_budgets_bound_the_question(ask):
    trace = Trace.model_validate_json(ask("What is 2 + 3?", "--json", "budget.calls=1").out)
    assert (trace.calls, trace.status, trace.budget.calls) == (1, "degraded", 1)
    assert "Degraded: " in ask("What is 2 + 3?", "budget.calls=1").out


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["  "], "The question is empty; write it in quotes"),
        (["-"], "The question is empty; write it in quotes"),
        (["Q?", "--max-steps", "0"], "plan.max_steps is 0"),
        (["Q?", "--rounds", "0"], "budget.rounds is 0"),
        (["Q?", "--budget-usd", "-1"], "budget.usd is -1"),
        (["Q?", "--pool", "none.toml"], "none.toml: there is no such file"),
        (["Q?", "--planner", "single:adda"], "adda"),
        (["Q?", "plan.cost_sensitivity=3"], "cost_sensitivity is for a Conductor"),
        (["Q?", "--planner=conductor", "plan.cost_sensitivity=0"], "cost_sensitivity is for a checkpoint"),
        (["Q?", "--conductor", "x"], "leave --conductor out"),
        (["Q?", "--planner", "conductor", "--conductor", "kept"], "kept is not a folder"),
        (["Q?", "--planner", "conductor", "conductor.base_url=http://x"], "needs both base_url and model"),
        (
            ["Q?", "--planner", "conductor", "--conductor", "x", "conductor.base_url=http://x"],
            "keep one of them",
        ),
        (
            [
                "Q?",
                "--planner=conductor",
                "conductor.base_url=http://x",
                "conductor.model=m",
                "conductor.api_key_env=NO_KEY",
            ],
            "the environment variable NO_KEY is not set",
        ),
        (["Q?", "--store", "pool.toml/traces"], "The trace store pool.toml/traces cannot be opened"),
        (
            ["What", "is", "it?"],
            "'is' is one argument too many",
        ),
        (["Q?", "--poool", "x"], "Unknown option: --poool"),
        (["Q?", "--rounds", "many"], "--rounds"),
    ],
)
def test_asking_wrongly_is_one_sentence_and_status_2_and_writes_nothing(podium, tokens, message):
    given = " ".join(tokens)
    usual = [("--pool", "pool.toml"), ("--planner", "constant:plan.txt")]
    tokens = [*tokens, *(token for option in usual if option[0] not in given for token in option)]
    before = sorted(Path.cwd().rglob("*"))
    asked = podium("ask", *tokens, stdin="\n")
    assert message in one_sentence(asked)
    assert sorted(Path.cwd().rglob("*")) == before


def test_unknown_cost_sensitivity_is_refused_with_the_known_levels(podium):
    write_policy(Path("thrifty"), podium={"prompt": {"style": "brief", "levels": 2}})
    write_policy(Path("plain"))

    def refused(conductor, level):
        tokens = ("--pool", "pool.toml", "--conductor", conductor, f"plan.cost_sensitivity={level}")
        return one_sentence(podium("ask", "Q?", *tokens))

    for level in ("2", "1.5", "-1"):
        assert (
            refused("thrifty", level) == f"podium: cost_sensitivity {level}: thrifty knows levels 0 to 1.\n"
        )
    for level in ("3", "0", "-1"):
        known = "plain knows no levels of cost sensitivity"
        assert refused("plain", level) == f"podium: cost_sensitivity {level}: {known}.\n"


def test_rounds_and_max_steps_default_to_those_of_the_conductor(podium):
    about = {"prompt": {"style": "brief"}, "plan": {"rounds": 2, "max_steps": 3}}
    write_policy(Path("trained"), podium=about)
    write_policy(Path("plain"))

    def limits(*options):
        asked = podium("ask", "Q?", "--pool", "pool.toml", "--no-store", "--json", *options)
        trace = Trace.model_validate_json(asked.out)
        return trace.budget.rounds, trace.max_steps

    assert limits("--conductor", "trained") == (2, 3)
    assert limits("--conductor", "trained", "--rounds", "1", "--max-steps", "4") == (1, 4)
    assert limits("--conductor", "plain") == (1, 5)


def test_standard_input_that_is_not_text_is_refused(ask):
    asked = ask("-", stdin=b"\xff\xfe\x00")
    assert (asked.status, asked.err) == (
        2,
        "podium: The question on standard input is not UTF-8 text; convert it, as with iconv.\n",
    )


def test_planning_shows_the_plan_with_its_cost_and_calls_no_worker(podium):
    tokens = ("plan", "What is 2 + 3?", "--pool", "pool.toml", "--planner", "constant:plan.txt")
    drawn = podium(*tokens)
    assert drawn.status == 0
    for part in (
        "Plan: 3 steps",
        "1 ada  skipped",
        "Nothing was run.",
        "Running it: 2 calls, about $",
        "3.50 s",
    ):
        assert part in drawn.out
    document = json.loads(podium(*tokens, "--json").out)
    first, second = document["estimate"]["steps"]
    assert [first["worker"], second["worker"]] == ["ada", "bob"]
    assert first["cost_usd"]["likely"] == pytest.approx((first["input_tokens"]["likely"] + 2 * 500) / 1e6)
    assert second["input_tokens"]["likely"] > first["input_tokens"]["likely"] + 500
    assert document["estimate"]["seconds"]["likely"] == 3.5
    assert document["estimate"]["most_usd"] > document["estimate"]["cost_usd"]["likely"]
    assert not Path("kept").exists()


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_answer_is_shown_also_where_its_trace_cannot_be_stored(ask, options):
    ask("What is 2 + 3?")
    with closing(sqlite3.connect("kept/traces.sqlite")) as store:
        store.execute("CREATE TRIGGER full BEFORE INSERT ON traces BEGIN SELECT RAISE(ABORT, 'full'); END")
    asked = ask("What is 3 + 2?", *options)
    assert "Answer: 5" in asked.out
    assert asked.status == 1
    (spilled,) = Path("kept").glob("*.jsonl")
    assert "What is 3 + 2?" in spilled.read_text()
    assert asked.err.startswith("podium: Traces that could not be written to ")
    assert f" are in {spilled.absolute()}: " in asked.err
    assert asked.err.endswith(f"{Path('kept/traces.sqlite').absolute()} cannot be written (full).\n")
