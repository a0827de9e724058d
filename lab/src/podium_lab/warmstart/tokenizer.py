"""The tiny policy's tokenizer: byte-level BPE, trained on the policy's own SFT examples.

A word includes the space before it. A digit is the same token wherever it stands. A run of marks such as `"], ["` is
one piece, which keeps plans short. Bytes are the fallback, so any text can be encoded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

BEGIN, END, PAD = "<s>", "</s>", "<pad>"
BEGIN_ID, END_ID, PAD_ID = 0, 1, 2
_PIECES = r" ?[A-Za-z_]+|\d|[^A-Za-z0-9]+?(?= ?[A-Za-z]|\d|$)"


def train_tokenizer(texts: Iterable[str], size: int, spelled: Collection[str] = ()) -> Tokenizer:
    """A tokenizer of at most `size` entries; BEGIN, END and PAD have the ids named here.

    Args:
        spelled: words, in small letters, for which it learns no entries, so that it spells them in pieces of others. A
            small model copies a rare name faster in pieces that many names share than as one token that it seldom sees.
    """
    if spelled:
        texts = (
            re.sub("[A-Za-z]+", lambda word: "" if word[0].lower() in spelled else word[0], text)
            for text in texts
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[BEGIN, END, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write tokenizer.json, and tokenizer_config.json, which transformers expects next to it."""
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN,
        "eos_token": END,
        "pad_token": PAD,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
