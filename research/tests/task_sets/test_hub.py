"""Where the files of a hub's dataset are taken from, and what is said where they are not to be had."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hub_files import apart
from hub_server import REVISION, serving
from podium.errors import ConfigError
from podium.tasks import open_tasks
from podium.tasks.overlap import question_key
from podium.tasks.sets.base import task_key
from podium.tasks.task_file import disjoint_splits
from podium_research.task_sets.hub import find_files
from podium_research.task_sets.math_sets import GSM8K

REPO = "openai/gsm8k"
TRAIN = "main/train-*.parquet"
_ASK = """
import json, sys
from podium.errors import ConfigError
from podium_research.task_sets.hub import find_files
for repo, pattern in json.loads(sys.argv[1]):
    try:
        print(json.dumps([path.as_posix() for path in find_files(repo, pattern)]))
    except ConfigError as error:
        print(json.dumps(str(error)))
"""


def located(wanted: Sequence[tuple[str, str]], *, cache: Path, **environment: str) -> list[list[str] | str]:
    """What `find_files` says in a process of its own: the hub's client reads its environment when it is loaded."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "PODIUM_DATA"))}
    shown = subprocess.run(
        [sys.executable, "-c", _ASK, json.dumps(wanted)],
        env=kept | {"HF_HOME": str(cache), "HF_HUB_DISABLE_TELEMETRY": "1", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in shown.stdout.splitlines()]


def write(file: Path, rows: Sequence[Mapping[str, object]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), file)


def problems(*texts: str) -> list[Mapping[str, object]]:
    return [{"question": text, "answer": f"So it is.\n#### {len(text):,}"} for text in texts]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder of GSM8K."""
    monkeypatch.setenv("PODIUM_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / REPO


# --- places --------------------------------------------------------------------------------------------


def test_the_user_s_folder_is_taken_first_and_its_pieces_in_order(data: Path) -> None:
    for name in (
        "main/train-00001-of-00002.parquet",
        "main/train-00000-of-00002.parquet",
        "socratic/train.parquet",
    ):
        write(data / name, problems("one"))
    (data / "main" / "train-00000-of-00002.parquet.lock").write_text("")
    assert [path.relative_to(data).as_posix() for path in find_files(REPO, TRAIN)] == [
        "main/train-00000-of-00002.parquet",
        "main/train-00001-of-00002.parquet",
    ]


def test_a_folder_with_a_piece_missing_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    write(tmp_path / REPO / "main/train-00000-of-00002.parquet", problems("one"))
    (said,) = located([(REPO, TRAIN)], cache=tmp_path / "hf", PODIUM_DATA=str(tmp_path), HF_HUB_OFFLINE="1")
    assert said == (
        "main/train-*.parquet of the dataset openai/gsm8k is not on this machine, or only in part, and the "
        "hub is not reached; on a machine that reaches the hub, run: hf download openai/gsm8k --repo-type dataset "
        "--local-dir DATA/openai/gsm8k; then set PODIUM_DATA=DATA."
    )


def test_the_hub_s_cache_is_taken_without_the_hub(tmp_path: Path) -> None:
    kept = tmp_path / "hf" / "hub" / "datasets--openai--gsm8k"
    write(kept / "snapshots" / REVISION / "main/train-00000-of-00001.parquet", problems("one"))
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text(REVISION)
    said = located([(REPO, TRAIN), (REPO, "main/test-*")], cache=tmp_path / "hf", HF_HUB_OFFLINE="1")
    assert said[0] == [str(kept / "snapshots" / REVISION / "main/train-00000-of-00001.parquet")]
    assert "the hub does not give such a file" in said[1]


def test_a_missing_file_is_fetched_once_and_a_refusal_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "piece.parquet", problems("one"))
    files = {
        "main/train-00000-of-00001.parquet": (tmp_path / "piece.parquet").read_bytes(),
        "README.md": b"#",
    }
    cache = tmp_path / "hf"
    wanted = [(REPO, TRAIN), (REPO, "main/valid-*"), ("Idavidrein/gpqa", "*.csv"), ("nobody/nothing", "*")]
    datasets = {REPO: files, "Idavidrein/gpqa": {"gpqa_diamond.csv": b"a,b\n"}}
    with serving(datasets, gated=frozenset({"Idavidrein/gpqa"})) as hub:
        fetched, absent, gated, unknown = located(wanted, cache=cache, HF_ENDPOINT=hub)
    (file,) = fetched
    assert Path(file).read_bytes() == files["main/train-00000-of-00001.parquet"]
    assert not list(cache.rglob("README.md"))
    assert "the hub does not give such a file" in absent
    assert gated == (
        "*.csv of the dataset Idavidrein/gpqa is not on this machine, and the hub gives it only to "
        "users who accept its terms: do so at https://huggingface.co/datasets/Idavidrein/gpqa, then: hf auth login."
    )
    assert "the hub knows no such dataset, or does not show it to you" in unknown
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}"
    again, unreached = located([(REPO, TRAIN), ("a/b", "*")], cache=cache, HF_ENDPOINT=nowhere)
    assert again == fetched
    assert "the hub is not reached" in unreached


# --- splits --------------------------------------------------------------------------------------------


def test_hub_questions_of_later_splits_are_removed_from_earlier_splits(data: Path) -> None:
    train = [f"How many are {n} apples and {n} pears?" for n in range(200)]
    write(data / "main/train-00000-of-00001.parquet", problems(*train, "And one more?"))
    write(data / "main/test-00000-of-00001.parquet", problems("how many are 7 apples, and 7 PEARS", "New?"))
    readings = apart(GSM8K())
    asked = {split: [task_key(task) for task in reading.tasks] for split, reading in readings.items()}
    assert asked["test"] == [question_key("How many are 7 apples and 7 pears?"), "new"]
    assert sorted(asked["train"] + asked["validation"]) == sorted(
        question_key(text) for text in (*train, "And one more?") if text != train[7]
    )
    assert 5 <= len(asked["validation"]) <= 40
    skipped = [reading.skipped for split, reading in readings.items() if split != "test"]
    assert sorted(skipped, key=len) == [{}, {"questions that stand in a later split too": 1}]
    assert {split: disjoint_splits([GSM8K()], (split,))[split] for split in readings} == {
        split: [reading] for split, reading in readings.items()
    }


def test_hub_set_counts_or_refuses_invalid_rows_as_configured(data: Path) -> None:
    rows = [
        *problems("one", "two"),
        {"question": "three", "answer": "no mark"},
        {"question": None, "answer": None},
    ]
    write(data / "main/train-00000-of-00001.parquet", rows)
    write(data / "main/test-00000-of-00001.parquet", rows)
    reading = GSM8K().read_splits(("test",))["test"]
    assert len(reading.tasks) == 2
    assert sum(reading.skipped.values()) == 2
    with pytest.raises(ConfigError) as refused:
        GSM8K(on_bad_row="refuse").read_splits(("test",))["test"]
    assert str(refused.value).startswith("test-00000-of-00001.parquet, row 3: ")


def test_unknown_hub_split_is_refused_with_the_known_splits() -> None:
    assert GSM8K().splits == ("train", "validation", "test")
    with pytest.raises(ConfigError, match="There is no split 'dev'"):
        open_tasks("gsm8k", "dev")
