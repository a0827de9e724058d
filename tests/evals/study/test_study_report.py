"""The report of a study says what to do, what is luck, and what it does not know; names cannot break it."""

from __future__ import annotations

import dataclasses

import numpy as np

from podium.evals.study.decision import decide
from podium.evals.study.judges import NearMisses
from podium.evals.study.methods import crossfit, methods_for
from podium.evals.study.report import study_html, study_markdown
from podium.evals.study.result import Bounds, Study
from podium.planners.answer_matrix import AnswerMatrix, select_questions
from simulated_answers import cheap_is_as_good, nothing_helps, votes_help


def study_of(answers: AnswerMatrix, **known: object) -> Study:
    methods = (method for method in methods_for(answers) if "router" not in method.name)
    made = {
        **dict(decide(crossfit(answers, methods))),
        **{"tasks": "mine", "questions": len(answers.texts), "judged_by": "golds"},
        **{"workers": answers.workers, "bounds": Bounds.of(answers)},
    }
    return Study(**made | known)


def test_report_says_if_nothing_helps_and_which_gain_was_detectable() -> None:
    study = study_of(nothing_helps(0, samples=2))
    page = study_markdown(study)
    single = study.reference.choice.removesuffix(" alone")
    assert page.startswith(
        f"# Does a team pay? mine\n\n**Nothing beats `{single}` alone on your questions.**"
    )
    assert "is likely (80 %) to find a gain of the best team if it is" in page
    assert "are luck, which no planner can know" in page
    assert Study.model_validate_json(study.model_dump_json()) == study


def test_headline_claims_no_more_than_its_open_rows() -> None:
    few = select_questions(nothing_helps(0), np.arange(12))
    study = study_of(few)
    assert any(row.verdict == "open" and row.is_team for row in study.rows)
    assert "**Nothing is shown to beat `" in study_markdown(study)


def test_report_starts_with_the_recommendation_and_its_price() -> None:
    better = study_markdown(study_of(votes_help(0), files=("team.toml",)))
    assert "**Use a vote of " in better
    assert "points more often than" in better
    assert "`podium serve --team team.toml`" in better
    cheaper = study_markdown(study_of(cheap_is_as_good(0)))
    assert "**Use w1 alone. It is as good as `w0` alone" in cheaper
    assert "costs 90% less" in cheaper


def test_an_open_case_says_how_many_questions_would_decide_it() -> None:
    tied = dataclasses.replace(nothing_helps(0), cost_QW=np.tile([0.01, 0.001, 0.01, 0.01], (120, 1)))
    study = study_of(tied)
    cheap = next(row for row in study.rows if row.label == "w1 alone")
    page = study_markdown(study)
    assert cheap.verdict == "open"
    assert f"open: about {cheap.more_questions:,} more questions would decide it" in page


def test_report_of_too_few_questions_shows_no_detectable_gain() -> None:
    few = study_of(nothing_helps(0, questions=3))
    assert few.detectable is not None
    assert few.detectable > 1
    page = study_markdown(few)
    assert "is not likely to find any gain of a team, however large" in page
    assert "likely (80 %)" not in page


def test_a_grader_that_seems_to_judge_right_answers_wrong_is_doubted() -> None:
    answers = votes_help(0, questions=40)
    for with_words, doubted in ((3, True), (2, False), (0, False)):
        study = study_of(answers, misjudged=NearMisses(wrong=12, with_words=with_words))
        page = study_markdown(study)
        assert ("name another grader" in page) == doubted
        assert (f"{with_words} of the 12 answers judged wrong contain the right" in page) == doubted


def test_report_states_how_answers_were_judged() -> None:
    answers = votes_help(0, questions=40)
    assert "agreement, not truth" in study_markdown(study_of(answers, judged_by="agreement"))
    assert "the worker large judged all answers" in study_markdown(
        study_of(answers, judged_by="judge", judge="large")
    )
    both = study_markdown(study_of(answers, judged_by="outcomes and judge", judge="large"))
    assert "what users said" in both
    assert "the worker large judged it" in both
    assert "all answers" not in both
    replayed = study_of(answers, recorded=True, replayed=answers.workers)
    assert "no worker was paid" in study_markdown(replayed)
    assert "The workers answered from a recording" in study_html(replayed)
    mixed = study_markdown(study_of(answers, replayed=answers.workers[:2]))
    assert "no worker was paid" not in mixed
    assert "w0, w1 answered from a recording" in mixed


def test_no_name_breaks_the_page() -> None:
    answers = votes_help(0, questions=40)
    odd = tuple(f"<b>|{name}" for name in answers.workers)
    study = study_of(dataclasses.replace(answers, workers=odd), tasks="<script>")
    shown = study_html(study)
    assert "<script>" not in shown
    assert "<b>|" not in shown
    rows = [line for line in study_markdown(study).splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {6}
