"""Importers of reasoning-gym-eval and MMLU-Pro: rows, verdicts, published figures, what was left out, errors."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from podium.recordings import RecordedResponse
from podium.types import estimate_tokens
from podium_research.importers.mmlu_pro import import_mmlu_pro
from podium_research.importers.reasoning_gym import import_reasoning_gym
from recordings.importer_sources import imported, refused, write_json, write_zip

# --- reasoning-gym-eval ------------------------------------------------------------------------------------


def completion(text: str | None, answer: str | None, score: float | None) -> dict[str, Any]:
    return {"full_model_response": text, "model_answer": answer, "score": score}


def task_set(name: str, *results: tuple[str, Any, Sequence[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "name": name,
        "results": [
            {"question": text, "expected_answer": gold, "completions": given} for text, gold, given in results
        ],
    }


@pytest.fixture
def gym(tmp_path: Path) -> Path:
    source = tmp_path / "easy"
    one = source / "acme_wise-1_20250315_163713"
    write_json(
        one / "algebra" / "sums.json",
        task_set(
            "sums",
            ("2 + 2?", 4, [completion("It is 4.", "4", 1.0), completion("5", "5", 0.0)]),
            ("3 + 3?", "6", [completion("six", None, 0.01), completion(None, None, 1.0)]),
        ),
    )
    write_json(
        one / "games" / "grids.json", task_set("grids", ("A grid?", None, [completion("1\n2", "1\n2", 0.5)]))
    )
    write_json(one / "games" / "extra.json", task_set("extra", ("Spare?", "x", [completion("x", "x", 1.0)])))
    write_json(
        one / "summary.json",
        {"model": "acme/wise-1.0", "dataset_mean_scores": {"sums": 0.255, "grids": 0.7, "gone": 1}},
    )
    two = source / "acme_quick"
    write_json(two / "algebra" / "sums.json", task_set("sums", ("2 + 2?", 4, [completion("3", "3", 0.0)])))
    return source


def test_reasoning_gym_gives_every_completion_with_its_verdict(gym: Path) -> None:
    recording, import_report, told = imported(import_reasoning_gym, gym)
    assert told == ["acme/quick", "acme/wise-1.0"]
    assert recording.workers == ("acme/quick", "acme/wise-1.0")
    assert (recording.header.questions, recording.header.responses) == (4, 6)
    tokens = estimate_tokens("It is 4.")
    first, second = recording.responses("2 + 2?")["acme/wise-1.0"]
    assert first == RecordedResponse(
        "acme/wise-1.0", 0, "It is 4.", "4", 1.0, output_tokens=tokens, estimated=True
    )
    assert (second.sample, second.answer, second.score) == (1, "5", 0.0)
    (six,) = recording.responses("3 + 3?")["acme/wise-1.0"]
    assert (six.answer, six.score) == (None, pytest.approx(0.01))
    asked = {question.text: (question.gold, question.family) for question in recording.questions}
    assert asked == {
        "2 + 2?": ("4", "sums"),
        "3 + 3?": ("6", "sums"),
        "A grid?": (None, "grids"),
        "Spare?": ("x", "extra"),
    }
    assert import_report.licence == "Apache-2.0"


def test_reasoning_gym_counts_samples_without_completions_left_out(gym: Path) -> None:
    file = gym / "acme_quick" / "algebra" / "sums.json"
    given = [completion(None, None, 1.0), completion("3", "3", 0.0), completion("4", "4", 1.0)]
    write_json(file, task_set("sums", ("2 + 2?", 4, given)))
    recording, _, _ = imported(import_reasoning_gym, gym)
    assert [(one.sample, one.text) for one in recording.responses("2 + 2?")["acme/quick"]] == [
        (0, "3"),
        (1, "4"),
    ]
    assert recording.samples("acme/quick") == 2


def test_reasoning_gym_import_compares_published_means_with_row_means(gym: Path) -> None:
    recording, import_report, _ = imported(import_reasoning_gym, gym)
    # sums: (0.5 + 0.01) / 2; grids: 0.5 where 0.7 is published.
    assert import_report.published == {"acme/wise-1.0": pytest.approx((0.255 + 0.7) / 2)}
    assert import_report.measured == {"acme/wise-1.0": pytest.approx((0.255 + 0.5) / 2)}
    assert import_report.differing == {"acme/wise-1.0": (pytest.approx(0.4775), pytest.approx(0.3775))}
    quick, wise = recording.header.workers
    assert (quick.published, quick.measured) == (None, None)
    assert (wise.published, wise.measured) == (pytest.approx(0.4775), pytest.approx(0.3775))
    assert wise.accuracy == pytest.approx(2 / 5)


def test_reasoning_gym_import_reports_skipped_rows(gym: Path) -> None:
    document = json.loads((gym / "acme_quick" / "algebra" / "sums.json").read_text())
    document["results"] *= 2
    write_json(gym / "acme_quick" / "algebra" / "sums.json", document)
    _, import_report, _ = imported(import_reasoning_gym, gym)
    assert set(import_report.sentences) == {
        "completions to a question that is twice in its task set (1)",
        "task sets of acme/quick without a published figure (1)",
        "task sets of acme/wise-1.0 without a published figure (1)",
        "completions without a text or a score in the source (1)",
    }


def test_reasoning_gym_import_refuses_another_folder(gym: Path, tmp_path: Path) -> None:
    file = gym / "acme_quick" / "algebra" / "sums.json"
    assert refused(import_reasoning_gym, file).endswith(
        "holds no folders; give one of its zero-shot folders, such as zero-shot/easy."
    )
    assert "holds no folders" in refused(import_reasoning_gym, gym / "acme_quick" / "algebra")
    file.write_text("{")
    assert (
        refused(import_reasoning_gym, gym) == f"{file} is not a JSON file that can be read; fetch it again."
    )


@pytest.mark.parametrize("document", [[], {}, {"name": "sums"}, {"name": "sums", "results": [{"gold": 1}]}])
def test_reasoning_gym_refuses_json_of_another_form(gym: Path, document: Any) -> None:
    file = write_json(gym / "acme_quick" / "algebra" / "sums.json", document)
    assert str(file) in refused(import_reasoning_gym, gym)


@pytest.mark.parametrize("score", ["2.5", "-0.1", "1e999", "NaN", "Infinity"])
def test_reasoning_gym_import_refuses_scores_outside_0_to_1(gym: Path, score: str) -> None:
    file = gym / "acme_quick" / "algebra" / "sums.json"
    file.write_text(file.read_text().replace('"score": 0.0', f'"score": {score}'))
    assert refused(import_reasoning_gym, gym).startswith(
        f"{file} is not of the expected form (at results.0.completions.0.score: Input should be "
    )


# --- MMLU-Pro ------------------------------------------------------------------------------------------------


def letters(
    id_: int, pred: str | None, text: str = "Think. (B)", key: str = "model_outputs", **more: Any
) -> dict[str, Any]:
    record = {
        "question_id": id_,
        "question": f" Which of {id_}? ",
        "options": ["no", "yes"],
        "answer": "B",
        "category": "law",
        key: text,
        **more,
    }
    return record if pred == "" else record | {"pred": pred}


@pytest.fixture
def mmlu(tmp_path: Path) -> Path:
    source = tmp_path / "eval_results"
    write_zip(
        source / "model_outputs_GPT-4o_5shots.zip", [letters(1, "B"), letters(2, "A")], [letters(3, None)]
    )
    write_zip(
        source / "model_outputs_old-one_0-shots.json.zip",
        [letters(1, "B", options=["nay", "yes"]), letters(2, "B", key="generated_text")],
    )
    write_zip(
        source / "plain.zip",
        [letters(1, ""), letters(2, "B", text="x" * 9, model_outputs=None), letters(1, "A")],
    )
    return source


def test_mmlu_pro_import_keeps_the_wording_that_most_models_answered(mmlu: Path) -> None:
    recording, import_report, told = imported(import_mmlu_pro, mmlu)
    assert told == ["GPT-4o", "old-one", "plain"]
    first = recording.find("Which of 1?\n(A) no\n(B) yes")
    assert first is not None
    assert (first.id, first.gold, first.family) == ("1", "B", "law")
    given = recording.responses(first.text)
    assert given["GPT-4o"] == (
        RecordedResponse(
            "GPT-4o", 0, "Think. (B)", "B", 1.0, output_tokens=estimate_tokens("Think. (B)"), estimated=True
        ),
    )
    assert [(r.answer, r.score) for r in given["plain"]] == [(None, 0.0)]
    assert "old-one" not in given
    assert [r.score for r in recording.responses("Which of 2?\n(A) no\n(B) yes")["old-one"]] == [1.0]
    assert [r.score for r in recording.responses("Which of 3?\n(A) no\n(B) yes")["GPT-4o"]] == [0.0]
    assert set(import_report.sentences) == {
        "answers of old-one to a wording that the source has changed (1)",
        "records of plain without a response (1)",
        "records of plain to a question that it answered before (1)",
    }
    assert (import_report.published, import_report.differing) == ({}, {})


def test_mmlu_pro_import_refuses_another_folder(mmlu: Path, tmp_path: Path) -> None:
    assert refused(import_mmlu_pro, tmp_path) == f"{tmp_path} holds no *.zip; give its folder eval_results."
    file = write_zip(mmlu / "odd.zip", {"question_id": 1})
    assert f"{file} is not of the expected form" in refused(import_mmlu_pro, mmlu)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.json", "[")
    assert refused(import_mmlu_pro, mmlu) == f"{file} is not a zip of JSON files; fetch it again."
    file.write_text("no zip")
    assert refused(import_mmlu_pro, mmlu) == f"{file} is not a zip of JSON files; fetch it again."


@pytest.mark.parametrize(
    "record", [7, {"question_id": 1}, {"question_id": 1, "question": "Q?", "options": None}]
)
def test_mmlu_pro_refuses_records_of_another_form(mmlu: Path, record: Any) -> None:
    file = write_zip(mmlu / "odd.zip", [record])
    assert str(file) in refused(import_mmlu_pro, mmlu)


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_mmlu_pro_refuses_a_zip_whose_data_is_damaged(mmlu: Path, packing: int) -> None:
    file = mmlu / "odd.zip"
    with zipfile.ZipFile(file, "w", packing) as archive:
        archive.writestr("a.json", json.dumps([letters(n, "B", text=f"{n}" * n) for n in range(200)]))
    content = bytearray(file.read_bytes())
    content[60:400] = bytes(255 - byte for byte in content[60:400])
    file.write_bytes(content)
    assert refused(import_mmlu_pro, mmlu) == f"{file} is not a zip of JSON files; fetch it again."


@pytest.mark.parametrize(
    ("place", "value"), [("its flags: encrypted", (6, 8, 0x01)), ("its packing: unknown", (8, 10, 99))]
)
def test_mmlu_pro_refuses_a_zip_that_cannot_be_unpacked(
    mmlu: Path, place: str, value: tuple[int, int, int]
) -> None:
    local, central, mark = value
    file = write_zip(mmlu / "odd.zip", [letters(1, "B")])
    content = bytearray(file.read_bytes())
    for header, offset in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        content[content.index(header) + offset] = mark
    file.write_bytes(content)
    assert refused(import_mmlu_pro, mmlu) == f"{file} is not a zip of JSON files; fetch it again.", place


def test_mmlu_pro_refuses_a_folder_that_is_called_like_a_zip(mmlu: Path) -> None:
    (mmlu / "odd.zip").mkdir()
    assert "odd.zip is not a zip of JSON files; fetch it again." in refused(import_mmlu_pro, mmlu)


def test_json_that_is_nested_too_deeply_is_refused(mmlu: Path, gym: Path) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    with zipfile.ZipFile(mmlu / "odd.zip", "w") as archive:
        archive.writestr("a.json", deep)
    assert "odd.zip is not a zip of JSON files; fetch it again." in refused(import_mmlu_pro, mmlu)
    (gym / "acme_quick" / "algebra" / "sums.json").write_text(deep)
    assert "sums.json is not a JSON file that can be read; fetch it again." in refused(
        import_reasoning_gym, gym
    )
