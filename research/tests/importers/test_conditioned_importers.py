"""Importers of answers to other answers: what a log or a judge's file says of them, and what it cannot say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from podium.recordings import ShownContext
from podium.types import ANSWER_WHOLE_QUESTION
from podium_research.importers.dylan import import_dylan
from podium_research.importers.judgebench import COMPARE, import_judgebench
from podium_research.importers.llmverify import VERIFY, import_llmverify
from recordings.importer_sources import imported, refused, write_json

# --- JudgeBench --------------------------------------------------------------------------------------------


def game(text: str, decision: str | None) -> dict[str, Any]:
    return {"judgment": {"judge_model": "wise-1", "prompt": "...", "response": text}, "decision": decision}


def pair(label: str, *games: dict[str, Any] | None, question: str = "Which?") -> dict[str, Any]:
    return {
        **{
            "pair_id": "p",
            "original_id": "1",
            "source": "mmlu-pro-law",
            "question": question,
            "label": label,
        },
        **{"response_model": "able", "response_A": "It is X.", "response_B": "It is Y."},
        **{"judge_name": "vanilla", "judgments": [*games]},
    }


def write_lines(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_judgment_is_found_by_both_answers_in_the_order_shown(
    tmp_path: Path,
) -> None:
    outputs = tmp_path / "outputs"
    start = "dataset=judgebench,response_model=able,judge_name="
    write_lines(
        outputs / f"{start}vanilla,judge_model=wise-1.jsonl",
        pair("A>B", game("A is right.", "A>B"), game("Still the first one.", "A>B")),
        pair("B>A", None, game("The first one.", "A>B"), question="And this?"),
    )
    write_lines(
        outputs / f"{start}reward_model,judge_model=acme_R.jsonl",
        pair("A>B", game("", "A>B"), game("", "B>A")),
    )
    recording, import_report, told = imported(import_judgebench, outputs)
    assert told == ["acme_R/reward_model", "wise-1/vanilla"]
    answers = recording.responses("Which?")["able"]
    assert [(answer.text, answer.score) for answer in answers] == [("It is X.", 1.0), ("It is Y.", 0.0)]
    shown = ((ANSWER_WHOLE_QUESTION, "It is X."), (ANSWER_WHOLE_QUESTION, "It is Y."))
    (first,) = recording.conditioned_responses("Which?", "wise-1/vanilla", ShownContext(COMPARE, shown))
    (second,) = recording.conditioned_responses(
        "Which?", "wise-1/vanilla", ShownContext(COMPARE, shown[::-1])
    )
    assert (first.text, first.score, second.text, second.score) == (
        "A is right.",
        1.0,
        "Still the first one.",
        0.0,
    )
    assert recording.header.conditioned == {"wise-1/vanilla": 3}
    assert import_report.measured == {"wise-1/vanilla": 2 / 3}
    assert import_report.left_out == {
        "judgments of acme_R/reward_model without a text": 2,
        "judgments of wise-1/vanilla without a text": 1,
    }
    (outputs / f"{start}vanilla,judge_model=wise-1.jsonl").write_text('{"pair_id": "p"}\n')
    assert "wise-1.jsonl, line 1, is not of the expected form (at question" in refused(
        import_judgebench, outputs
    )


# --- DyLAN -------------------------------------------------------------------------------------------------

PROMPT = "Problem: What is 1 + 1?\nAnswer: 2\n###\n\nPlease solve the problem below.\nProblem: What is 2 + 2?\nAnswer:"
MEND = "Give an updated answer."


def debate(*solutions: str) -> str:
    shown = "".join(f"\n\nOne agent solution: ```{solution}```" for solution in solutions)
    return f"{PROMPT}\n\nThese are the solutions to the problem from other agents: {shown}\n\n{MEND}"


def agent(*turns: str) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": text} for place, text in enumerate(turns)]
    return [{"role": "system", "content": "It is a debate."}, *messages]


FIVE, CODE, FOUR = r"So \boxed{5}.", "See\n\n```\n2 + 2\n```\n\nThe answer is 4.", r"Thus $\boxed{4}$"


def test_an_agent_of_a_debate_saw_the_latest_answer_of_each_other_one(tmp_path: Path) -> None:
    agents = [
        agent(PROMPT, FIVE, debate(CODE, FOUR), r"Now \boxed{4}.", debate("X", "Y"), r"Sure: \boxed{4}"),
        agent(PROMPT, CODE, debate(r"Now \boxed{4}.", FOUR), "I agree."),
        agent(PROMPT, FOUR, "Are you certain?", "Yes."),
    ]
    other = PROMPT.replace("2 + 2", "4")
    chosen = [agent(other, FIVE, debate(CODE, FOUR), FOUR), agent(other, CODE)]
    write_json(
        tmp_path / "CoT" / "algebra_0_9_4_3.json",
        {PROMPT: [agents, "4", 1, "Algebra"], other: [chosen, "4", 1, "Algebra"]},
    )
    recording, import_report, _ = imported(import_dylan, tmp_path / "CoT")
    question = recording.find("What is 2 + 2?")
    assert question is not None
    assert (question.gold, question.family) == ("4", "Algebra")
    worker = "gpt-3.5-turbo/CoT"
    bare = recording.responses("What is 2 + 2?")[worker]
    assert [(response.text, response.score) for response in bare] == [(FIVE, 0.0), (CODE, 1.0), (FOUR, 1.0)]

    def given(*shown: tuple[str, str]) -> list[tuple[str, float | None]]:
        found = recording.conditioned_responses("What is 2 + 2?", worker, ShownContext(MEND, shown))
        return [(response.text, response.score) for response in found]

    assert given((ANSWER_WHOLE_QUESTION, CODE), (ANSWER_WHOLE_QUESTION, FOUR)) == [(r"Now \boxed{4}.", 1.0)]
    assert given((MEND, r"Now \boxed{4}."), (ANSWER_WHOLE_QUESTION, FOUR)) == [("I agree.", 0.0)]
    assert given((MEND, "X"), (MEND, "Y")) == [(r"Sure: \boxed{4}", 1.0)]
    assert recording.header.conditioned == {worker: 3}
    assert import_report.left_out == {"answers to others whose own messages the logs lack": 2}


# --- LLMVerify ---------------------------------------------------------------------------------------------


def verified(
    response: str, label: object, votes: list[object], texts: list[str], index: int
) -> dict[str, Any]:
    return {
        **{"model": "acme/able", "dataset_source": "math", "dataset_idx": 3, "response_idx": index},
        **{"question": "What is 2 + 2?", "gold_answer": 4, "response": response, "label": label},
        **{"votes": votes, "swap_inference1": texts, "metadata": {}},
    }


def test_a_verification_is_found_by_the_one_answer_that_the_verifier_saw(tmp_path: Path) -> None:
    data = tmp_path / "verifier_data"
    folder = data / "Qwen" / "Qwen3-8B" / "single_verification" / "temp0.0_topp1.0_seqs1"
    folder.mkdir(parents=True)
    write_lines(
        folder / "raw.jsonl",
        verified("It is 4.", 1, [1, 3], ["Correct, it is.", "I cannot tell."], 0),
        verified("It is 5.", False, [2.0], ["No, it is not."], 1),
        verified("It is 5.", False, [1], ["Again."], 1),
    )
    recording, import_report, _ = imported(import_llmverify, data)
    given = recording.responses("What is 2 + 2?")["acme/able"]
    assert [(response.text, response.score) for response in given] == [("It is 4.", 1.0), ("It is 5.", 0.0)]
    of_four = recording.conditioned_responses(
        "What is 2 + 2?", "Qwen/Qwen3-8B", ShownContext(VERIFY, ((ANSWER_WHOLE_QUESTION, "It is 4."),))
    )
    assert [(response.text, response.score) for response in of_four] == [
        ("Correct, it is.", 1.0),
        ("I cannot tell.", 0.0),
    ]
    assert import_report.measured == {"Qwen/Qwen3-8B": 2 / 3}
    assert import_report.left_out == {"verifications of Qwen/Qwen3-8B of an answer that it saw before": 1}
    assert "holds no *.jsonl; give the folder verifier_data" in refused(import_llmverify, tmp_path / "none")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_vote_or_a_label_that_is_no_number_is_no_verdict(tmp_path: Path, number: float) -> None:
    write_lines(
        tmp_path / "judge" / "raw.jsonl",
        verified("It is 4.", 1, [number], ["Who knows?"], 0),
        verified("It is 5.", number, [2], ["No."], 1),
    )
    recording, import_report, _ = imported(import_llmverify, tmp_path)
    assert [response.score for response in recording.responses("What is 2 + 2?")["acme/able"]] == [1.0, 0.0]
    assert import_report.measured == {"judge": 0.0}
