"""Kinds are found in the wording of questions, are called by its words, and are found again in it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.evals.rating import find_clusters
from podium.workers.ratings import Ratings

TEMPLATES = (
    "A train leaves {0} at noon with {1} passengers. When does the train arrive?",
    "Sort these fruits by weight: {0}, {1}, melon. Which fruit is the heaviest?",
    "Solve the equation {0} + x = {1} for the variable x.",
    "Rotate the matrix {0} {1} clockwise and print each row of the matrix.",
)
FILLINGS = ("Ulm", "plum", "Bonn", "pear", "17", "253", "Kiel", "fig")
ClusterWords = dict[str, dict[str, float]]
REPEATED = pytest.mark.filterwarnings(
    "ignore:Number of distinct clusters", "ignore:invalid value encountered in divide"
)


def questions(each: int) -> dict[str, int]:
    """Texts with the number of their template, in mixed order."""
    rng = Random("kinds")
    drawn: dict[str, int] = {}
    for number, template in enumerate(TEMPLATES):
        texts: dict[str, int] = {}
        while len(texts) < each:
            texts[template.format(rng.choice(FILLINGS), rng.randrange(1000))] = number
        drawn |= texts
    order = rng.sample(list(drawn), len(drawn))
    return {text: drawn[text] for text in order}


def cluster_of_each(texts: Sequence[str], clusters: ClusterWords) -> dict[str, str]:
    """As ratings find the kind of a question that is asked."""
    ratings = Ratings(clusters=clusters, workers={})
    return {text: ratings.cluster_of(text) for text in texts}


def test_clusters_match_the_templates_of_the_questions() -> None:
    template_of = questions(12)
    clusters = find_clusters(list(template_of), len(TEMPLATES))
    pairs = {
        (template_of[text], cluster) for text, cluster in cluster_of_each(list(template_of), clusters).items()
    }
    assert len(pairs) == len(TEMPLATES)
    assert {cluster for _, cluster in pairs} == set(clusters)


def test_unseen_question_is_assigned_to_the_cluster_of_its_template() -> None:
    template_of = questions(12)
    clusters = find_clusters(list(template_of), len(TEMPLATES))
    cluster_of_template = {
        template_of[text]: cluster for text, cluster in cluster_of_each(list(template_of), clusters).items()
    }
    for number, template in enumerate(TEMPLATES):
        unseen = template.format("Oslo", "quince")
        assert cluster_of_each([unseen], clusters) == {unseen: cluster_of_template[number]}
    assert cluster_of_each(["Whose umbrella is it?"], clusters) == {"Whose umbrella is it?": ""}


def test_cluster_name_uses_words_that_other_clusters_lack() -> None:
    template_of = questions(12)
    for text, cluster in cluster_of_each(
        list(template_of), find_clusters(list(template_of), len(TEMPLATES))
    ).items():
        words = cluster.split("-")
        assert len(words) == 2
        own = TEMPLATES[template_of[text]]
        assert all(word in own.lower() for word in words), (cluster, own)
        assert not any(word in other.lower() for other in TEMPLATES if other != own for word in words)


@pytest.mark.parametrize("count", [6, 9, 20])
def test_more_kinds_than_templates_have_names_of_their_own(count: int) -> None:
    template_of = questions(12)
    clusters = find_clusters(list(template_of), count)
    assert len(clusters) == count
    templates_of: dict[str, set[int]] = {}
    for text, cluster in cluster_of_each(list(template_of), clusters).items():
        templates_of.setdefault(cluster, set()).add(template_of[text])
    # Texts of one template may be several kinds, but a kind is still of one template.
    assert all(len(templates) == 1 for templates in templates_of.values())
    assert len(templates_of) > len(TEMPLATES)
    for cluster, templates in templates_of.items():
        own = TEMPLATES[next(iter(templates))] + " ".join(FILLINGS)
        assert all(word in own.lower() for word in cluster.split("-")), (cluster, own)


def test_clusters_depend_only_on_the_seed() -> None:
    texts = list(questions(12))
    first, again, other = (find_clusters(texts, 9, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert list(first) == list(again)
    assert first != other


def test_word_shared_by_all_clusters_weighs_less_than_a_distinct_word() -> None:
    texts = [
        f"Tell me quickly {number}: {word} today" for word in ("rivers", "fruits") for number in range(6)
    ]
    clusters = find_clusters(texts, 2)
    assert len(clusters) == 2
    for words in clusters.values():
        (own,) = words.keys() & {"rivers", "fruits"}
        assert words[own] > words["quickly"] > 0


def test_word_shared_by_all_clusters_names_no_cluster() -> None:
    texts = [
        f"{'kindly ' * 4}{words} {number}"
        for words in ("rivers mountains", "fruits trees")
        for number in range(6)
    ]
    names = {frozenset(name.split("-")) for name in find_clusters(texts, 2)}
    assert names == {frozenset({"rivers", "mountains"}), frozenset({"fruits", "trees"})}


def test_cluster_keeps_its_forty_heaviest_words() -> None:
    rare = [f"{first}{second}" for first in "abcdefgh" for second in "uvwxyz"]
    rivers = [f"river {' '.join(Random(str(number)).sample(rare, 9))}" for number in range(40)]
    fruits = [f"ripe fruit {number}" for number in range(40)]
    (words,) = (words for words in find_clusters(rivers + fruits, 2).values() if "fruit" not in words)
    assert len(words) == 40 < len(rare)
    assert "river" in words


def test_clustering_into_one_cluster_yields_no_clusters() -> None:
    texts = list(questions(12))
    clusters = find_clusters(texts, 1)
    assert clusters == {}
    assert set(cluster_of_each(texts, clusters).values()) == {""}
    assert len(find_clusters(texts, 2)) == 2


def test_fewer_texts_than_kinds_are_each_a_kind_of_their_own() -> None:
    texts = ["red apple", "green pear", "red pear", "green apple"]
    cluster_of = cluster_of_each(texts, find_clusters(texts, 50))
    assert {text: set(cluster.split("-")) for text, cluster in cluster_of.items()} == {
        text: set(text.split(" ")) for text in texts
    }


@REPEATED
def test_clusters_with_the_same_two_words_are_named_with_a_third() -> None:
    # Numbers are no words: texts of a line differ in nothing that counts.
    lines = {"alpha beta": 4, "alpha beta delta epsilon zeta": 4, "delta epsilon zeta": 8}
    texts = [f"{line} {number}" for line, times in lines.items() for number in range(times)]
    names = [name for name in find_clusters(texts, 3) if {"alpha", "beta"} <= set(name.split("-"))]
    first, second = sorted(names, key=len)
    assert first in {"alpha-beta", "beta-alpha"}
    assert set(second.split("-")) > {"alpha", "beta"}
    assert len(second.split("-")) == 3


def test_names_are_in_plain_letters_whatever_the_script() -> None:
    texts = ["Überlänge café", "река вода", "水水 火火"]
    clusters = find_clusters(texts, 3)
    assert all(name.isascii() and name == name.lower() for name in clusters)
    assert clusters.keys() > {"cafe-uberlange"}
    assert len(set(cluster_of_each(texts, clusters).values())) == 3


@pytest.mark.parametrize("count", [2, 9])
@pytest.mark.parametrize(
    ("texts", "distinct"),
    [
        pytest.param(["red apple", "green pear"], 2, id="no word is shared"),
        pytest.param(["", "apple pear"], 1, id="one is empty"),
        pytest.param(["apple pear"], 1, id="one text"),
        pytest.param(["apple pear"] * 3, 1, id="one text thrice"),
        pytest.param(["apple", "apple 1", "apple 22"], 1, id="one word"),
        pytest.param(["a b", "ab cd"], 1, id="single letters are no words"),
    ],
)
@REPEATED
def test_texts_with_few_words_have_as_many_clusters_as_are_distinct(
    texts: list[str], distinct: int, count: int
) -> None:
    clusters = find_clusters(texts, count)
    assert len(clusters) == min(count, distinct)
    assert all(name and words for name, words in clusters.items())


@pytest.mark.parametrize("count", [2, 9])
@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([], id="no text"),
        pytest.param(["", "  "], id="nothing in them"),
        pytest.param(["12", "345", "77"], id="digits alone"),
        pytest.param(["?", "!!"], id="marks alone"),
        pytest.param(["is it", "was it"], id="words that say nothing"),
        pytest.param(["12 3", "3 12"], id="nothing tells them apart"),
    ],
)
def test_texts_without_words_yield_no_clusters(texts: list[str], count: int) -> None:
    clusters = find_clusters(texts, count)
    assert clusters == {}
    assert set(cluster_of_each(texts, clusters).values()) <= {""}


@REPEATED
@given(
    st.lists(
        st.lists(st.sampled_from(["apple", "river", "train", "Ärger", "7", "?"]), max_size=5).map(" ".join),
        max_size=8,
    ),
    st.integers(2, 6),
)
def test_there_are_at_most_the_requested_clusters_each_with_its_words(texts: list[str], count: int) -> None:
    clusters = find_clusters(texts, count)
    assert len(clusters) <= min(count, len(set(texts)))
    for name, words in clusters.items():
        assert name
        assert all(weight > 0 for weight in words.values())
        assert words.keys() <= {word.lower() for text in texts for word in text.split()}
    worded = [text for text in texts if any(letter.isalpha() for letter in text)]
    assert bool(clusters) == bool(worded)
