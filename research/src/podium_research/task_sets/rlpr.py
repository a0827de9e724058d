"""RLPR: questions of many fields with short free answers, and the grader that picks rules by the form of the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import PrivateAttr

from podium.plugin_api.tasks import Grade, GraderSettings, Sample
from podium.tasks.graders.choice import Choice
from podium.tasks.graders.judge import Judge
from podium.tasks.graders.math_graders import Math
from podium.tasks.graders.text_graders import Normalised
from podium.tasks.sets.prompts import FINAL_ANSWER, content_id
from podium_research.task_sets.hub import HubSet, text_column

_LETTER = re.compile(r"[A-P]")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_NUMBER = re.compile(r"\W*\d")
_UNIT_WORDS = 3
_PHRASE_WORDS = 5
"""The most words of a gold answer that rules can compare: more words can be said in too many ways."""


class RLPR(HubSet):
    """RLPR: questions of many fields with short free answers, meant for training without a verifier.

    Source: `openbmb/RLPR-Train-Dataset` (about 77,000, most of them from WebInstruct-verified) and, for test, the
    file `WebInstruct-verified-val_Avg2` of `openbmb/RLPR-Evaluation` (638, whose answer is a letter), both on the hub
    (Yu et al. 2025, arXiv 2506.18254), CC-BY-NC-4.0. Splits: train (of which a tenth is validation) and test. A
    question is the last user turn of the source's prompt; the system turn, for a policy in training, is left out.
    The authors reward a policy's own probability of the reference answer, which a worker behind an endpoint does not
    report. Here rules grade by the form of the gold answer (`FreeForm`), and questions that only a judge can grade are
    left out and counted; or, with `judge`, a worker judges all questions. Other graders give other figures.
    """

    source: ClassVar[str] = "openbmb/RLPR-Train-Dataset"
    licence: ClassVar[str] = "CC-BY-NC-4.0"
    set: Literal["rlpr"] = "rlpr"
    judge: Judge | None = None
    """The judge that grades. Without it, rules grade."""

    def source_of(self, split: str) -> str:
        return "openbmb/RLPR-Evaluation" if split == "test" else self.source

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {"train": ("rlpr_train.parquet",), "test": ("WebInstruct-verified-val_Avg2.parquet",)}

    @property
    def grader(self) -> GraderSettings:
        return self.judge or FreeForm()

    def record_to_sample(self, values: Mapping[str, Any]) -> Sample:
        user_turns = [turn for turn in values["prompt"] if turn["role"] == "user"]
        if not user_turns:
            raise ValueError("its prompt has no user turn")
        question = text_column(user_turns[-1], "content")
        gold = text_column(values["reward_model"], "ground_truth").strip()
        facts = {"family": text_column(values, "ability"), "source": text_column(values, "data_source")}
        return Sample(FINAL_ANSWER.format(question=question), gold, content_id(question), facts)


class FreeForm(GraderSettings):
    """Grades by the form of the gold answer: a letter as `choice`, a phrase as `normalised`, anything else as `math`.

    A number with up to three words after it, its unit, is mathematics; other words are a phrase. A gold answer of more
    than five words is refused, since no program can compare sentences.
    """

    kind: Literal["free-form"] = "free-form"
    _letter: Choice = PrivateAttr(default_factory=Choice)
    _phrase: Normalised = PrivateAttr(default_factory=Normalised)
    _formula: Math = PrivateAttr(default_factory=Math)

    def gold_problem(self, gold: str) -> str | None:
        if len(_words(gold)) > _PHRASE_WORDS:
            return "only a judge can compare a gold answer of so many words"
        return self._by_form(gold).gold_problem(gold)

    async def __call__(self, response: str, gold: str) -> Grade:
        return await self._by_form(gold)(response, gold)

    def _by_form(self, gold: str) -> GraderSettings:
        if _LETTER.fullmatch(gold):
            return self._letter
        words = _words(gold)
        if not words or (_NUMBER.match(gold) and len(words) <= _UNIT_WORDS):
            return self._formula
        return self._phrase


def _words(gold: str) -> list[str]:
    """The words of a gold answer, without LaTeX commands."""
    return _WORD.findall(_COMMAND.sub(" ", gold))
