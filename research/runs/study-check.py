#!/usr/bin/env python
"""Does a study of a tenth of the questions find what a study of all of them finds? Writes research/results/study.md.

    DATA=FOLDER research/runs/recordings.sh; python research/runs/study-check.py

For each recorded pool it runs `podium study` on all training questions, and for each seed on a tenth of them. Each run
is a process of its own, with an empty home. The plan that a tenth would serve is then scored on the other nine tenths.
Simulated pools in which no team helps show how often a study recommends one by mistake. What is finished is kept in
runs/study-check, so that a stopped run goes on, and pools can be run one by one (--pools); remove it to start again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT.parent / "tests" / "evals" / "study"))

from podium.evals.comparison_table import format_interval, percent, points  # noqa: E402
from podium.evals.stats import Interval, accuracy_interval, paired_difference  # noqa: E402
from podium.evals.study.answers import StudyAnswers  # noqa: E402
from podium.evals.study.decision import StudyRow, decide  # noqa: E402
from podium.evals.study.methods import (  # noqa: E402
    FittedMethod,
    crossfit,
    methods_for,
)
from podium.evals.study.questions import load_study_questions  # noqa: E402
from podium.evals.study.result import RESULT, Study  # noqa: E402
from podium.evals.study.team_files import RATINGS  # noqa: E402
from podium.planners import open_baseline  # noqa: E402
from podium.planners.answer_matrix import AnswerMatrix, select_questions  # noqa: E402
from podium.team.settings import TeamSettings  # noqa: E402
from podium.team.team_file import open_pool  # noqa: E402
from podium.workers.ratings import Ratings  # noqa: E402
from simulated_answers import nothing_helps  # noqa: E402

POOLS = {
    "reasoning-gym-easy-six": "reasoning-gym-easy",
    "reasoning-gym-hard-six": "reasoning-gym-hard",
    "math-l5": "zeroeval-math-l5",
    "mmlu-pro": "mmlu-pro",
}
"""Pools of configs/pools, and the recordings that they answer from."""
KEPT = ROOT / "runs" / "study-check"
_POWER = 1.4
"""How much wider than its interval a gain must be to be found with a probability of 80 % and not 50 %."""


@dataclass(frozen=True)
class Tenth:
    """What the study of one tenth found, and what became of it elsewhere."""

    seed: int
    found: Study
    elsewhere: Interval
    """The served plan minus the best single worker of all questions, on the other nine tenths."""
    price: float
    """What the served plan costs there, as a share of that worker's price."""
    row: StudyRow
    """What it says of the method that all questions recommend, or of the best team if they recommend no team."""
    there: float
    """What the tenth's choice for this method gains on the other nine tenths, beside the tenth's best single worker."""
    full: float
    """That method's gain by all questions, beside the same worker."""
    needed: str
    """How many questions find this gain, by the study of all questions."""

    @property
    def held(self) -> bool:
        """Whether its interval holds what its choice gains on the other nine tenths."""
        known = self.row.difference
        return known is None or known.low <= self.there <= known.high

    @property
    def is_true(self) -> bool:
        """Whether its claim is true on the other nine tenths. A single worker without a saving claims nothing."""
        if self.found.recommended.verdict == "better":
            return self.elsewhere.mean > 0
        if self.found.recommended.verdict == "cheaper":
            return self.elsewhere.mean >= -self.found.margin and self.price < 1
        return True


def study_files(name: str) -> tuple[str, str]:
    """The team file and the recording of a pool."""
    return (
        str(ROOT / "configs" / "pools" / f"{name}.toml"),
        str(ROOT / "runs" / "recordings" / f"{POOLS[name]}.parquet"),
    )


def run_study(name: str, seed: int, questions: int | None = None) -> Path:
    """Run `podium study` on training questions, unless it is kept from an earlier start. Returns its folder."""
    pool, recording = study_files(name)
    folder = KEPT / name / f"{seed}-{questions or 'all'}"
    if (folder / RESULT).exists():
        return folder
    size = [] if questions is None else ["--questions", str(questions)]
    command = [
        sys.executable,
        "-m",
        "podium",
        "study",
        "--pool",
        pool,
        "--tasks",
        recording,
        "--split",
        "train",
    ]
    command += [*size, "--seed", str(seed), "--run-budget-usd", "1000", "--run", str(folder), "--yes"]
    with tempfile.TemporaryDirectory() as home:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "PODIUM_"))}
        subprocess.run(command, check=True, env={**kept, "HOME": home}, cwd=home, stdout=subprocess.DEVNULL)
    return folder


def answers_of(name: str, folder: Path) -> StudyAnswers:
    """What all workers answered to the training questions that the study in a folder asked."""
    pool_name, recording = study_files(name)
    pool = open_pool(pool_name, rated=False)
    questions = load_study_questions(recording, split="train", pool=pool)
    return StudyAnswers.read(questions.table(folder, TeamSettings(pool=pool_name), pool))


def tenth_of(name: str, answers: AnswerMatrix, full: Study, seed: int) -> Tenth:
    """Study one tenth, score what it would serve on the other nine."""
    size = len(answers.texts) // 10
    folder = run_study(name, seed, size)
    found = Study.load(folder / RESULT)
    asked = set(answers_of(name, folder).answers.texts)
    asked_Q = np.array([text in asked for text in answers.texts])
    own, rest = (select_questions(answers, np.flatnonzero(part_Q)) for part_Q in (asked_Q, ~asked_Q))
    assert len(rest.texts) == len(answers.texts) - found.questions
    best = found.recommended.planner
    assert best is not None
    ratings = Ratings.open(folder / RATINGS) if best.startswith("by-ratings:") else None
    plan = FittedMethod(open_baseline(best, open_pool(study_files(name)[0]).profiles), ratings)
    single = rest.workers.index(full.reference.label.removesuffix(" alone"))
    score_Q, cost_Q = plan.figures(rest)
    elsewhere = paired_difference(score_Q.tolist(), rest.score_QW[:, single].tolist())
    assert elsewhere is not None
    compared = compared_row(full)
    row = row_of(found, compared.label)
    chosen = next(m for m in methods_for(own) if m.name == compared.label).choose(own)
    assert chosen is not None
    beside = rest.score_QW[:, rest.workers.index(found.reference.label.removesuffix(" alone"))]
    return Tenth(
        seed,
        found,
        elsewhere,
        float(cost_Q.mean() / rest.cost_QW[:, single].mean()),
        row,
        float((chosen.figures(rest)[0] - beside).mean()),
        compared.accuracy.mean - row_of(full, found.reference.label).accuracy.mean,
        needed(compared),
    )


def needed(row: StudyRow) -> str:
    """How many questions find a gain with a probability of 80 %, by all questions; empty: they do not find it."""
    if row.verdict != "better" or row.difference is None:
        return ""
    half = row.difference.mean - row.difference.low
    return f"{row.questions * (_POWER * half / row.difference.mean) ** 2:,.0f}"


def compared_row(full: Study) -> StudyRow:
    """The method that all questions recommend, or the most accurate team where that is a single worker."""
    teams = [row for row in full.rows if row.is_team and row.verdict != "same"]
    return full.recommended if full.recommended.is_team else max(teams, key=lambda row: row.accuracy.mean)


def row_of(study: Study, name: str) -> StudyRow:
    """A method of a study by its name."""
    return next(row for row in study.rows if row.label == name)


def pool_section(name: str, seeds: int) -> Iterator[str]:
    """The section of one pool."""
    folder = run_study(name, 0)
    full = Study.load(folder / RESULT)
    answers = answers_of(name, folder).answers
    yield f"## {name}"
    yield f"{full.questions:,} training questions, {len(full.workers)} workers. All of them together find:"
    yield table(
        ("method", "accuracy", "$ / 1000", "beside the best single worker", "verdict"),
        map(full_row, full.rows),
    )
    yield f"Recommended: **{named(full.recommended)}** ({full.recommended.verdict})."
    found = []
    for seed in range(1, seeds + 1):
        found.append(tenth_of(name, answers, full, seed))
        print(
            name, seed, found[-1].found.recommended.label, found[-1].elsewhere, found[-1].needed, flush=True
        )
    yield (
        f"Tenths, of {found[0].found.questions:,} questions each. What each recommends, served on the other nine "
        f"tenths, beside {full.reference.label}:"
    )
    heads = (
        "seed",
        "recommended",
        "verdict",
        "points there",
        "price there",
        "claim true there",
        "points lost",
    )
    yield table(heads, (served_row(one, full) for one in found))
    yield f"What each says of {compared_row(full).label}, by its own questions:"
    heads = (
        "seed",
        "by this tenth",
        "this choice there",
        "interval holds it",
        "by all questions",
        "verdict",
        "questions it wants",
    )
    yield table((*heads, "needed by all"), map(open_row, found))
    same = sum(one.found.recommended.label == full.recommended.label for one in found)
    held, true = sum(one.held for one in found), sum(one.is_true for one in found)
    yield (
        f"Of {len(found)} tenths, {same} recommend the same method as all questions do, {true} claim nothing that is "
        f"false on the other nine tenths, and the interval of {held} holds what its choice gains there."
    )


def named(row: StudyRow) -> str:
    """A method with what it chose."""
    return f"{row.label}: {row.choice}" if row.is_team else row.label


def full_row(row: StudyRow) -> Sequence[str]:
    accuracy = f"{percent(row.accuracy.mean)} {format_interval(row.accuracy)}"
    return named(row), accuracy, f"{1000 * row.cost_usd:.3g}", gain(row.difference), row.verdict


def served_row(one: Tenth, full: Study) -> Sequence[str]:
    gained = full.recommended.accuracy.mean - full.reference.accuracy.mean
    lost = f"{100 * (gained - one.elsewhere.mean):+.1f}"
    true = (
        "claims nothing" if one.found.recommended.verdict == "reference" else "yes" if one.is_true else "no"
    )
    best = one.found.recommended
    return str(one.seed), named(best), best.verdict, gain(one.elsewhere), f"{one.price:.0%}", true, lost


def open_row(one: Tenth) -> Sequence[str]:
    wanted = f"{one.row.questions + one.row.more_questions:,}" if one.row.more_questions else ""
    held = "yes" if one.held else "no"
    return (
        str(one.seed),
        gain(one.row.difference),
        f"{100 * one.there:+.1f}",
        held,
        f"{100 * one.full:+.1f}",
        one.row.verdict,
        wanted,
        one.needed,
    )


def gain(difference: Interval | None) -> str:
    return "" if difference is None else f"{points(difference.mean)} {format_interval(difference)}"


def table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


NULL = ((2, 120), (4, 120), (8, 120))
"""Simulated pools: workers and questions."""


def null_row(workers: int, questions: int, pools: int) -> Sequence[str]:
    """How many studies of pools in which no team helps recommend one."""
    wrong = 0
    for seed in range(1000, 1000 + pools):
        words = np.random.default_rng([seed, 1]).integers(0, 60, size=(questions, 6))
        # The words say nothing, but a router may believe that they do.
        texts = tuple(
            f"{' '.join(f'word{chr(97 + w // 26)}{chr(97 + w % 26)}' for w in row)}" for row in words
        )
        answers = replace(nothing_helps(seed, questions=questions, workers=workers), texts=texts)
        decision = decide(crossfit(answers, methods_for(answers)))
        wrong += decision.recommended.verdict != "reference"
    share = accuracy_interval([1.0] * wrong + [0.0] * (pools - wrong), rollouts=pools)
    row = (
        str(workers),
        str(questions),
        str(pools),
        str(wrong),
        f"{percent(share.mean)} {format_interval(share)}",
    )
    print(row, flush=True)
    return row


def null_section(pools: int) -> Iterator[str]:
    """The section of the simulated pools."""
    yield "## Pools in which no team helps"
    yield NO_TEAM_HELPS
    heads = ("workers", "questions", "studies", "recommend a team or a cheaper method", "share")
    yield table(heads, (null_row(*sizes, pools) for sizes in NULL))


def kept(name: str, parts: Iterator[str]) -> str:
    """A section, from its file if an earlier start finished it."""
    file = KEPT / f"{name}.md"
    if not file.exists():
        text = "\n\n".join(parts)
        KEPT.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return file.read_text(encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--null-pools", type=int, default=45)
    parser.add_argument("--pools", nargs="*", default=list(POOLS))
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "study.md")
    settings = parser.parse_args()
    parts = ["# A study of a tenth of the questions", *INTRODUCTION]
    parts += [kept(name, pool_section(name, settings.seeds)) for name in settings.pools]
    parts.append(kept("no-team-helps", null_section(settings.null_pools)))
    settings.out.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


INTRODUCTION = (
    "Made by `runs/study-check.py`. Every study here is a run of `podium study` over replay workers, with an empty "
    "home. All figures of real models are of recorded answers to training questions, each given to the bare question, "
    "the first sample of each. Prices are those of configs/pools. Differences are in percentage points. In a study, "
    "the lower ends of all teams hold together with 95 % probability, and so do the upper ends. Intervals of the "
    "other nine tenths are bootstrap intervals (95 %).",
    "*Points lost*: what all questions promise for the method that they recommend (cross-fitted), beside the best "
    "single worker, minus what the tenth's recommendation gains over the same worker on the other nine tenths. "
    "*Questions it wants*: the tenth's own questions and those that it asks for. *Needed by all*: how many questions "
    "find this gain with a probability of 80 %, if it is what all questions say. Nothing: they do not find one.",
    "*This choice there*: what the tenth chose for this method (which workers vote, what the router learned), on the "
    "other nine tenths, beside the tenth's own best single worker. A router learns less from a tenth of the questions, "
    "so it gains less there than what all questions say. A tenth that sees half the gain asks for four times as many "
    "questions.",
)
NO_TEAM_HELPS = (
    "Simulated. Every worker knows the same half of the questions, and tosses a coin between two answers on the "
    "others. So every worker, vote, cascade and router is right on 75 % of the questions, and some worker on nearly "
    "all. The words of a question say nothing about who is right."
)

if __name__ == "__main__":
    main()
