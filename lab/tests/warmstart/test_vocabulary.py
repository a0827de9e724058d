"""Words that are named are one token each, and what is read can be written again."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer

from podium_lab.warmstart.tokenizer import (
    BEGIN,
    BEGIN_ID,
    END,
    END_ID,
    PAD,
    PAD_ID,
    save_tokenizer,
    train_tokenizer,
)

TEXTS = [
    "Question: When does the train arrive?",
    '#train; steps 3\nmodel_id = [0, 12]\nsubtasks = ["1. Add."]',
]
WORDS = ("#train", "#train-arrive", "#12-fruit", "#?-!")


@pytest.fixture(scope="module", params=["as it was made", "as it is read from its folder"])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    made = train_tokenizer(TEXTS * 5, 400, WORDS)
    if request.param == "as it was made":
        return made
    folder = tmp_path_factory.mktemp("vocabulary")
    save_tokenizer(made, folder)
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def tokens(tokenizer: Tokenizer, text: str) -> list[str]:
    encoded = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(encoded.ids, skip_special_tokens=True) == text
    return encoded.tokens


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("text", ["{}", "{}; steps 3\n", "about {} and more", "x{}y", "3{}4", "{0}{0} {0}"])
def test_a_word_is_one_token_wherever_it_stands(tokenizer: Tokenizer, word: str, text: str) -> None:
    times = text.count("{")
    found = tokens(tokenizer, text.format(word))
    assert found.count(word) == times
    assert sum("#" in token for token in found) == times


def test_tokenizer_prefers_the_longest_of_words_with_one_prefix(tokenizer: Tokenizer) -> None:
    assert tokens(tokenizer, "#train-arrive; steps 3")[0] == "#train-arrive"
    assert tokens(tokenizer, "#train; steps 3")[0] == "#train"
    assert tokens(tokenizer, "#train-arrives")[0] == "#train-arrive"
    assert tokens(tokenizer, "#train-arriv")[0] == "#train"


def test_added_words_change_no_token_of_a_text_without_them() -> None:
    plain, more = (train_tokenizer(TEXTS * 5, 400, words) for words in ((), WORDS))
    assert more.get_vocab_size() == plain.get_vocab_size() + len(WORDS)
    for text in ("When does the train arrive, in 12 hours?", "# train", "größe 東京"):
        assert tokens(more, text) == tokens(plain, text)
    for made in (plain, more):
        assert [made.token_to_id(token) for token in (BEGIN, END, PAD)] == [BEGIN_ID, END_ID, PAD_ID]


def test_a_size_bounds_the_entries_that_are_learned() -> None:
    small, large = (train_tokenizer(TEXTS * 5, size).get_vocab_size() for size in (270, 400))
    assert small == 270
    assert 270 < large <= 400


def test_spelled_word_is_not_a_token_and_is_encoded_in_pieces():
    texts = ["Where does Halonmouth lie?", "The halonmouth lies there."] * 50
    whole, pieces = (train_tokenizer(texts, 400, spelled=spelled) for spelled in ((), {"halonmouth"}))
    assert len(whole.encode(" Halonmouth", add_special_tokens=False).ids) == 1
    spelled = pieces.encode(" Halonmouth", add_special_tokens=False)
    assert len(spelled.ids) > 3
    assert pieces.decode(spelled.ids) == " Halonmouth"
    assert len(pieces.encode(" lie", add_special_tokens=False).ids) == 1
