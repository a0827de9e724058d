"""`podium replay import` finds the importers of this package by name."""

import json
from pathlib import Path

import pytest

from cli.refused_commands import one_sentence
from command_line import Podium


def test_a_published_figure_that_the_rows_do_not_give_is_reported(podium: Podium) -> None:
    folder = Path("gsm")
    folder.mkdir()
    record = {"id": "1", "question": "2 + 2?", "answer": "4", "output": ['{"answer": "4"}']}
    (folder / "wise.json").write_text(json.dumps([record]))
    Path("gsm.summary.json").write_text(json.dumps([{"Model": "wise", "Acc": "93.5"}]))
    made = podium("replay", "import", "zeroeval", "gsm", "z.parquet")
    assert made.status == 0
    assert "wise: the source publishes an accuracy of 93.5%, but its answers give 100.0%." in made.err
    assert "93.5%" in made.out


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("mmlu-pro", "holds no *.zip; give its folder eval_results."),
        ("reasoning-gym", "holds no folders; give one of"),
    ],
)
def test_a_wrong_source_is_one_sentence_and_writes_nothing(podium: Podium, kind: str, sentence: str) -> None:
    Path("other").mkdir()
    assert sentence in one_sentence(podium("replay", "import", kind, "other", "o.parquet"))
    assert [file.name for file in Path().iterdir()] == ["other"]
