"""`podium eval` and `podium ask` over recorded responses, and that both say what they show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.evals import Comparison
from podium.evals.comparison import RECORDED
from podium.recordings import RecordedQuestion, RecordedResponse, RecordingWriter
from refused_commands import one_sentence
from small_recording import record_small
from tiny_policy import write_policy

Podium = Callable[..., Any]
POOL = """
[[worker]]
name = "ada"
kind = "replay"
recording = "rec.parquet"
price = { output = 1.0 }

[[worker]]
name = "bob"
kind = "replay"
recording = "rec.parquet"
price = { output = 2.0 }

[[worker]]
name = "vote"
kind = "vote"
"""
EVAL = ("eval", "--tasks", "rec.parquet", "--pool", "replay.toml")


@pytest.fixture(autouse=True)
def _recording() -> None:
    """12 questions, of which ada knows the even ones and bob those that 3 divides."""
    knows = {"ada": lambda number: number % 2 == 0, "bob": lambda number: number % 3 == 0}
    record_small(Path("rec.parquet"), knows, questions=12, train=6, output_tokens=40)
    Path("replay.toml").write_text(POOL)


# --- podium eval -------------------------------------------------------------------------------------------


def test_evaluation_table_names_recorded_responses(podium: Podium, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    shown = podium(*EVAL, "--split", "test")
    assert (shown.status, shown.err) == (0, "Written to eval/report.html\n")
    for part in (
        "Recorded responses",
        "ada alone",
        "Oracle (a bound for one answer)",
        "6 held-out questions",
        "50.0 %",
    ):
        assert part in shown.out
    assert "Conductor, untrained" not in shown.out


def test_eval_json_output_is_the_comparison(podium: Podium) -> None:
    shown = podium(*EVAL, "--json")
    assert (shown.status, shown.out.count("\n")) == (0, 1)
    comparison = Comparison.model_validate_json(shown.out)
    assert (comparison.recorded, comparison.questions) == (True, 6)
    accuracies = {row.label: row.accuracy.mean for row in comparison.rows}
    assert accuracies["ada alone"] == pytest.approx(3 / 6)
    assert accuracies["bob alone"] == pytest.approx(2 / 6)
    assert accuracies["Oracle (a bound for one answer)"] == pytest.approx(4 / 6)
    assert "conductor" not in {row.kind for row in comparison.rows}


def test_votes_that_stop_early_say_so_in_the_notes_and_answer_alike(podium: Podium) -> None:
    shown = [
        Comparison.model_validate_json(podium(*EVAL, "--json", *extra).out)
        for extra in ((), ("plan.early_stop=true",))
    ]
    everybody, stopped = ({row.label: row for row in comparison.rows} for comparison in shown)
    assert list(everybody) == list(stopped)
    assert {label: row.accuracy for label, row in everybody.items()} == {
        label: row.accuracy for label, row in stopped.items()
    }
    early = [any(note.startswith("In every row votes stopped early") for note in one.notes) for one in shown]
    assert early == [False, True]


def test_eval_markdown_states_recording_and_number_of_questions(podium: Podium) -> None:
    shown = podium(*EVAL, "--markdown", "--questions", "4", "eval.tuning=5", "eval.repeats=2")
    assert shown.status == 0
    assert RECORDED in shown.out
    assert "4 held-out questions" in shown.out


def test_a_run_folder_gets_the_comparison_and_the_report(podium: Podium) -> None:
    shown = podium(*EVAL, "--run", "kept/r", "--json")
    assert shown.status == 0
    assert Comparison.load(Path("kept/r/comparison.json")) == Comparison.model_validate_json(shown.out)
    assert RECORDED in Path("kept/r/report.html").read_text(encoding="utf-8")


# --- what a recording lacks --------------------------------------------------------------------------------


def write(*, judged: int = 12, bob: int = 12, text: bool = True, gold: str | None = None) -> None:
    """The recording anew.

    Args:
        judged: questions whose responses have verdicts, the first ones of the training and the test questions alike.
        bob: questions that bob answered, counted in the same way.
        text: whether anything is known of a response besides its answer.
    """
    with RecordingWriter() as writer:
        for number in range(12):
            split = "train" if number % 2 else "test"
            writer.add_question(RecordedQuestion(f"q{number:02}", f"Is {number} right?", gold, None, split))
            for worker in ("ada", "bob") if number < bob else ("ada",):
                right = number % (3 if worker == "ada" else 4) == 0
                said = "yes" if right else f"no {worker} {number}"
                response = RecordedResponse(
                    worker,
                    0,
                    f"Let me see.\nAnswer: {said}" if text else f"<answer>{said}</answer>",
                    said,
                    float(right) if number < judged else None,
                )
                writer.add(f"q{number:02}", response)
        writer.write(Path("rec.parquet"), name="rec")


def test_ungraded_questions_are_not_wrong_answers_and_are_reported(podium: Podium) -> None:
    write(judged=6)
    shown = podium(*EVAL, "--json")
    left_out = (
        "3 of 6 questions are left out, since they have no gold answer, and a response without a verdict"
    )
    assert shown.status == 0
    assert f"rec/test: {left_out}" in shown.err
    comparison = Comparison.model_validate_json(shown.out)
    accuracies = {row.label: row.accuracy.mean for row in comparison.rows}
    assert comparison.questions == 3
    assert accuracies["ada alone"] == pytest.approx(1 / 3)
    assert accuracies["bob alone"] == pytest.approx(2 / 3)
    assert left_out in podium(*EVAL, "--markdown").out


def test_evaluation_reports_left_out_questions_and_the_worker_lacking_them(podium: Podium) -> None:
    write(bob=4)
    shown = podium(*EVAL, "--run", "kept/r", "--markdown")
    sentence = (
        "rec/test: 4 of 6 questions are left out, since a worker of the pool never answered them (bob: 4)."
    )
    assert shown.status == 0
    assert sentence in shown.err
    assert sentence in shown.out
    assert sentence in Path("kept/r/report.html").read_text(encoding="utf-8")


def test_evaluation_notes_that_costs_omit_unknown_output_tokens(podium: Podium) -> None:
    write(text=False)
    shown = podium(*EVAL, "--json")
    comparison = Comparison.model_validate_json(shown.out)
    assert {row.cost_usd for row in comparison.rows} == {0.0}
    assert "the output tokens of ada, bob, so their cost counts input tokens alone" in " ".join(
        comparison.notes
    )
    Path("replay.toml").write_text(POOL.replace("price", "assumed_output_tokens = 50\nprice"))
    assumed = Comparison.model_validate_json(podium(*EVAL, "--json").out)
    assert {row.label: row.cost_usd for row in assumed.rows}["bob alone"] == pytest.approx(1e-4)
    assert not any("output tokens" in note for note in assumed.notes)
    assert any(note.startswith("Look 2") for note in assumed.notes)


# --- a Conductor that reads ratings ------------------------------------------------------------------------

POLICY = "reads-ratings"
UNRATED = (
    "cannot lead this pool: it reads the ratings of workers, and this pool has none; podium rate makes them."
)


@pytest.fixture
def _policy() -> None:
    vote = (
        'model_id = [1, 2, 0]\nsubtasks = ["Answer.", "Answer.", "Vote."]\naccess_list = [[], [], ["all"]]\n'
    )
    prompt = {"style": "brief", "levels": 8}
    said = {"prompt": prompt, "conducts": {"questions": "recorded questions", "ratings": True}}
    write_policy(Path(POLICY), vote, podium=said)
    write_policy(Path("another"))


@pytest.mark.usefixtures("_policy")
def test_conductor_that_reads_ratings_is_refused_for_an_unrated_pool(podium: Podium) -> None:
    shown = podium(*EVAL, "--conductor", POLICY, "--questions", "2", "--json")
    assert (shown.status, shown.err.count(UNRATED)) == (2, 1)
    planned = podium("plan", "Is 6 right?", "--pool", "replay.toml", "--conductor", POLICY, "--seed", "1")
    assert (planned.status, planned.err.count(UNRATED)) == (2, 1)


@pytest.mark.usefixtures("_policy")
def test_recorded_evaluation_has_a_row_for_each_cost_sensitivity_level(podium: Podium) -> None:
    podium("rate", "rec.parquet", "ratings.json", "--pool", "replay.toml", "--clusters", "1")
    Path("rated.toml").write_text('ratings = "ratings.json"\n' + POOL)
    given = ("eval", "--tasks", "rec.parquet", "--pool", "rated.toml", "--conductor", POLICY, "--json")
    for keys, labels in (
        (("plan.cost_sensitivity=3",), ["Conductor, cost sensitivity 3"]),
        ((), [f"Conductor, cost sensitivity {level}" for level in range(8)]),
    ):
        rows = Comparison.model_validate_json(podium(*given, *keys).out).rows
        assert [row.label for row in rows if row.kind == "conductor"] == labels


@pytest.mark.usefixtures("_policy")
def test_with_ratings_or_another_planner_there_is_no_warning(podium: Podium) -> None:
    podium("rate", "rec.parquet", "ratings.json", "--pool", "replay.toml", "--clusters", "1")
    Path("rated.toml").write_text('ratings = "ratings.json"\n' + POOL)
    rated = podium("plan", "Is 6 right?", "--pool", "rated.toml", "--conductor", POLICY, "--seed", "1")
    assert UNRATED not in rated.err
    for options in (("--conductor", "another"), ("--planner", "single:ada"), ()):
        assert UNRATED not in podium("plan", "Is 6 right?", "--pool", "replay.toml", *options).err


# --- asking wrongly ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (
            ("--split", "train", "eval.tuning=4"),
            "Planners make their choices on train questions; evaluate on another --split",
        ),
        (("--split", "tests"), "There is no split 'tests'; did you mean 'test'?"),
        (("--planner", "single:zoe"), "zoe"),
        (("--conductor", POLICY), "reads-ratings is not a folder"),
        (
            ("--questions", "0"),
            "eval.questions is 0",
        ),
        (("--tasks", "none.parquet"), "none.parquet: there is no such file"),
    ],
)
def test_asking_wrongly_is_one_sentence_and_writes_nothing(
    podium: Podium, tokens: tuple[str, ...], sentence: str
) -> None:
    kept = [pair for pair in zip(EVAL[1::2], EVAL[2::2], strict=True) if pair[0] != tokens[0]]
    before = sorted(Path().rglob("*"))
    assert sentence in one_sentence(podium("eval", *(part for pair in kept for part in pair), *tokens))
    assert sorted(Path().rglob("*")) == before


# --- podium ask --------------------------------------------------------------------------------------------


def test_drawing_marks_responses_of_a_replay_pool_as_recorded(podium: Podium) -> None:
    asked = podium(
        "ask", "Is 6 right?", "--pool", "replay.toml", "--planner", "self-consistency:ada:2", "--no-store"
    )
    assert asked.status == 0
    assert "Recorded: 2 responses, given to the bare question beforehand." in asked.out
    assert asked.out.count("recorded as rec#q6/ada/0") == 2
    assert "imulated" not in asked.out


def test_replay_pool_refuses_planners_that_show_workers_other_responses(podium: Podium) -> None:
    for command in (["ask", "Is 6 right?", "--no-store"], ["serve"]):
        refused = podium(*command, "--pool", "replay.toml", "--planner", "fusion:ada:bob")
        assert (refused.status, refused.out) == (2, "")
        assert (
            "The planner 'fusion:ada:bob' gives workers more than the bare question, and this pool's recording has no "
            "answers to that; use a pool of live workers, or one of these planners: single, "
        ) in " ".join(refused.err.split())
