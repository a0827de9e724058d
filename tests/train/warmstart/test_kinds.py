"""Kinds are found in the wording of questions, and are called by its words."""

from __future__ import annotations

from random import Random

import pytest

from podium.errors import ConfigError
from podium.train.warmstart.kinds import name_kinds

TEMPLATES = (
    "A train leaves {0} at noon with {1} passengers. When does the train arrive?",
    "Sort these fruits by weight: {0}, {1}, melon. Which fruit is the heaviest?",
    "Solve the equation {0} + x = {1} for the variable x.",
    "Rotate the matrix {0} {1} clockwise and print each row of the matrix.",
)
FILLINGS = ("Ulm", "plum", "Bonn", "pear", "17", "253", "Kiel", "fig")


def questions(each: int) -> dict[str, int]:
    """Texts with the number of their template, in mixed order."""
    rng = Random("kinds")
    drawn = {}
    for number, template in enumerate(TEMPLATES):
        texts: dict[str, int] = {}
        while len(texts) < each:
            texts[template.format(rng.choice(FILLINGS), rng.randrange(1000))] = number
        drawn |= texts
    order = rng.sample(list(drawn), len(drawn))
    return {text: drawn[text] for text in order}


def test_texts_of_one_template_are_one_kind_and_each_kind_is_one_templates() -> None:
    template_of = questions(12)
    kind_of = name_kinds(list(template_of), len(TEMPLATES))
    assert list(kind_of) == list(template_of)
    pairs = {(template_of[text], kind) for text, kind in kind_of.items()}
    assert len(pairs) == len(TEMPLATES)
    assert len({kind for _, kind in pairs}) == len(TEMPLATES)


def test_a_name_is_made_of_words_that_its_kind_has_and_others_lack() -> None:
    template_of = questions(12)
    for text, kind in name_kinds(list(template_of), len(TEMPLATES)).items():
        words = kind.split(" ")
        assert len(words) == 2
        own = TEMPLATES[template_of[text]]
        assert all(word in own.lower() for word in words), (kind, own)
        assert not any(word in other.lower() for other in TEMPLATES if other != own for word in words)


@pytest.mark.parametrize("kinds", [6, 9, 20])
def test_more_kinds_than_templates_have_names_of_their_own(kinds: int) -> None:
    template_of = questions(12)
    kind_of = name_kinds(list(template_of), kinds)
    templates_of: dict[str, set[int]] = {}
    for text, kind in kind_of.items():
        templates_of.setdefault(kind, set()).add(template_of[text])
    assert len(templates_of) == kinds
    # Two kinds of one template may be told apart by one word more, but a kind is still of one template.
    assert all(len(templates) == 1 for templates in templates_of.values())
    for kind, templates in templates_of.items():
        own = TEMPLATES[next(iter(templates))] + " ".join(FILLINGS)
        assert all(word in own.lower() for word in kind.split(" ")), (kind, own)


def test_one_seed_gives_one_set_of_names_and_another_seed_another() -> None:
    texts = list(questions(12))
    first, again, other = (name_kinds(texts, 9, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_a_text_that_comes_twice_is_named_once() -> None:
    texts = list(questions(6))
    kind_of = name_kinds([*texts, *reversed(texts)], len(TEMPLATES))
    assert list(kind_of) == texts
    assert len(set(kind_of.values())) == len(TEMPLATES)


def test_fewer_texts_than_kinds_are_each_a_kind_of_their_own() -> None:
    texts = ["red apple", "green pear", "red pear", "green apple"]
    kind_of = name_kinds(texts, 50)
    assert {text: set(kind.split(" ")) for text, kind in kind_of.items()} == {
        text: set(text.split(" ")) for text in texts
    }


def test_kinds_that_the_same_two_words_set_apart_are_told_apart_by_a_third() -> None:
    # Numbers are no words: texts of a line differ in nothing that counts.
    lines = {"alpha beta": 4, "alpha beta delta epsilon zeta": 4, "delta epsilon zeta": 8}
    texts = [f"{line} {number}" for line, times in lines.items() for number in range(times)]
    names = {kind for text, kind in name_kinds(texts, 3).items() if text.startswith("alpha")}
    first, second = sorted(names, key=len)
    assert first in {"alpha beta", "beta alpha"}
    assert set(second.split(" ")) > {"alpha", "beta"}
    assert len(second.split(" ")) == 3


@pytest.mark.parametrize("kinds", [1, 2, 9])
@pytest.mark.parametrize(
    ("texts", "distinct"),
    [
        pytest.param(["red apple", "green pear"], 2, id="no word is shared"),
        pytest.param(["12", "345", "77"], 3, id="digits alone"),
        pytest.param(["?", "!!"], 2, id="marks alone"),
        pytest.param(["is it", "was it"], 2, id="words that say nothing"),
        pytest.param(["", "apple pear"], 2, id="one is empty"),
        pytest.param(["12 3", "3 12"], 1, id="nothing tells them apart"),
        pytest.param(["apple", "apple 1", "apple 22"], 1, id="one word"),
    ],
)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.filterwarnings("ignore:Your stop_words may be inconsistent")
@pytest.mark.filterwarnings("ignore:invalid value encountered in divide")
def test_texts_with_little_to_go_by_have_as_many_names_as_can_be_told_apart(
    texts: list[str], distinct: int, kinds: int
) -> None:
    kind_of = name_kinds(texts, kinds)
    assert list(kind_of) == texts
    assert len(set(kind_of.values())) == min(kinds, distinct)
    assert all(kind.strip() for kind in kind_of.values())


@pytest.mark.parametrize("texts", [[], ["red apple"], ["red apple"] * 3, ["12"], [""]])
def test_where_there_is_one_text_or_none_there_is_nothing_to_tell_apart(texts: list[str]) -> None:
    assert name_kinds(texts, 4) == dict.fromkeys(texts, "all")


@pytest.mark.filterwarnings("ignore:Your stop_words may be inconsistent")
def test_texts_that_hold_nothing_are_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match=r"^The questions hold no text to tell kinds by; set kinds = 0\.$"):
        name_kinds(["", "  "], 2)
