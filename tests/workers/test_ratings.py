"""Ratings: what a file of them says of a question, what is refused, and how a pool takes them up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import ConfigError
from podium.team.team_file import open_pool
from podium.types import Price, Profile, Rating
from podium.workers import Pool, ScriptedWorker
from podium.workers.ratings import ClusterWords, Ratings, Tally

KINDS: ClusterWords = {
    "add-apples": {"add": 1.0, "apples": 1.0, "count": 0.5},
    "spell-letters": {"spell": 1.0, "letters": 1.0, "count": 1.0},
    "rivers": {"river": 2.0},
}
SUMS, LETTERS, RIVERS = "Add two apples.", "Spell the letters.", "Which river is it?"
RATINGS = Ratings(
    clusters=KINDS,
    workers={
        "ada": {
            "add-apples": Tally(right=9, questions=10, cost_usd=0.1),
            "spell-letters": Tally(right=1, questions=10, cost_usd=0.3),
        },
        "bob": {"spell-letters": Tally(right=7.5, questions=10, cost_usd=0.02)},
    },
)
WORKER = '\n[[worker]]\nname = "{}"\nkind = "scripted"\nreplies = ["yes"]\n'


def rating(worker: str, question: str, ratings: Ratings = RATINGS) -> Rating:
    found = ratings.rated(Profile(name=worker), question).rating
    assert found is not None
    return found


def pool_file(folder: Path, *names: str, ratings: str | None = None) -> Path:
    """A pool of scripted workers in a folder of its own making."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pool.toml"
    named = "" if ratings is None else f"ratings = {ratings!r}\n"
    path.write_text(named + "".join(WORKER.format(name) for name in names))
    return path


def ratings_file(path: Path, ratings: Ratings = RATINGS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(ratings.model_dump_json(indent=1))
    return path


# --- the kind of a question --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        (SUMS, "add-apples"),
        (LETTERS, "spell-letters"),
        ("ADD two APPLES!", "add-apples"),
        ("Count.", "spell-letters"),  # it counts for two kinds, and more for this one
        ("Count and add.", "add-apples"),
        ("Add or spell? Spell!", "spell-letters"),  # a word that comes twice counts more than once
        ("Add by the river.", "rivers"),
        ("spelling, addition, 12 apple5 riverbed", ""),  # parts of words are other words
        ("", ""),
        ("1 + 1 = ?", ""),
    ],
)
def test_question_belongs_to_the_cluster_with_most_matching_words(question: str, kind: str) -> None:
    assert RATINGS.cluster_of(question) == kind


def test_repeated_word_counts_less_with_each_repetition() -> None:
    assert RATINGS.cluster_of("Add. " * 2 + "River.") == "rivers"
    assert RATINGS.cluster_of("Add. " * 3 + "River.") == "add-apples"


@given(st.text())
def test_cluster_of_any_text_is_known_or_empty_and_stable(text: str) -> None:
    kind = RATINGS.cluster_of(text)
    assert kind in {*KINDS, ""}
    assert RATINGS.cluster_of(f"{text} 12 ?!") == kind


# --- a worker's rating -------------------------------------------------------------------------------------


def test_cluster_rating_is_shrunk_towards_the_overall_rating() -> None:
    sums, letters = rating("ada", SUMS), rating("ada", LETTERS)
    assert (sums.cluster, sums.questions) == ("add-apples", 10)
    # Right in 10 of 20 overall: three more questions of each kind are taken to have gone so.
    assert sums.accuracy == pytest.approx((9 + 1.5) / 13)
    assert letters.accuracy == pytest.approx((1 + 1.5) / 13)
    assert sums.cost_usd == pytest.approx((0.1 + 3 * 0.4 / 20) / 13)


def test_unanswered_cluster_gets_the_overall_rating_of_the_worker() -> None:
    for question, kind in ((RIVERS, "rivers"), ("What?", "")):
        assert rating("ada", question) == Rating(cluster=kind, accuracy=0.5, cost_usd=0.02, questions=0)
    assert rating("bob", SUMS).accuracy == pytest.approx(0.75)


def test_a_worker_that_was_not_measured_stays_as_it_was() -> None:
    stranger = Profile(name="cy", description="New here.")
    assert RATINGS.rated(stranger, SUMS) == stranger


def test_a_rating_changes_nothing_else_of_a_profile() -> None:
    ada = Profile(name="ada", description="Dear.", price=Price(output=9), latency_s=2.0, skills=("sums",))
    rated = RATINGS.rated(ada, SUMS)
    assert rated.rating is not None
    assert rated.model_copy(update={"rating": None}) == ada
    assert ada.rating is None


def test_worker_listed_without_questions_is_rated_zero() -> None:
    empty = Ratings(clusters=KINDS, workers={"ada": {}})
    assert rating("ada", SUMS, empty) == Rating(cluster="add-apples", accuracy=0, cost_usd=0, questions=0)


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    questions = draw(st.integers(0, 500))
    return Tally(
        right=draw(st.floats(0, questions)), questions=questions, cost_usd=draw(st.floats(0, 10)) * questions
    )


def between(value: float, *bounds: float) -> bool:
    """Sums of floats are out by a hair."""
    return min(bounds) * (1 - 1e-9) - 1e-12 <= value <= max(bounds) * (1 + 1e-9) + 1e-12


@given(st.dictionaries(st.sampled_from([*KINDS, ""]), tallies(), min_size=1), st.sampled_from([*KINDS, ""]))
def test_rating_lies_between_cluster_accuracy_and_overall_accuracy(
    given_tallies: Mapping[str, Tally], kind: str
) -> None:
    ratings = Ratings(clusters=KINDS, workers={"ada": given_tallies})
    found = rating("ada", next(iter(KINDS.get(kind, "?"))), ratings)
    assert found.cluster == kind
    assert between(found.accuracy, 0, 1)
    asked = sum(tally.questions for tally in given_tallies.values())
    if not asked:
        assert found.accuracy == found.cost_usd == 0
        return
    overall = math.fsum(tally.right for tally in given_tallies.values()) / asked
    usual = math.fsum(tally.cost_usd for tally in given_tallies.values()) / asked
    own = given_tallies.get(kind)
    if own is None or not own.questions:
        assert found.accuracy == pytest.approx(overall)
        assert found.cost_usd == pytest.approx(usual)
    else:
        assert between(found.accuracy, overall, own.right / own.questions)
        assert between(found.cost_usd, usual, own.cost_usd / own.questions)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_more_questions_of_a_cluster_give_its_own_accuracy_more_weight(share: float) -> None:
    def accuracy(questions: int) -> float:
        own = Tally(right=share * questions, questions=questions, cost_usd=0)
        elsewhere = Tally(right=500, questions=1000, cost_usd=0)
        return rating(
            "ada",
            SUMS,
            Ratings(clusters=KINDS, workers={"ada": {"add-apples": own, "spell-letters": elsewhere}}),
        ).accuracy

    away = [abs(accuracy(questions) - share) for questions in (0, 1, 3, 30, 300)]
    assert away == sorted(away, reverse=True)
    assert away[0] == pytest.approx(0.5)
    assert away[2] == pytest.approx(
        0.25, abs=0.01
    )  # three questions weigh as much as all the others together
    assert away[-1] < 0.01


# --- files -------------------------------------------------------------------------------------------------


def test_written_ratings_are_read_back(tmp_path: Path) -> None:
    again = Ratings.open(ratings_file(tmp_path / "r.json"))
    assert again == RATINGS
    assert again.rated(Profile(name="ada"), SUMS) == RATINGS.rated(Profile(name="ada"), SUMS)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"ratings = 1", id="no JSON"),
        pytest.param(b"\xff\xfe{}", id="no text"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"format": 2, "clusters": {}, "workers": {}}', id="another format"),
        pytest.param(b'{"format": 1, "clusters": {}}', id="no workers"),
        pytest.param(b'{"format": 1, "clusters": {}, "workers": {}, "note": ""}', id="an unknown key"),
        pytest.param(b'{"clusters": {"a": ["b"]}, "workers": {}}', id="words that count nothing"),
        pytest.param(
            b'{"clusters": {}, "workers": {"ada": {"a": {"right": -1, "questions": 2, "cost_usd": 0}}}}',
            id="fewer right than none",
        ),
        pytest.param(
            b'{"clusters": {}, "workers": {"ada": {"a": {"right": 1, "questions": 1.5, "cost_usd": 0}}}}',
            id="half a question",
        ),
    ],
)
def test_a_file_that_holds_no_ratings_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        Ratings.open(path)
    assert str(caught.value) == f"{path} is no ratings file; make one with: podium rate."


def test_a_file_that_cannot_be_read_is_refused_by_name_with_the_reason(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.json", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(ConfigError) as caught:
            Ratings.open(path)
        assert str(caught.value) == f"{path}: cannot be read: {reason}."


# --- pools -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", ["r.json", "../kept/r.json"])
def test_a_pool_file_names_its_ratings_as_seen_from_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    ratings_file(tmp_path / "pools" / named)
    path = pool_file(tmp_path / "pools", "ada", "cy", ratings=named)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    pool = open_pool(path)
    assert pool.ratings == RATINGS
    ada, cy = pool.profiles_for(SUMS)
    assert ada.rating == rating("ada", SUMS)
    assert cy.rating is None
    assert all(profile.rating is None for profile in pool.profiles)
    assert pool.profiles_for(LETTERS)[0].rating == rating("ada", LETTERS)


def test_a_pool_without_ratings_has_the_same_profiles_for_every_question(tmp_path: Path) -> None:
    pool = open_pool(pool_file(tmp_path, "ada"))
    assert pool.ratings is None
    assert pool.profiles_for(SUMS) == pool.profiles


def test_a_pool_with_unreadable_ratings_is_refused_unless_opened_without(tmp_path: Path) -> None:
    path = pool_file(tmp_path, "ada", ratings="none.json")
    with pytest.raises(ConfigError) as caught:
        open_pool(path)
    missing = tmp_path / "none.json"
    assert str(caught.value) == f"{path}, line 1: {missing}: cannot be read: No such file or directory."
    assert open_pool(path, rated=False).ratings is None


@given(st.permutations(range(3)), st.integers(1, 3))
def test_a_part_of_a_pool_keeps_each_workers_rating(order: list[int], size: int) -> None:
    pool = Pool([ScriptedWorker(name, []) for name in ("ada", "bob", "cy")], RATINGS)
    whole, part = pool.profiles_for(SUMS), pool.subset(order[:size])
    assert part.ratings == RATINGS
    assert part.profiles_for(SUMS) == tuple(whole[number] for number in order[:size])
