"""Rows of tables: what is read, where it stood, and what is complained of in place of being read."""

from __future__ import annotations

import gzip
import json
import os
import string
import subprocess
import sys
import tracemalloc
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import UsageError
from podium.files.tables import Row, cell_text, fill_template, is_table, read_rows

BOM = b"\xef\xbb\xbf"
NAMES = st.text(string.ascii_letters, min_size=1, max_size=5)
CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


def read(file: Path, content: bytes, columns: Collection[str] = ()) -> list[Row]:
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    return list(read_rows(file, columns))


def values(rows: list[Row]) -> list[dict[str, Any]]:
    return [row.values for row in rows]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b'{"q": "x"}\n\n  \n{"q": "y"}'),
        ("a.jsonl", BOM + b'{"q": "x"}\r\n{"q": "y"}\r\n'),
        ("a.jsonl", BOM + b'{"q": "x"}\n' + BOM + b'{"q": "y"}\n'),  # As `cat` joins two files.
        ("a.jsonl.gz", b'{"q": "x"}\n{"q": "y"}\n'),
        ("a.JSONL", b'{"q": "x"}\n{"q": "y"}\n'),
        ("a.json", b'[{"q": "x"}, {"q": "y"}]'),
        ("a.json", BOM + b'\n [{"q": "x"},\n {"q": "y"}]\n'),
        ("a.json", b'{"q": "x"}\n{"q": "y"}\n'),
        ("a.json.gz", b'[{"q": "x"}, {"q": "y"}]'),
        ("a.csv", b"q\nx\ny\n"),
        ("a.csv", BOM + b"q\r\nx\r\n\r\ny"),
        ("a.csv.gz", b'"q"\n"x"\n"y"\n'),
    ],
)
def test_tables_of_every_kind_and_dress_hold_the_same_rows(tmp_path: Path, name: str, content: bytes) -> None:
    rows = read(tmp_path / name, content, ["q"])
    assert values(rows) == [{"q": "x"}, {"q": "y"}]
    assert not any(row.error for row in rows)


def test_parquet_gives_lists_objects_nulls_and_reads_named_columns_alone(tmp_path: Path) -> None:
    rows = [
        {"q": "x", "options": ["a", "b"], "meta": {"year": 2024}, "gold": None},
        {"q": "y", "options": [], "meta": {"year": 2025}, "gold": 1.5},
    ]
    file = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows), file)
    assert values(list(read_rows(file))) == rows
    assert [row.location for row in read_rows(file)] == ["a.parquet, row 1", "a.parquet, row 2"]
    named = values(list(read_rows(file, ["q", "options"])))
    assert named == [{"q": "x", "options": ["a", "b"]}, {"q": "y", "options": []}]


def test_binary_text_of_a_parquet_file_is_read_as_text(tmp_path: Path) -> None:
    rows = [{"q": "Où?".encode(), "options": [b"a", "é".encode()], "none": b""}]
    file = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows), file)
    (row,) = read_rows(file)
    assert row.values == {"q": "Où?", "options": ["a", "é"], "none": ""}


@pytest.mark.parametrize("cell", [b"\xff", [b"a", b"\xff"], {"image": b"\xff"}])
def test_bytes_that_are_no_text_are_refused_where_they_are_shown(tmp_path: Path, cell: object) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([{"q": "x", "picture": cell}]), file)
    (row,) = read_rows(file)
    assert fill_template("q", row.values) == "x"
    for template in ("picture", "{q} {picture}"):
        with pytest.raises(ValueError, match="its picture is not UTF-8 text"):
            fill_template(template, row.values)
    with pytest.raises(ValueError, match="its picture is not UTF-8 text"):
        cell_text(row.values, "picture")


def test_parquet_counts_its_rows_over_batches(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": list(range(3000))}), file)
    assert [row.location for row in read_rows(file)][2999] == "a.parquet, row 3000"


def test_row_places_are_the_line_numbers_of_an_editor(tmp_path: Path) -> None:
    jsonl = read(tmp_path / "a.jsonl", b'{"q": 1}\n\n{"q": 2}\nbroken\n{"q": 3}\n')
    assert [row.location.removeprefix("a.jsonl, ") for row in jsonl] == [
        "line 1",
        "line 3",
        "line 4",
        "line 5",
    ]
    quoted = b'q,a\n"two\nlines\n\nand more",1\n\nx,2\n'
    rows = read(tmp_path / "a.csv", quoted)
    assert [row.location for row in rows] == ["a.csv, line 2", "a.csv, line 7"]
    assert rows[0].values["q"] == "two\nlines\n\nand more"
    assert read(tmp_path / "a.json", b'[{"q": 1}, 2]')[1].location == "a.json, item 2"


DEEP = b'{"q": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("a.jsonl", b'{"q": "x"', "it is not JSON: Expecting ',' delimiter (at character 10)"),
        ("a.jsonl", b"{'q': 'x'}", "it is not JSON: Expecting property name"),
        ("a.jsonl", b'{"q": "x"} {"q": "y"}', "it is not JSON: Extra data (at character 12)"),
        ("a.jsonl", b'{"q": "\xff"}', "it is not UTF-8 text"),
        ("a.jsonl", '{"q": "x"}'.encode("utf-16"), "it is not UTF-8 text"),
        ("a.jsonl", b'["x"]', "it is not an object"),
        ("a.jsonl", b"null", "it is not an object"),
        ("a.jsonl", DEEP, "it is not JSON: it is nested too deeply"),
        ("a.jsonl", b'{"q": ' + b"9" * 5000 + b"}", "it is not JSON: a number in it has too many digits"),
        ("a.json", b'[{"good": 1}, "x"]', "it is not an object"),
        ("a.csv", b"q,a\nx\n", "it has 1 cells, and the head 2"),
        ("a.csv", b"q,a\nx,y,z\n", "it has 3 cells, and the head 2"),
        ("a.csv", b"q,a\n\xff,y\n", "it is not UTF-8 text"),
        ("a.csv", b'q,a\n"x"y,z\n', "it is not CSV: "),
    ],
)
def test_an_unreadable_row_is_complained_of_and_the_others_are_read(
    tmp_path: Path, name: str, content: bytes, error: str
) -> None:
    file = tmp_path / name
    bad = [row for row in read(file, content) if row.error]
    assert bad[0].error.startswith(error)
    assert bad[0].values == {}
    if name == "a.jsonl":
        rows = read(file, b'{"good": 1}\n' + content + b'\n{"good": 2}\n')
        assert [row.values.get("good") for row in rows][:1] == [1]
        assert rows[-1].values == {"good": 2}


def test_a_csv_goes_on_behind_a_row_that_is_too_short(tmp_path: Path) -> None:
    rows = read(tmp_path / "a.csv", b'q,a\n"x"y,z\nshort\n1,2\n')
    assert [bool(row.error) for row in rows] == [True, True, False]
    assert rows[-1] == Row("a.csv, line 4", {"q": "1", "a": "2"})


def test_json_rows_accept_nan_infinity_and_lone_surrogates(tmp_path: Path) -> None:
    (row,) = read(tmp_path / "a.jsonl", b'{"a": NaN, "b": 1e999, "c": "\\ud83d", "d": ["\\ud83d\\ude00"]}')
    assert row.values["a"] != row.values["a"]
    assert row.values["b"] == float("inf")
    assert (row.values["c"], row.values["d"]) == ("�", ["😀"])  # Half a letter is nothing that can be sent.


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_line_without_end_is_complained_of_and_never_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("podium.files.tables.MAX_LINE_BYTES", 1 << 20)
    file = tmp_path / name
    size = 64 << 20
    with gzip.open(file, "wb", compresslevel=1) if name.endswith(".gz") else file.open("wb") as out:
        out.write(b'{"q": 1}\n{"q": "')
        for _ in range(size >> 20):
            out.write(b"x" * (1 << 20))
        out.write(b'"}\n{"q": 2}\n')
    tracemalloc.start()
    first, long, last = read_rows(file)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (first.values, last.values) == ({"q": 1}, {"q": 2})
    assert long == Row(f"{name}, line 2", error="it is longer than 1,048,576 bytes")
    assert most < size / 8


def test_a_line_may_be_exactly_as_long_as_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = b'{"q": "xxx"}'
    for ending in (b"\n", b"\r\n", b""):
        file = tmp_path / "a.jsonl"
        file.write_bytes(2 * (line + ending) if ending else line)
        monkeypatch.setattr("podium.files.tables.MAX_LINE_BYTES", len(line))
        rows = list(read_rows(file))
        assert [(row.location, row.error) for row in rows][-1] == (f"a.jsonl, line {len(rows)}", "")
        monkeypatch.setattr("podium.files.tables.MAX_LINE_BYTES", len(line) - 1)
        assert all(row.error for row in read_rows(file))
        assert len(list(read_rows(file))) == len(rows) == (2 if ending else 1)


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("a.json", b'[{"q": 1},', "cannot be read as json: Expecting value"),
        ("a.json", b"[" * 100_000, "cannot be read as json: "),
        ("a.json", b"\xff[]", "cannot be read as json: "),
        ("a.parquet", b"PAR1", "cannot be read as parquet: "),
        ("a.parquet", b"", "cannot be read as parquet: "),
        (
            "a.csv",
            b'q,a\n1,2\n"open,3\n4,5\n',
            "a quote in line 3 is not closed, or holds over 131,072 characters",
        ),
        (
            "a.csv",
            b'q,a\n1,2\n"open' + b",3\n" * 100_000,
            "a quote in line 3 is not closed, or holds over 131,072 characters",
        ),
        ("a.csv", b"q,a,q\n1,2,3\n", "two of its columns are called 'q'"),
        ("a.csv", b'"q,a\n1,2\n', "cannot be read as csv: unexpected end of data"),
        ("a.csv", b"\xff\xfeq\n", "its head is not UTF-8 text"),
        ("a.txt", b"q", "a table is .parquet, .jsonl, .json or .csv; convert it to one of them"),
        ("a.gz", b"q", "a table is .parquet, .jsonl, .json or .csv; convert it to one of them"),
    ],
)
def test_file_that_cannot_be_split_into_rows_is_refused(
    tmp_path: Path, name: str, content: bytes, part: str
) -> None:
    with pytest.raises(UsageError) as refused:
        read(tmp_path / name, content)
    assert str(tmp_path / name) in str(refused.value)
    assert part in str(refused.value)


def test_a_packed_file_that_was_cut_or_never_packed_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl.gz"
    packed = gzip.compress(b"".join(b'{"q": %d}\n' % (n**9) for n in range(10_000)))
    for content in (packed[:-20], packed[:200] + bytes(200) + packed[400:], b'{"q": 1}\n'):
        file.write_bytes(content)
        with pytest.raises(UsageError, match=r"a\.jsonl\.gz cannot be read as jsonl: "):
            list(read_rows(file))


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name in ("none.csv", "folder.csv"):
        with pytest.raises(UsageError, match="there is no such file; check the path"):
            list(read_rows(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b'{"question": 1, "answer": 2}\n{"question": 3}\n'),
        ("a.json", b'[{"question": 1, "answer": 2}]'),
        ("a.csv", b"question,answer\n1,2\n"),
        ("a.csv", b"question,answer\n"),
    ],
)
def test_unknown_column_is_refused_with_the_nearest_name(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(UsageError) as refused:
        read(tmp_path / name, content, ["question", "anwser"])
    assert str(refused.value) == f"{tmp_path / name} has no column 'anwser'; did you mean 'answer'?"


def test_rows_without_a_needed_column_are_reported(tmp_path: Path) -> None:
    lines = b'{"q": 1}\n{"q": 2, "a": 3}\nbroken\n{"a": 4}\n'
    rows = read(tmp_path / "a.jsonl", lines, ["q", "a"])
    assert [row.error.partition(":")[0] for row in rows] == [
        "it has no column a",
        "",
        "it is not JSON",
        "it has no column q",
    ]


def test_allowed_missing_values_are_null_but_the_column_must_exist(
    tmp_path: Path,
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"q": "x"}\n{"q": "y", "gold": 1}\nbroken\n{"gold": 2}\n')
    rows = list(read_rows(file, ["q", "gold"], allow_missing=True))
    assert values([row for row in rows if not row.error]) == [
        {"q": "x", "gold": None},
        {"q": "y", "gold": 1},
        {"q": None, "gold": 2},
    ]
    assert [row.location for row in rows if row.error] == ["a.jsonl, line 3"]
    with pytest.raises(UsageError, match=r"a\.jsonl has no column 'golds'; did you mean 'gold'\?"):
        list(read_rows(file, ["golds"], allow_missing=True))


def test_reading_parquet_leaves_no_threads_that_work_on_columns(tmp_path: Path) -> None:
    # At the end of a short process such threads have aborted it, now and then.
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({name: list(range(100)) for name in "abcdefgh"}), file)
    program = (
        "import os, sys, pyarrow.parquet; from pathlib import Path; from podium.files.tables import read_rows\n"
        "before = len(os.listdir('/proc/self/task')); assert len(list(read_rows(Path(sys.argv[1])))) == 100\n"
        "print(len(os.listdir('/proc/self/task')) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(file)],
        env={**os.environ, "OMP_NUM_THREADS": "4"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) <= 1  # The one that reads from the disk.


def test_a_table_is_recognised_by_its_name() -> None:
    tables = ("a.jsonl", "b.JSON", "c.csv.gz", "d.parquet")
    assert [name for name in (*tables, "e.txt", "f.gz", "g.toml", "csv") if is_table(Path(name))] == [*tables]


@given(st.lists(st.dictionaries(NAMES, CELLS | st.none() | st.integers() | st.lists(CELLS)), max_size=8))
def test_objects_come_back_from_jsonl_and_json_as_they_were(tmp_path_factory, objects) -> None:
    folder = tmp_path_factory.mktemp("rows")
    lines = "\n".join(json.dumps(one, ensure_ascii=False) for one in objects)
    assert values(read(folder / "a.jsonl", lines.encode())) == objects
    assert values(read(folder / "a.json", json.dumps(objects).encode())) == objects


@given(st.binary(max_size=300), st.sampled_from(["a.jsonl", "a.json", "a.csv", "a.parquet", "a.csv.gz"]))
def test_any_file_content_gives_rows_or_one_refusal(tmp_path_factory, content, name) -> None:
    file = tmp_path_factory.mktemp("rows") / name
    file.write_bytes(content)
    rows, refusal = [], ""
    try:
        rows = list(read_rows(file))
    except UsageError as error:
        refusal = str(error)
    assert "\n" not in refusal
    assert all(row.location.startswith(name) for row in rows)
