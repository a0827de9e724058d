"""Our graders on cases of others' tests: on those of the folder that DATA names, else on a few of the same form."""

import asyncio
import json
import os
import runpy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

GRADERS = runpy.run_path(str(Path(__file__).parents[2] / "runs" / "graders.py"))

BY_DESIGN = {"hendrycks_math_is_equiv": 2, "tinker_cookbook_math": 1, "tinker_cookbook_extraction": 1}
"""Cases, at most, in which we decide otherwise on purpose (docs/graders.md says which and why)."""


def case(gold: str, prediction: str | None, expected: bool, **more: Any) -> dict[str, Any]:
    return {"gold": gold, "prediction": prediction, "expected": expected, **more}


def extracted(function: str, text: str | None, value: Any) -> dict[str, Any]:
    return {"function": function, "args": [text], "expected_value": value}


SMALL = {
    "math_verify": [
        case("$\\frac{3}{4}$", "It is $0.75$", True, match_types=["latex", "expr"], options=None),
        case("$\\frac{1}{7}$", "$0.142857$", True, match_types=["latex"], options={"precision": 6}),
        case("$\\frac{1}{7}$", "$0.143$", True, match_types=["latex"], options={"precision": 3}),
        case("$g(a)$", "$g(b)$", True, match_types=["latex"], options={"strict": False}),
        case("$8$", "it is 8", False, match_types=["latex"], options=None),
        case("1250", "1,250 apples", True, match_types=["expr"], options=None),
        case("$(1, 4)$", "$1 < x < 4$", True, match_types=None, options={"allow_set_relation_comp": True}),
        case("$3$", "$\\boxed{4}$", True, match_types=None, options=None, suspect="3 is not 4"),
    ],
    "hendrycks_math_is_equiv": [
        case("6", "6\\text{ feet}", True),
        case("1, 2", "2, 1", False),
        case("\\frac38", "3/8", True),
    ],
    "tinker_cookbook_math": [
        case("8", None, False),
        case("0.75", "\\frac{6}{8}", True),
        case("8", "9", False),
    ],
    "tinker_cookbook_extraction": [
        extracted("extract_boxed", "\\boxed{3} and \\boxed{\\frac{1}{3}}", "\\frac{1}{3}"),
        extracted("extract_gsm8k_final_answer", "Some.\n#### 2,500", "2500"),
        extracted("_extract_final_int", "20 + 3 = 23. So it is 23.", 23),
        extracted("_extract_final_int", "nothing here", None),
        extracted("normalize_answer", "\\text{north}", "north"),
        extracted("normalize_answer", None, None),
        extracted("split_tuple", "(4, 5, 6)", ["4", "5", "6"]),
        extracted("split_tuple", "", []),
    ],
}


def written(folder: Path) -> Path:
    (folder / "grader_cases").mkdir()
    for source, rows in SMALL.items():
        lines = (
            json.dumps(row | {"test": "ours", "source": "ours", "licence": "Apache-2.0"}) for row in rows
        )
        (folder / "grader_cases" / f"{source}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_published_grader_cases_agree_except_for_known_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = os.environ.get("DATA")
    found = asyncio.run(GRADERS["outcomes"](Path(data) if data else written(tmp_path)))
    assert set(found) >= set(SMALL)
    with capsys.disabled():
        print()
        for source, outcomes in found.items():
            GRADERS["tell"](source, outcomes)
    for source, outcomes in found.items():
        differing = [one.row for one in outcomes if not one.agrees]
        assert all(row["suspect"] for row in differing if "suspect" in row)
        assert len([row for row in differing if "suspect" not in row]) <= BY_DESIGN.get(source, 0), source
    assert all(one.agrees == ("suspect" not in one.row) for one in found["math_verify"])


RECORDED = [
    ('{"reasoning": "2 + 2", "answer": "4"}', "4", True),
    ("2 + 2 = 4.\n\nAnswer: 4 apples", "4 apples", True),
    ("So it is $\\boxed{5}$", "5", False),
    ("I cannot tell", None, False),
    ('{"answer": "5"}\n\nI am sorry. {"answer": "4"}', "5", False),
]
"""Response, recorded answer and recorded verdict, all to one question whose answer is 4."""


def test_recorded_answers_are_graded_again_from_their_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "zeroeval").mkdir()
    question = {"task": "gsm", "qid": "q0", "question": "2 + 2?", "gold": "4", "split": "train"}
    rows = [
        {"qid": "q0", "model": "m", "response": response, "answer": answer, "correct": correct}
        for response, answer, correct in RECORDED
    ]
    pq.write_table(pa.Table.from_pylist([question]), tmp_path / "zeroeval" / "questions_gsm.parquet")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "zeroeval" / "responses_gsm.parquet")
    agreement = asyncio.run(GRADERS["compare_recorded"](tmp_path, "gsm", None, 1))
    assert agreement["math"] == pytest.approx(0.8)
    told = capsys.readouterr().out
    assert "zeroeval gsm, math: 80.00% of 5 recorded verdicts" in told
    assert "1 another statement in the response counts, right by us" in told
