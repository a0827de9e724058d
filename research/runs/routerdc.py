"""Routers on RouterDC's data sets: mean scores of one model chosen for each question. Nothing of the source is kept.

python runs/routerdc.py CHECKOUT                   five-fold over the training questions; looks at no test question
python runs/routerdc.py CHECKOUT --declare NOTE    the test questions, as declared in runs/routerdc.looks.jsonl

CHECKOUT is a clone of github.com/shuhao02/RouterDC, which has no licence: the recording is made in a temporary folder.
Figures are means over data sets, as published: 58.54 for RouterDC over the five in-distribution sets.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import fmean

import numpy as np

from podium.evals.fingerprints import digest
from podium.evals.look_log import TEST, Look, LookLog
from podium.recordings import RecordedQuestion, Recording, RecordingWriter
from podium_research.importers.routerdc import import_routerdc
from podium_research.planners.routers import learn_router

FOLDS = 5
INSIDE = ("mmlu", "gsm8k", "cmmlu", "arc_challenge", "humaneval")
OUTSIDE = ("MATH_prealgebra", "mbpp", "ceval")
LEDGER = Path("runs/routerdc.looks.jsonl")

Rule = Callable[[RecordedQuestion], str]


class Scores:
    """Each question's score by model. Questions that a model did not answer are left out."""

    def __init__(self, recording: Recording) -> None:
        self.workers = recording.workers
        self._of = {
            question.id: {one.worker: one.score or 0.0 for one in recording.all_responses(question.text)}
            for question in recording.questions
        }

    def whole(self, questions: Iterable[RecordedQuestion]) -> list[RecordedQuestion]:
        return [one for one in questions if len(self._of[one.id]) == len(self.workers)]

    def of(self, question: RecordedQuestion) -> dict[str, float]:
        return self._of[question.id]

    def mean(self, questions: Sequence[RecordedQuestion], worker: str) -> float:
        return fmean(self.of(question)[worker] for question in questions)


def rules(known: Sequence[RecordedQuestion], scores: Scores) -> Iterator[tuple[str, Rule]]:
    """The rows: a label, and which model answers a question. They learn from `known` alone."""
    best = max(scores.workers, key=lambda worker: scores.mean(known, worker))
    yield f"best model: {best}", lambda question: best
    families = {question.family for question in known if question.family is not None}
    model_of = {
        family: max(
            scores.workers,
            key=lambda worker: scores.mean([one for one in known if one.family == family], worker),
        )
        for family in families
    }
    yield "best model of the data set (knows it)", lambda question: model_of.get(question.family or "", best)
    names = sorted(model_of)
    is_QF = np.array([[one.family == name for name in names] for one in known], dtype=float)
    family_of = learn_router("ridge", [one.text for one in known], is_QF, names)
    yield (
        "best model of the data set that ridge recognises",
        lambda question: model_of[str(family_of(question.text))],
    )
    score_QW = np.array([[scores.of(one)[worker] for worker in scores.workers] for one in known])
    choose = learn_router("ridge", [one.text for one in known], score_QW, scores.workers)
    yield "ridge over n-grams", lambda question: str(choose(question.text))
    yield "oracle (a bound)", lambda question: max(scores.of(question), key=scores.of(question).__getitem__)


def by_family(rule: Rule, questions: Sequence[RecordedQuestion], scores: Scores) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for question in questions:
        found.setdefault(question.family or "", []).append(scores.of(question)[rule(question)])
    return found


def macro(found: dict[str, list[float]], families: Sequence[str]) -> str:
    """The mean over data sets of mean scores, in percent."""
    means = [fmean(found[family]) for family in families if family in found]
    return f"{100 * fmean(means):.2f}" if means else ""


def cross_fit(train: Sequence[RecordedQuestion], scores: Scores) -> dict[str, dict[str, list[float]]]:
    order = sorted(train, key=lambda question: question.id)
    Random("routerdc/folds").shuffle(order)
    rows: dict[str, dict[str, list[float]]] = {}
    for fold in range(FOLDS):
        known = [one for place, one in enumerate(order) if place % FOLDS != fold]
        for label, rule in rules(known, scores):
            row = rows.setdefault(label.partition(":")[0], {})
            for family, found in by_family(rule, order[fold::FOLDS], scores).items():
                row.setdefault(family, []).extend(found)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--declare", metavar="NOTE", help="what is measured on the test questions, and why")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, RecordingWriter() as writer:
        file = Path(folder) / "routerdc.parquet"
        import_routerdc(options.checkout, writer, lambda name: None)
        writer.write(file, name="routerdc")
        recording = Recording.open(file)
    scores = Scores(recording)
    train = [one for one in scores.whole(recording.questions_of("train")) if one.family in INSIDE]
    if options.declare:
        LEDGER.parent.mkdir(exist_ok=True)
        labels = tuple(label for label, _ in rules(train, scores))
        config = digest([Path(__file__).name, *labels])
        look = Look(tasks="RouterDC", split=TEST, config=config, planners=labels, note=options.declare)
        LookLog(LEDGER).add(look)
        test = scores.whole(recording.questions_of("test"))
        rows = {label: by_family(rule, test, scores) for label, rule in rules(train, scores)}
    else:
        rows = cross_fit(train, scores)
    print("| model chosen by | in distribution | out of distribution |\n|---|---:|---:|")
    for label, found in rows.items():
        print(f"| {label} | {macro(found, INSIDE)} | {macro(found, OUTSIDE)} |")


if __name__ == "__main__":
    main()
