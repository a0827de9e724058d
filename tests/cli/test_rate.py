"""`podium rate`: a file of ratings from a recording, and what a pool that names it tells of a question."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.recordings import RecordedQuestion, RecordedResponse, RecordingWriter, ShownContext
from podium.trace import Trace
from podium.types import Profile
from podium.workers.ratings import Ratings, Tally
from refused_commands import one_sentence

Podium = Callable[..., Any]
WORKER = (
    '\n[[worker]]\nname = "{}"\nkind = "replay"\nrecording = "{}rec.parquet"\nprice = {{ output = {} }}\n'
)
PRICES = {"ada": 1.0, "bob": 2.0, "cy": 4.0}
VOTE = '\n[[worker]]\nname = "vote"\nkind = "vote"\n'
RATE = ("rate", "rec.parquet", "made/ratings.json", "--pool", "replay.toml", "--clusters", "2")
SUM, RIVER = "Add 21 apples to the basket.", "Spell river number 20 backwards."
TOKENS = 40
COST = TOKENS / 1e6
"""Of an answer of ada's."""


def pool_text(*names: str, above: str = "", ratings: str = "") -> str:
    """A team file of recorded workers and the vote; `above` leads from its folder to the recording's."""
    named = f'ratings = "{ratings}"\n' if ratings else ""
    return named + "".join(WORKER.format(name, above, PRICES[name]) for name in names) + VOTE


@pytest.fixture(autouse=True)
def _recording() -> None:
    """Odd questions are sums, which ada knows; even ones are words, which bob knows; cy knows half of each."""
    with RecordingWriter() as writer:
        for number in range(24):
            is_sum = number % 2 == 1
            text = (
                f"Add {number} apples to the basket." if is_sum else f"Spell river number {number} backwards."
            )
            split = "train" if number < 16 else "test"
            writer.add_question(RecordedQuestion(f"q{number}", text, "yes", None, split))
            for worker, right in (("ada", is_sum), ("bob", not is_sum), ("cy", number % 4 < 2)):
                said = f"Answer: {'yes' if right else f'no {worker}'}"
                response = RecordedResponse(worker, 0, said, score=float(right), output_tokens=TOKENS)
                writer.add(f"q{number}", response)
        writer.write(Path("rec.parquet"), name="rec")
    Path("replay.toml").write_text(pool_text("ada", "bob"))


def tally(right: float, cost_usd: float, questions: int = 8) -> Tally:
    return Tally(right=right, questions=questions, cost_usd=round(cost_usd, 9))


# --- podium rate -------------------------------------------------------------------------------------------


def test_training_questions_are_sorted_into_kinds_and_counted_by_worker(podium: Podium) -> None:
    made = podium(*RATE)
    assert (made.status, made.err) == (0, "")
    ratings = Ratings.open(Path("made/ratings.json"))
    assert len(ratings.clusters) == 2
    sums, words = ratings.cluster_of(SUM), ratings.cluster_of(RIVER)
    assert {sums, words} == set(ratings.clusters)
    assert ratings.workers == {
        "ada": {sums: tally(8, 8 * COST), words: tally(0, 8 * COST)},
        "bob": {sums: tally(0, 16 * COST), words: tally(8, 16 * COST)},
    }


def test_rating_table_shows_accuracy_cost_and_best_cluster_of_each_worker(podium: Podium) -> None:
    made = podium(*RATE)
    ratings = Ratings.open(Path("made/ratings.json"))
    assert "made/ratings.json: 2 clusters of questions" in made.out
    (ada,) = [line for line in made.out.splitlines() if "ada" in line]
    (bob,) = [line for line in made.out.splitlines() if "bob" in line]
    for part in ("50.0%", "$0.040", ratings.cluster_of(SUM)):
        assert part in ada
    for part in ("50.0%", "$0.080", ratings.cluster_of(RIVER)):
        assert part in bob
    assert ratings.cluster_of(RIVER) not in ada
    assert "vote" not in made.out
    assert 'ratings = "made/ratings.json"' in made.out


def test_ungraded_questions_are_not_counted_and_are_reported(podium: Podium) -> None:
    with RecordingWriter() as writer:
        for number in range(8):
            writer.add_question(RecordedQuestion(f"q{number}", f"Add {number} apples.", None, None, "train"))
            for worker in ("ada", "bob"):
                judged = 1.0 if number < 6 else None
                writer.add(
                    f"q{number}", RecordedResponse(worker, 0, f"Answer: {worker} {number}", score=judged)
                )
        writer.write(Path("rec.parquet"), name="rec")
    made = podium(*RATE[:-1], "1")
    assert made.status == 0
    assert "2 of 8" in made.err
    assert "ada: 2, bob: 2" in made.err
    totals = Ratings.open(Path("made/ratings.json")).totals
    assert [(total.right, total.questions) for total in totals.values()] == [(6, 6), (6, 6)]


def test_a_judge_without_answers_to_bare_questions_is_named_and_not_rated(podium: Podium) -> None:
    with RecordingWriter() as writer:
        for number in range(4):
            writer.add_question(RecordedQuestion(f"q{number}", f"Add {number} apples.", "1", None, "train"))
            writer.add(f"q{number}", RecordedResponse("ada", 0, "Answer: 1", score=1.0))
            seen = ShownContext("Judge it.", (("Answer the question.", "Answer: 1"),))
            writer.add(f"q{number}", RecordedResponse("judge", 0, "It is right.", score=1.0), seen=seen)
        writer.write(Path("rec.parquet"), name="rec")
    judge = WORKER.format("judge", "", 1.0)
    Path("replay.toml").write_text(pool_text("ada") + judge)
    made = podium(*RATE[:-1], "1", "--words")
    assert made.status == 0, made.err
    assert "judge" in made.err
    assert list(Ratings.open(Path("made/ratings.json")).workers) == ["ada"]
    Path("replay.toml").write_text(judge)
    assert "judge" in one_sentence(podium(*RATE))


def test_rate_json_is_one_line_equal_to_the_ratings_file(podium: Podium) -> None:
    made = podium(*RATE, "--json")
    assert (made.status, made.err, made.out.count("\n")) == (0, "", 1)
    assert Ratings.model_validate_json(made.out) == Ratings.open(Path("made/ratings.json"))
    assert sorted(file.name for file in Path("made").iterdir()) == ["ratings.json"]


def test_adding_a_worker_keeps_clusters_and_other_workers_of_ratings(podium: Podium) -> None:
    podium(*RATE)
    before = Ratings.open(Path("made/ratings.json"))
    Path("more.toml").write_text(pool_text("cy"))
    like = ("--like", "made/ratings.json")
    added = podium("rate", "rec.parquet", "more.json", "--pool", "more.toml", *like)
    assert added.status == 0
    for name in ("ada", "bob", "cy"):
        assert name in added.out
    after = Ratings.open(Path("more.json"))
    assert after.clusters == before.clusters
    assert list(after.workers) == ["ada", "bob", "cy"]
    assert {name: after.workers[name] for name in before.workers} == before.workers
    assert after.workers["cy"] == {kind: tally(4, 4 * 8 * COST) for kind in before.clusters}
    assert Ratings.open(Path("made/ratings.json")) == before


def test_a_worker_that_is_measured_again_is_counted_anew_and_not_twice(podium: Podium) -> None:
    podium(*RATE, "--split", "test")
    Path("one.toml").write_text(pool_text("ada"))
    # The file may be the one that it is like.
    tokens = ("rate", "rec.parquet", "made/ratings.json", "--pool", "one.toml", "--like", "made/ratings.json")
    assert podium(*tokens).status == 0
    ratings = Ratings.open(Path("made/ratings.json"))
    kind = ratings.cluster_of(SUM)
    assert ratings.workers["ada"][kind] == tally(8, 8 * COST)
    assert ratings.workers["bob"][kind] == tally(0, 8 * COST, questions=4)


@pytest.mark.parametrize(
    ("golds", "tally", "told"),
    [
        (8, Tally(right=4, questions=8, cost_usd=0.0), ""),
        (6, Tally(right=3, questions=6, cost_usd=0.0), "abacus: rated on the 6 of 8"),
        (0, None, "abacus: not rated"),
    ],
)
def test_calculator_is_rated_on_questions_with_a_known_answer(
    podium: Podium, golds: int, tally: Tally | None, told: str
) -> None:
    with RecordingWriter() as writer:
        for number in range(8):
            asked, right = (
                (f"Compute {number} * 7.", number * 7) if number % 2 else (f"Spell river {number}.", "x")
            )
            known = str(right) if number < golds else None
            writer.add_question(RecordedQuestion(f"q{number}", asked, known, None, "train"))
            writer.add(f"q{number}", RecordedResponse("ada", 0, "Answer: x", score=0.0, output_tokens=TOKENS))
        writer.write(Path("rec.parquet"), name="rec")
    calculator = '\n[[worker]]\nname = "abacus"\nkind = "calculator"\n'
    Path("replay.toml").write_text(calculator + pool_text("ada"))
    made = podium(*RATE[:-1], "1")
    assert (made.status, made.err.count("\n"), made.err.startswith(told)) == (0, bool(told), True)
    rated = {} if tally is None else {"abacus": tally}
    assert Ratings.open(Path("made/ratings.json")).totals == rated | {
        "ada": Tally(right=0, questions=8, cost_usd=8 * COST)
    }
    assert [*Ratings.open(Path("made/ratings.json")).workers] == [*rated, "ada"]


def test_a_file_that_holds_something_else_is_not_overwritten(podium: Podium) -> None:
    Path("mine.json").write_text('{"dear": "to me"}')
    refused = podium("rate", "rec.parquet", "mine.json", "--pool", "replay.toml")
    assert "mine.json" in one_sentence(refused)
    assert Path("mine.json").read_text() == '{"dear": "to me"}'


def test_a_pool_that_names_ratings_which_are_still_to_be_made_can_be_rated(podium: Podium) -> None:
    Path("replay.toml").write_text(pool_text("ada", "bob", ratings="made/ratings.json"))
    assert podium(*RATE).status == 0
    assert podium("pool", "list", "--pool", "replay.toml").status == 0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({1: "rec.json"}, "rec.json"),
        ({1: "sums"}, "sums"),
        ({1: "none.parquet"}, "none.parquet"),
        ({4: "none.toml"}, "none.toml"),
        ({4: "pool.toml"}, 'recording = "rec.parquet"'),
        ({6: "4", 7: "--like", 8: "ratings.json"}, "--clusters 4"),
        ({5: "--like", 6: "ratings.json", 7: "--words"}, "--words"),
        ({6: "0"}, "--clusters"),
        ({6: "many"}, "--clusters"),
        ({5: "--seed", 6: "-1"}, "--seed"),
        ({2: "rec.json"}, "rec.json"),
        ({2: "ratings.txt"}, "ratings.txt"),
        ({2: "."}, "NAME.json"),
        ({2: "pool.toml/ratings.json"}, "pool.toml"),
        ({5: "--split", 6: "tests"}, "'test'"),
        ({5: "--like", 6: "none.json"}, "none.json"),
        ({5: "--like", 6: "replay.toml"}, "replay.toml"),
        ({3: "--split", 4: "train"}, "--pool"),
    ],
)
def test_asking_wrongly_is_one_sentence_and_writes_nothing(
    podium: Podium, changes: dict[int, str], named: str
) -> None:
    tokens = list((dict(enumerate(RATE)) | changes).values())
    before = sorted(Path().rglob("*"))
    assert named in one_sentence(podium(*tokens))
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(
    ("question", "per_usd", "asked"), [(SUM, "0", "ada"), (RIVER, "0", "bob"), (RIVER, "1e9", "ada")]
)
def test_word_ratings_route_by_question_even_with_one_cluster(
    podium: Podium, question: str, per_usd: str, asked: str
) -> None:
    assert podium(*RATE[:-1], "1", "--words").status == 0
    Path("made/rated.toml").write_text(pool_text("ada", "bob", above="../", ratings="ratings.json"))
    answered = podium(
        "ask", question, "--pool", "made/rated.toml", "--planner", f"by-ratings:{per_usd}", "--json"
    )
    trace = Trace.model_validate_json(answered.out)
    assert [span.worker for span in trace.spans] == [asked]


# --- a pool that names the file ----------------------------------------------------------------------------


@pytest.fixture
def rated_pool(podium: Podium) -> str:
    """A pool beside its ratings, in another folder than the one where commands run; cy is not rated."""
    assert podium(*RATE).status == 0
    Path("made/rated.toml").write_text(pool_text("ada", "bob", "cy", above="../", ratings="ratings.json"))
    return "made/rated.toml"


@pytest.mark.parametrize(("question", "knows"), [(SUM, "ada"), (RIVER, "bob")])
def test_a_trace_keeps_the_ratings_that_the_planner_saw(
    podium: Podium, rated_pool: str, question: str, knows: str
) -> None:
    asked = podium("ask", question, "--pool", rated_pool, "--planner", f"single:{knows}", "--json")
    assert asked.status == 0
    trace = Trace.model_validate_json(asked.out)
    ratings = Ratings.open(Path("made/ratings.json"))
    told = {profile.name: profile.rating for profile in trace.pool}
    assert list(told) == [*("ada", "bob", "cy"), "vote"], "a rated pool keeps the order of its file"
    assert told["cy"] is told["vote"] is None
    for name in ("ada", "bob"):
        rating = told[name]
        assert rating is not None
        assert rating == ratings.rated(Profile(name=name), question).rating
        assert (rating.cluster, rating.questions) == (ratings.cluster_of(question), 8)
        assert rating.accuracy == pytest.approx((8 + 1.5 if name == knows else 1.5) / 11)
        assert rating.cost_usd == pytest.approx(COST * PRICES[name])
    kept = podium("traces", "show", trace.id, "--json")
    assert Trace.model_validate_json(kept.out) == trace


@pytest.mark.parametrize("verb", [("pool", "list"), ("ask", SUM, "--planner", "single:ada"), ("plan", SUM)])
def test_a_pool_whose_ratings_are_gone_is_refused_by_every_verb(
    podium: Podium, rated_pool: str, verb: tuple[str, ...]
) -> None:
    Path("made/ratings.json").unlink()
    refused = one_sentence(podium(*verb, "--pool", rated_pool))
    assert refused.startswith("podium: made/rated.toml, line 1: made/ratings.json:")
