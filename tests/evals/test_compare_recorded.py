"""A comparison on a recording: every row is what can be worked out by hand, and nothing is chosen on the test."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from recorded_world import TOKENS, UNIT, Right, pool_of, replayed, tasks_of, world, write_recording
from rich.console import Console

from podium.errors import UsageError
from podium.evals import (
    SIMULATED,
    Comparison,
    ComparisonRow,
    ComparisonSettings,
    compare,
    compare_recorded,
    evaluate,
)
from podium.evals.comparison import RECORDED
from podium.evals.plan_selection import best_plans_by_family
from podium.evals.report import render_page
from podium.evals.table import markdown, notes, terminal
from podium.executor import ExecutionSettings
from podium.planner import Plan, Planner, PlanRequest
from podium.planners import Committee, Constant, SelfConsistency, Single
from podium.planners.phrases import ANSWER_WHOLE_QUESTION, CHECK
from podium.ratings.answers import read_answers
from podium.recordings import RecordedQuestion, Recording, Response
from podium.workers import Pool, ScriptedWorker, VoteWorker, Worker
from podium.workers.calculator import CalculatorWorker
from podium.workers.ratings import Ratings, Tally
from podium.workflow import Access, PlanError, Step, Workflow
from scripted_team import SKILLS, Sums, calculator

NAMES = ("ada", "bob", "cy")
ALIKE = 1 + 1e-9
"""Costs are sums of floats."""


def recorded(path: Path, is_right: Right | None = None, **options: object) -> Recording:
    rows = world(**options) if is_right is None else world(is_right, **options)
    return write_recording(path / "made.parquet", rows)


def contest(recording: Recording, *others: Worker, questions: int = 16) -> ComparisonSettings:
    tasks, tuning = tasks_of(recording, "test")[:questions], tasks_of(recording, "train")
    return ComparisonSettings(pool_of(recording, *others), tasks, tuning=tuning)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return recorded(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def alone(recording: Recording) -> Comparison:
    """Without a Conductor."""
    return asyncio.run(compare_recorded(contest(recording)))


@pytest.fixture(scope="module")
def conducted(recording: Recording) -> Comparison:
    """With a Conductor that costs as much as two answers of ada, or of bob."""
    return asyncio.run(compare_recorded(contest(recording), {"Conductor": Committee(("ada", "bob"))}))


def row(comparison: Comparison, label: str) -> ComparisonRow:
    (found,) = (shown for shown in comparison.rows if shown.label.startswith(label))
    return found


def test_where_votes_stop_early_a_method_at_equal_cost_may_name_more(recording: Recording) -> None:
    """Of ada and bob the first wins wherever they differ, so the other is not asked: they cost one answer."""
    stopping = replace(contest(recording), execution=ExecutionSettings(early_stop=True))
    stopped = asyncio.run(compare_recorded(stopping, {"Conductor": Committee(("ada", "bob"))}))
    everybody = asyncio.run(compare_recorded(contest(recording), {"Conductor": Committee(("ada", "bob"))}))
    assert row(stopped, "Conductor").cost_usd == pytest.approx(UNIT)
    assert row(everybody, "Conductor").cost_usd == pytest.approx(2 * UNIT)
    for shown in (stopped, everybody):
        assert row(shown, "Self-consistency").label.startswith("Self-consistency, 2 ×")
        within = row(shown, "Best fixed plan at equal cost")
        assert within.cost_usd <= row(shown, "Conductor").cost_usd * ALIKE
    assert row(stopped, "Best fixed plan:").accuracy == row(everybody, "Best fixed plan:").accuracy
    assert row(stopped, "Best fixed plan:").cost_usd < row(everybody, "Best fixed plan:").cost_usd


def test_a_cascade_counts_agreeing_answers_and_so_calls_both(recording: Recording) -> None:
    stopping = replace(contest(recording), execution=ExecutionSettings(early_stop=True))
    rows = [
        [shown for shown in asyncio.run(compare_recorded(made)).rows if shown.kind == "cascade"]
        for made in (stopping, contest(recording))
    ]
    assert rows[0] == rows[1] != []


def share(recording: Recording, worker: str, family: str = "") -> float:
    """How often the worker's first answer to a test question is right."""
    questions = [q for q in recording.of_split("test") if family in ("", q.family)]
    return fmean(recording.responses(question.text)[worker][0].correct for question in questions)


# --- rows --------------------------------------------------------------------------------------------------

KINDS = [
    "self-consistency",
    *["single"] * 3,
    *["committee"] * 3,
    "cascade",
    *["chosen"] * 2,
    "oracle",
]


def test_the_rows_stand_in_order(alone: Comparison) -> None:
    assert [shown.kind for shown in alone.rows] == KINDS
    starts = (
        *("Self-consistency, 3 × ", "ada alone", "bob alone", "cy alone"),
        *("Best vote of the best ", "Best weighted vote of the best ", "Best fixed plan: "),
        *("", "Best worker of the family (knows the family)", "Best plan of the family (knows the family)"),
        "Oracle (a bound for one answer)",
    )
    assert all(shown.label.startswith(start) for shown, start in zip(alone.rows, starts, strict=True))
    assert " and " in alone.rows[7].label
    assert ", else " in alone.rows[7].label


def test_without_a_conductor_nothing_is_compared_with_it(alone: Comparison) -> None:
    assert all(shown.difference is None for shown in alone.rows)
    assert (alone.questions, alone.pool) == (16, (*NAMES, "vote"))


def test_a_single_worker_is_as_often_right_as_in_the_recording(
    recording: Recording, alone: Comparison
) -> None:
    by_hand = {"ada": 9 / 16, "bob": 8 / 16, "cy": 8 / 16}
    for name in NAMES:
        shown = row(alone, f"{name} alone")
        assert shown.accuracy.mean == share(recording, name) == by_hand[name]
        assert (shown.steps, shown.calls, shown.failures, shown.validity) == (1, 1, 0, 1)
        assert shown.cost_usd == pytest.approx(UNIT * (4 if name == "cy" else 1))


async def test_a_calculator_is_a_worker_of_the_comparison_like_any(recording: Recording) -> None:
    compared = await compare_recorded(contest(recording, CalculatorWorker()))
    shown = row(compared, "calculator alone")
    assert (shown.accuracy.mean, shown.cost_usd) == (0, 0)
    assert row(compared, "ada alone").accuracy.mean == share(recording, "ada")


def test_the_best_worker_of_the_family_is_right_as_worked_out_by_hand(
    recording: Recording, alone: Comparison
) -> None:
    shown = row(alone, "Best worker of the family")
    assert shown.accuracy.mean == fmean([share(recording, "ada", "sums"), share(recording, "bob", "words")])
    assert shown.accuracy.mean == 12 / 16


def test_the_best_plan_of_the_family_is_at_least_its_best_worker_here(alone: Comparison) -> None:
    shown = row(alone, "Best plan of the family")
    assert shown.accuracy.mean >= row(alone, "Best worker of the family").accuracy.mean
    assert shown.calls > 1, "no family's best plan asks more than once"


async def test_the_best_plan_of_the_family_is_chosen_on_training_questions(
    tmp_path: Path, alone: Comparison
) -> None:
    flipped = await compare_recorded(contest(recorded(tmp_path, flipped=["train"])))
    best, worst = row(alone, "Best plan of the family"), row(flipped, "Best plan of the family")
    assert worst.accuracy.mean < best.accuracy.mean


async def test_several_conductors_are_compared_with_the_first(recording: Recording) -> None:
    found = await compare_recorded(contest(recording), {"thrift 0": Single("cy"), "thrift 1": Single("ada")})
    first, second, third = found.rows[:3]
    assert [first.label, second.label, third.kind] == ["thrift 0", "thrift 1", "self-consistency"]
    assert first.difference is None
    assert second.difference is not None
    assert second.difference.mean == pytest.approx(first.accuracy.mean - second.accuracy.mean)
    assert third.cost_usd <= first.cost_usd * ALIKE


def test_nothing_is_beyond_the_recording_if_steps_have_the_plain_question(conducted: Comparison) -> None:
    assert {shown.beyond_recording for shown in conducted.rows} == {0.0}


def test_the_cascade_takes_its_second_round(alone: Comparison) -> None:
    (cascade,) = (shown for shown in alone.rows if shown.kind == "cascade")
    assert 3 < cascade.calls < 4, "two answers and the vote, then a third answer where they differ"


def test_unknown_families_are_not_reported(tmp_path: Path) -> None:
    rows = [
        (type(question)(question.id, question.text, None, None, question.split), responses)
        for question, responses in world()
    ]
    found = asyncio.run(compare_recorded(contest(write_recording(tmp_path / "r.parquet", rows), questions=2)))
    assert [shown.kind for shown in found.rows] == [kind for n, kind in enumerate(KINDS) if n not in (8, 9)]


# --- the oracle --------------------------------------------------------------------------------------------


def test_the_oracle_is_at_least_as_good_as_every_choice_of_a_worker(alone: Comparison) -> None:
    oracle = row(alone, "Oracle").accuracy.mean
    for shown in alone.rows:
        if shown.kind in ("single", "chosen"):
            assert oracle >= shown.accuracy.mean


async def test_the_oracle_bounds_every_worker_alone_whichever_sample_it_gives(tmp_path: Path) -> None:
    def first_or_later(worker: str, family: str, number: int, sample: int) -> bool:
        return worker != "cy" and (worker == "ada") == (sample == 0)

    found = await compare_recorded(contest(recorded(tmp_path, first_or_later)))
    assert row(found, "ada alone").accuracy.mean == 1.0
    assert row(found, "Oracle").accuracy.mean == 1.0


async def test_of_equally_good_workers_the_oracle_calls_the_cheapest(tmp_path: Path) -> None:
    def always(worker: str, family: str, number: int, sample: int) -> bool:
        return True

    found = await compare_recorded(contest(recorded(tmp_path, always), questions=2))
    assert row(found, "Oracle").cost_usd == pytest.approx(UNIT)


async def test_the_oracle_calls_the_cheapest_if_no_worker_is_right(
    tmp_path: Path,
) -> None:
    rows = [
        (
            RecordedQuestion(f"{split}{number}", f"{split} question {number}", None, None, split),
            [
                Response(name, 0, f"Answer: {name}", score=score, input_tokens=0, output_tokens=TOKENS)
                for name, score in (("ada", 0.0), ("bob", 0.0), ("cy", 0.01))
            ],
        )
        for split in ("train", "test")
        for number in range(4)
    ]
    found = await compare_recorded(contest(write_recording(tmp_path / "r.parquet", rows)))
    assert row(found, "Oracle").cost_usd == pytest.approx(UNIT)


# --- choices -----------------------------------------------------------------------------------------------


async def test_choices_are_made_on_training_questions_alone(tmp_path: Path, alone: Comparison) -> None:
    flipped = await compare_recorded(contest(recorded(tmp_path, flipped=["test"])))
    assert [shown.label for shown in flipped.rows] == [shown.label for shown in alone.rows]
    for before, after in zip(alone.rows, flipped.rows, strict=True):
        assert after.steps == before.steps
        if after.kind != "oracle":
            assert after.accuracy.mean == pytest.approx(1 - before.accuracy.mean), after.label


async def test_other_verdicts_on_training_questions_make_other_choices(
    tmp_path: Path, alone: Comparison
) -> None:
    flipped = await compare_recorded(contest(recorded(tmp_path, flipped=["train"])))
    assert [shown.label for shown in flipped.rows] != [shown.label for shown in alone.rows]
    assert row(flipped, "Best worker of the family").accuracy.mean < 0.5
    for name in NAMES:
        assert row(flipped, f"{name} alone") == row(alone, f"{name} alone")


# --- beside a Conductor ------------------------------------------------------------------------------------


def test_the_conductor_comes_first_and_a_plan_at_its_cost_beside_the_best(conducted: Comparison) -> None:
    kinds = [shown.kind for shown in conducted.rows]
    assert kinds == ["conductor", *KINDS[:6], "committee", *KINDS[6:]]
    first = conducted.rows[0]
    assert (first.label, first.difference) == ("Conductor", None)
    assert first.cost_usd == pytest.approx(2 * UNIT)
    assert row(conducted, "Best fixed plan at equal cost: ").cost_usd <= first.cost_usd * ALIKE


def test_differences_are_the_conductor_minus_the_row(conducted: Comparison) -> None:
    first, *others = conducted.rows
    for shown in others:
        assert shown.difference is not None
        assert shown.difference.mean == pytest.approx(first.accuracy.mean - shown.accuracy.mean)


def test_every_row_beside_the_conductor_is_tested_and_adjusted(
    conducted: Comparison,
) -> None:
    first, *others = conducted.rows
    assert (first.p_value, first.adjusted_p) == (None, None)
    smallest = min(others, key=lambda row: row.p_value or 0.0)
    assert smallest.p_value is not None
    assert smallest.adjusted_p == pytest.approx(min(1.0, smallest.p_value * len(others)))
    assert f"for the {len(others)} rows that have one" in markdown(conducted)
    assert f", p {smallest.adjusted_p:.2g} |" in markdown(conducted)


async def test_a_row_equal_to_the_conductor_is_not_behind_it(recording: Recording) -> None:
    found = await compare_recorded(contest(recording, questions=8), {"Conductor": Single("cy")})
    same = row(found, "cy alone")
    assert same.difference is not None
    assert (same.difference.low, same.difference.mean, same.difference.high) == (0, 0, 0)
    assert same.accuracy == found.rows[0].accuracy


@pytest.mark.parametrize(
    ("conductor", "samples"),
    [(Single("bob"), 1), (SelfConsistency("ada", 2), 2), (SelfConsistency("cy", 3), 3)],
    ids=lambda value: getattr(value, "name", str(value)),
)
async def test_self_consistency_stays_within_the_conductors_cost_and_samples(
    recording: Recording, conductor: Planner, samples: int
) -> None:
    found = await compare_recorded(contest(recording, questions=4), {"Conductor": conductor})
    chosen = row(found, "Self-consistency")
    assert chosen.label in {f"Self-consistency, {samples} × {name}" for name in NAMES}
    assert chosen.cost_usd <= found.rows[0].cost_usd * ALIKE
    assert row(found, "Best fixed plan at equal cost: ").cost_usd <= found.rows[0].cost_usd * ALIKE


def uneven(path: Path, ada_is_right: Callable[[int, int], bool]) -> Recording:
    """bob has one sample, right on the first eight of ten questions; ada has three."""
    rows = []
    for split in ("train", "test"):
        for number in range(10):
            good = [("bob", 0, number < 8), *(("ada", s, ada_is_right(number, s)) for s in range(3))]
            responses = [
                Response(
                    name,
                    sample,
                    f"Answer: {'yes' if is_right else f'no {name}'}",
                    score=float(is_right),
                    output_tokens=TOKENS,
                )
                for name, sample, is_right in good
            ]
            question = RecordedQuestion(f"{split}{number}", f"{split} {number}?", None, "all", split)
            rows.append((question, responses))
    return write_recording(path / "uneven.parquet", rows)


async def test_self_consistency_calls_no_worker_more_often_than_it_has_samples(
    tmp_path: Path,
) -> None:
    recording = uneven(tmp_path, lambda number, sample: (number + sample) % 10 < 4)
    found = await compare_recorded(contest(recording))
    assert found.rows[0].label == "Self-consistency, 1 × bob"
    assert found.rows[0].cost_usd == pytest.approx(UNIT)


async def test_the_plan_of_a_family_calls_no_worker_beyond_its_samples(
    tmp_path: Path,
) -> None:
    # Right on all would be two answers of bob and three of ada, who agrees with herself where he is wrong.
    recording = uneven(tmp_path, lambda number, sample: number >= 8 or sample == 2)
    plans = best_plans_by_family(await read_answers(tasks_of(recording, "train"), replayed(recording)))
    assert plans["all"].workers.count("bob") <= 1


async def test_the_plan_of_a_family_is_of_the_ten_best_workers(tmp_path: Path) -> None:
    names = [f"w{number:02}" for number in range(11)]
    rows = []
    for number in range(40):
        family = "usual" if number < 37 else "odd"
        good = names[:10] if family == "usual" else names[10:]
        responses = [
            Response(name, 0, f"Answer: {'yes' if name in good else f'no {name}'}", score=float(name in good))
            for name in names
        ]
        rows.append((RecordedQuestion(f"q{number}", f"Question {number}?", None, family, "train"), responses))
    recording = write_recording(tmp_path / "r.parquet", rows)
    plans = best_plans_by_family(await read_answers(tasks_of(recording, "train"), replayed(recording)))
    assert set(plans) == {"usual", "odd"}
    assert "w10" not in plans["odd"].workers


async def test_a_conductor_cheaper_than_every_worker_is_compared_too(
    tmp_path: Path,
) -> None:
    asked = contest(recorded(tmp_path, train_tokens=400), questions=2)
    found = await compare_recorded(asked, {"Conductor": Single("ada")})
    assert found.rows[0].kind == "conductor"
    assert row(found, "Self-consistency").label in {
        f"Self-consistency, 1 × {name}" for name in ("ada", "bob")
    }


# --- notes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("readable", "share"), [(0, "100.0 %"), (3, "25.0 %"), (4, None)], ids=["none", "three", "all"]
)
async def test_plans_that_could_not_be_read_are_reported(
    recording: Recording, readable: int, share: str | None
) -> None:
    class Unreadable:
        name = "unreadable"
        asked = 0

        async def plan(self, request: PlanRequest) -> Plan:
            self.asked += 1
            if self.asked <= readable:
                return await Single("ada").plan(request)
            return Plan("Well.", PlanError("no_plan", "There are no lists."))

    found = await compare_recorded(contest(recording, questions=4), {"Conductor": Unreadable()})
    told = [note for note in notes(found) if "could not be read" in note]
    if share is None:
        assert told == []
    else:
        (note,) = told
        assert note.startswith(f"Conductor: {share} of its plans could not be")
        for shown in (markdown(found), " ".join(drawn(found).split()), render_page("made", [], found)):
            assert note in shown


async def test_a_share_that_one_decimal_does_not_show_is_reported(alone: Comparison) -> None:
    first, *others = alone.rows
    shown = alone.model_copy(update={"rows": (first.model_copy(update={"validity": 0.9999}), *others)})
    (note,) = (note for note in notes(shown) if "could not be read" in note)
    assert ": under 0.1 % of its plans" in note


# --- refusals ----------------------------------------------------------------------------------------------


async def test_without_recorded_workers_or_training_questions_nothing_compares(
    recording: Recording,
) -> None:
    test, train = tasks_of(recording, "test"), tasks_of(recording, "train")
    only = replayed(recording)[0]
    live = calculator("live", *SKILLS)
    for bad in (
        ComparisonSettings(Pool([live, VoteWorker()]), test, train),
        ComparisonSettings(Pool([only, live, VoteWorker()]), test, train),
        ComparisonSettings(pool_of(recording), test),
    ):
        with pytest.raises(UsageError, match='two workers of kind = "replay" or more, and training'):
            await compare_recorded(bad)


async def test_a_pool_that_cannot_vote_is_lent_the_tool(recording: Recording, alone: Comparison) -> None:
    test, train = tasks_of(recording, "test"), tasks_of(recording, "train")
    found = await compare_recorded(ComparisonSettings(Pool(replayed(recording)), test[:2], tuning=train))
    assert [shown.label for shown in found.rows] == [shown.label for shown in alone.rows]
    assert found.pool == NAMES


async def test_a_pool_that_is_lent_the_tool_keeps_its_ratings(recording: Recording) -> None:
    tallies = {"": Tally(right=3, questions=4, cost_usd=0.1)}
    rated = Pool(replayed(recording), Ratings(clusters={}, workers={"ada": tallies}))
    found = await ComparisonSettings(rated, tasks_of(recording, "test")[:1]).run(
        "a vote", SelfConsistency("ada", 2)
    )
    told = {profile.name: profile.rating for profile in found.rollouts[0].trace.pool}
    assert set(told) == {*NAMES, "vote"}
    assert told["ada"] is not None
    assert told["ada"].accuracy == pytest.approx(3 / 4)


# --- what is said of it ------------------------------------------------------------------------------------


async def test_a_comparison_says_how_far_a_row_goes_beyond_the_recording(recording: Recording) -> None:
    conductor = Constant(Workflow((Step(0, ANSWER_WHOLE_QUESTION), Step(1, CHECK, Access(all=True)))), NAMES)
    found = await compare_recorded(contest(recording, questions=4), {"Conductor": conductor})
    assert found.rows[0].beyond_recording == pytest.approx(1 / 2)
    sentence = "Conductor: 50.0 % of its recorded responses answer the plain question, although the step had"
    assert [note.startswith(sentence) for note in notes(found)].count(True) == 1
    assert sum("recorded responses answer the plain question" in note for note in notes(found)) == 1


def drawn(comparison: Comparison) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(terminal(comparison))
    return console.export_text()


def test_a_recorded_comparison_says_so_and_is_not_called_simulated(alone: Comparison, tmp_path: Path) -> None:
    assert (alone.recorded, alone.simulated) == (True, False)
    page = render_page("made", [], alone)
    for text in (markdown(alone), page):
        assert RECORDED in text
        assert SIMULATED not in text
    assert "Recorded responses" in drawn(alone)
    assert "Simulated workers" not in drawn(alone)
    assert "answer the plain question" not in page
    alone.save(tmp_path / "comparison.json")
    assert Comparison.load(tmp_path / "comparison.json") == alone


async def test_times_are_called_unknown_only_where_none_is_known(tmp_path: Path, alone: Comparison) -> None:
    timed = [
        (question, [replace(response, seconds=2.0) for response in responses])
        for question, responses in world()
    ]
    found = await compare_recorded(contest(write_recording(tmp_path / "r.parquet", timed), questions=2))
    assert found.rows[0].latency_s > 0
    for comparison, known in ((found, True), (alone, False)):
        for text in (markdown(comparison), render_page("made", [], comparison), drawn(comparison)):
            assert RECORDED in " ".join(text.split())
            assert ("Times are not known." in text) is not known


def test_without_a_conductor_there_is_no_cost_to_be_equal_to(
    alone: Comparison, conducted: Comparison
) -> None:
    assert "self-consistency, equal cost" not in tiles(alone)
    assert "self-consistency" in tiles(alone)
    assert "self-consistency, equal cost" in tiles(conducted)
    for comparison in (alone, conducted):
        assert "Oracle (a bound for one answer)" in tiles(comparison)


async def test_the_conductors_tile_shows_the_row_others_are_compared_with(
    recording: Recording, conducted: Comparison
) -> None:
    found = await compare_recorded(
        contest(recording),
        {"Conductor, cost sensitivity 0": Single("bob"), "Conductor, cost sensitivity 1": Single("ada")},
    )
    assert found.rows[0].accuracy.mean < found.rows[1].accuracy.mean
    assert tiles(found)["Conductor, cost sensitivity 0"] == f"{found.rows[0].accuracy.mean * 100:.1f} %"
    assert "trained Conductor" in tiles(conducted)


def tiles(comparison: Comparison) -> dict[str, str]:
    """What each tile of the page shows, by its words."""
    found = re.findall(
        r'class="tile"><b>(.*?)</b><span[^>]*>(.*?)</span>', render_page("made", [], comparison)
    )
    return {words: figure for figure, words in found}


def test_the_page_shows_every_row(conducted: Comparison) -> None:
    page = render_page("made", [], conducted)
    assert all(shown.label in page for shown in conducted.rows)


async def test_a_simulated_comparison_is_not_called_recorded() -> None:
    pool = Pool([calculator("left", *SKILLS)])
    found = await compare(ComparisonSettings(pool, list(Sums("test", 3))), Single("left"))
    assert (found.recorded, found.simulated) == (False, True)
    assert RECORDED not in markdown(found) + render_page("made", [], found)
    assert "Recorded responses" not in drawn(found)
    assert "Simulated workers" in drawn(found)


async def test_a_comparison_over_both_says_both(recording: Recording) -> None:
    simulated = calculator("live", *SKILLS)
    contested = contest(recording, simulated)
    found = await compare(ComparisonSettings(contested.pool, contested.tasks[:2]), Single("ada"))
    assert (found.recorded, found.simulated) == (True, True)
    assert "Simulated workers, Recorded responses" in drawn(found)


async def test_a_simulated_conductors_row_beside_recorded_ones_is_simulated(
    recording: Recording,
) -> None:
    found = await compare_recorded(
        contest(recording, calculator("live", *SKILLS), questions=2), {"Conductor": Single("live")}
    )
    assert (found.recorded, found.simulated) == (True, True)


@pytest.mark.parametrize(
    ("planner", "recorded", "simulated"),
    [
        (Single("ada"), True, False),
        (SelfConsistency("ada", 2), True, False),
        (Single("live"), False, True),
        (Committee(("ada", "live")), True, True),
        (Single("vote"), False, False),
        (Single("script"), False, False),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
async def test_an_evaluation_knows_if_a_recording_or_simulation_had_a_part(
    recording: Recording, planner: Planner, recorded: bool, simulated: bool
) -> None:
    others = (calculator("live", *SKILLS), ScriptedWorker("script", {"": "Answer: yes"}))
    found = await evaluate(planner, tasks_of(recording, "test")[:2], pool_of(recording, *others))
    assert (found.recorded, found.simulated) == (recorded, simulated)
