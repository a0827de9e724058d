"""What is read can be written again, and spelled words have no token of their own."""

from __future__ import annotations

from pathlib import Path

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


def test_a_text_can_be_written_again_by_a_tokenizer_read_from_its_folder(tmp_path: Path) -> None:
    made = train_tokenizer(TEXTS * 5, 400)
    save_tokenizer(made, tmp_path)
    for tokenizer in (made, Tokenizer.from_file(str(tmp_path / "tokenizer.json"))):
        assert [tokenizer.token_to_id(token) for token in (BEGIN, END, PAD)] == [BEGIN_ID, END_ID, PAD_ID]
        for text in ("When does the train arrive, in 12 hours?", "# train", "größe 東京"):
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            assert tokenizer.decode(ids, skip_special_tokens=True) == text


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
