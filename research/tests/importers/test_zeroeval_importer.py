"""The importer of ZeroEval: strict verdicts beside its own, and short answers found and compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from podium_research.importers.zeroeval import extract_json_answer, import_zeroeval, same
from recordings.importer_sources import imported, refused, write_json


def zero(id_: str, gold: str, *output: str, **more: Any) -> dict[str, Any]:
    return {"id": id_, "question": f"Question {id_}?", "answer": gold, "output": list(output), **more}


@pytest.fixture
def zeroeval(tmp_path: Path) -> Path:
    source = tmp_path / "result_dirs" / "gsm"
    write_json(
        source / "wise.json",
        [
            zero("1", "#### 1,000", '{"reasoning": "...", "answer": "1000"}'),
            zero("2", "18", '{"answer": "18 dollars"}'),
            zero("3", "7", "I cannot."),
            zero("1", "1000", '{"answer": "1"}'),
        ],
    )
    write_json(
        source / "quick.json",
        [{"id": "4", "problem": "A problem?", "answer": 3, "output": ['{"answer": 3}']}],
    )
    write_json(
        source.parent / "gsm.summary.json",
        [{"Model": "wise", "Acc": "50.00"}, {"Model": "gone", "Acc": "1.0"}],
    )
    return source


def test_zeroeval_import_grades_strictly_and_checks_published_figures(zeroeval: Path) -> None:
    recording, import_report, told = imported(import_zeroeval, zeroeval)
    assert told == ["quick", "wise"]
    assert (recording.header.questions, recording.header.responses) == (4, 4)
    verdicts = {
        question.id: (
            question.gold,
            *[(r.answer, r.score) for (r,) in recording.responses(question.text).values()],
        )
        for question in recording.questions
    }
    assert verdicts == {
        "gsm/1": ("1,000", ("1000", 1.0)),
        "gsm/2": ("18", ("18 dollars", 0.0)),
        "gsm/3": ("7", (None, 0.0)),
        "gsm/4": ("3", ("3", 1.0)),
    }
    # By the source's own rule "18 dollars" is right, and of four records two are.
    assert import_report.published == {"wise": 0.5}
    assert import_report.measured == {"wise": 0.5}
    assert import_report.differing == {}
    assert import_report.sentences == ("records of wise to a question that it answered before (1)",)
    assert recording.responses("A problem?").keys() == {"quick"}


def test_zeroeval_says_when_the_rows_do_not_give_the_published_figure(zeroeval: Path) -> None:
    write_json(zeroeval.parent / "gsm.summary.json", [{"Model": "wise", "Acc": "50.30"}])
    assert imported(import_zeroeval, zeroeval)[1].differing == {"wise": (pytest.approx(0.503), 0.5)}
    write_json(zeroeval.parent / "gsm.summary.json", [{"Model": "wise", "Acc": "50.10"}])
    assert imported(import_zeroeval, zeroeval)[1].differing == {}
    (zeroeval.parent / "gsm.summary.json").unlink()
    assert imported(import_zeroeval, zeroeval)[1].published == {}


def test_zeroeval_counts_the_outputs_after_the_first(zeroeval: Path) -> None:
    outputs = ['{"answer": "4"}', '{"answer": "5"}', '{"answer": "6"}']
    write_json(
        zeroeval / "wise.json", [zero("1", "4", *outputs), zero("2", "4", *outputs[:2]), zero("3", "4", "4")]
    )
    _, import_report, _ = imported(import_zeroeval, zeroeval)
    assert import_report.sentences == ("outputs of wise after the first to a question (3)",)


def test_zeroeval_leaves_out_answers_to_another_wording_and_counts_them(zeroeval: Path) -> None:
    write_json(
        zeroeval / "other.json",
        [
            zero("1", "2", '{"answer": "2"}', question="Another 1?"),
            zero("2", "18", '{"answer": "18"}', question="Question 2? "),
        ],
    )
    write_json(
        zeroeval / "wise.json", [zero("1", "5", '{"answer": "5"}'), zero("2", "18", '{"answer": "8"}')]
    )
    write_json(zeroeval.parent / "gsm.summary.json", [{"Model": "wise", "Acc": "50.00"}])
    recording, import_report, _ = imported(import_zeroeval, zeroeval)
    assert recording.responses("Another 1?").keys() == {"other"}
    assert recording.responses("Question 2?").keys() == {"other", "wise"}
    assert recording.find("Question 1?") is None
    assert import_report.sentences == ("answers of wise to another wording of a question (1)",)
    assert import_report.measured == {"wise": 0.5}, "the published figure counts it too"


def test_zeroeval_takes_any_answer_that_a_model_may_write(zeroeval: Path) -> None:
    odd = ["./.", "1.2.3/4", "-", "1/0", "", "$", "\\frac{1}{0}", "\U0001f600", "nan", "1e400"]
    write_json(
        zeroeval / "wise.json",
        [zero(str(n), "4", json.dumps({"answer": said})) for n, said in enumerate(odd)],
    )
    recording, _, _ = imported(import_zeroeval, zeroeval)
    assert next(worker for worker in recording.header.workers if worker.name == "wise").accuracy == 0


def test_zeroeval_import_refuses_another_folder(zeroeval: Path) -> None:
    assert "holds no *.json; give one of its folders of short answers" in refused(
        import_zeroeval, zeroeval.parent / "none"
    )
    file = zeroeval / "wise.json"
    for text, sentence in (
        (
            '{"a": 1}',
            "is not of the expected form (at its top: Input should be a valid array); fetch it again.",
        ),
        ('[{"a": 1}]', "is not of the expected form (at 0.id: Field required); fetch it again."),
        ("[", "is not a JSON file that can be read; fetch it again."),
    ):
        file.write_text(text)
        assert refused(import_zeroeval, zeroeval) == f"{file} {sentence}"


@pytest.mark.parametrize(
    "record",
    [
        7,
        {"output": ["4"]},
        {"output": ["4"], "answer": "4"},
        zero("1", "4"),
        {**zero("1", "4"), "output": None},
    ],
)
def test_zeroeval_refuses_records_of_another_form(zeroeval: Path, record: Any) -> None:
    file = write_json(zeroeval / "wise.json", [record])
    assert str(file) in refused(import_zeroeval, zeroeval)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ('{"reasoning": "6 * 7", "answer": "42"}', "42"),
        ('{"answer": 42}', "42"),
        ('```json\n{\n  "reasoning": "a",\n  "answer": "-3.5"\n}\n```', "-3.5"),
        ('Here it is: {"answer": "x"} Goodbye {"answer": "y"}', "x"),
        ('{"reasoning": "line\nbreak", "answer": "7"}', "7"),
        ('{"reasoning": "she said "seven"", "answer": "7"}', "7"),
        ('{"reasoning": "broken, "answer": 12}', "12"),
        ('By \\frac{1}{2} we get {"answer": "1/2"}', "1/2"),
        ('{"result": {"answer": 1}}', "1"),
        ('{"answer": "a \\"word\\""}', 'a "word"'),
        ('{"answer": "gr\\u00fcn"}', "grün"),
        ("answer: 12", "12"),
        ('{"a":' * 2000 + " answer: 12", "12"),
        ('{"answer": null}', None),
        ("It is 42.", None),
        ("", None),
    ],
)
def test_zeroeval_finds_the_answer_in_malformed_json(said: str, answer: str | None) -> None:
    assert extract_json_answer(said) == answer


@pytest.mark.parametrize(
    "said",
    [
        r'{"answer": "\\frac{3}{4}"}',
        r'{"answer": "\frac{3}{4}"}',
        r'{"reasoning": "\sqrt{9}", "answer": "\frac{3}{4}"}',
        r'{"reasoning": "so "it" is", "answer": "\\frac{3}{4}"}',
    ],
)
def test_latex_is_read_whether_or_not_its_backslashes_were_doubled(said: str) -> None:
    answer = extract_json_answer(said)
    assert answer is not None
    assert same(answer, r"\frac{3}{4}")


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("42", "42", True),
        ("1,234,567", "1234567", True),
        ("10,\\!080", "10080", True),
        ("3.0", "3", True),
        ("5.", "5", True),
        ("1/2", "0.5", True),
        (r"\frac{1}{2}", "1/2", True),
        (r"\dfrac{1}{2}", r"\tfrac{1}{2}", True),
        (r"\frac12", "0.5", True),
        (r"-\frac{1}{2}", "-0.5", True),
        (r"$\boxed{42}$", "42", True),
        (r"\(5\)", "5", True),
        ("$18", "18", True),
        (r"\$18", "18", True),
        (r"\$1,800.00", "1800", True),
        (r"50\%", "50", True),
        ("50%", "50", True),
        (r"\text{Evelyn}", "evelyn", True),
        (r"\left(3, \frac{\pi}{2}\right)", r"(3,\frac{\pi}{2})", True),
        (r"3 \sqrt{2}", r"3\sqrt{2}", True),
        ("41", "42", False),
        ("-42", "42", False),
        ("1/3", "0.333", False),
        ("0.5", "50%", False),
        ("42 and 43", "42", False),
        ("", "42", False),
        ("Evelyn B", "Evelyn", False),
        (r"2\frac{1}{2}", r"\frac{21}{2}", False),
        (r"\frac{1}{0}", "0", False),
        ("1e3", "1000", True),
    ],
)
def test_short_answers_match_by_number_or_by_text_without_formatting(
    answer: str, gold: str, expected: bool
) -> None:
    assert same(answer, gold) == expected
