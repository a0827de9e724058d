#!/usr/bin/env python
"""Does a study of a tenth of the questions find what a study of all of them finds? Writes docs/results/study.md.

    DATA=../shared/data runs/recordings.sh; python runs/study-check.py

For each recorded pool and seed it draws a tenth of the training questions and studies them. The plan that this study
would serve is then scored on the other nine tenths. Simulated pools in which no team helps show how often a study
recommends one by mistake. The answers are kept in runs/study-check, so that a second start is quick.
"""

from __future__ import annotations

import argparse
import asyncio
import pickle
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "study"))

from simulated_answers import nothing_helps  # noqa: E402

from podium.evals.stats import Interval, accuracy_interval, paired_difference  # noqa: E402
from podium.orchestrator.team import open_pool  # noqa: E402
from podium.ratings.answers import Answers, measurable, read_answers  # noqa: E402
from podium.study.crossfit import crossfit  # noqa: E402
from podium.study.decision import Decision, Finding, decide  # noqa: E402
from podium.study.methods import methods_for, select  # noqa: E402
from podium.study.sentences import percent, points, within  # noqa: E402
from podium.tasks import ALL, open_tasks  # noqa: E402

POOLS = {
    "reasoning-gym-easy-six": "reasoning-gym-easy",
    "reasoning-gym-hard-six": "reasoning-gym-hard",
    "math-l5": "zeroeval-math-l5",
}
"""Pools of configs/pools, and the recordings that they answer from."""
KEPT = ROOT / "runs" / "study-check"


@dataclass(frozen=True)
class Tenth:
    """What the study of one tenth found, and what became of it elsewhere."""

    seed: int
    questions: int
    found: Finding
    """What it recommends."""
    elsewhere: Interval
    """The served plan minus the same single worker, on the other nine tenths."""
    price: float
    """What the served plan costs there, as a share of that worker's price."""
    claimed: Interval
    """Its difference of the method that all questions recommend."""
    full: float
    """The same difference by all questions, beside the tenth's best single worker."""

    @property
    def held(self) -> bool:
        """Whether its interval holds the figure of all questions."""
        return self.claimed.low <= self.full <= self.claimed.high


def answers_of(pool_name: str, recording: str) -> Answers:
    kept = KEPT / f"{pool_name}.pickle"
    if not kept.exists():
        pool = open_pool(str(ROOT / "configs" / "pools" / f"{pool_name}.toml"), rated=False)
        file = ROOT / "runs" / "recordings" / f"{recording}.parquet"
        tasks = list(open_tasks(str(file), "train", size=ALL, pool=pool))
        KEPT.mkdir(exist_ok=True)
        kept.write_bytes(pickle.dumps(asyncio.run(read_answers(tasks, measurable(pool, tasks)))))
    answers: Answers = pickle.loads(kept.read_bytes())
    return answers


def study(answers: Answers) -> Decision:
    return decide(crossfit(answers, methods_for(answers)))


def tenths(answers: Answers, full: Decision, name: str, seeds: int) -> Iterator[Tenth]:
    count = len(answers.texts)
    score_of = {f.method.name: float(f.method.score_Q.mean()) for f in full.findings}
    for seed in range(seeds):
        order = np.random.default_rng(list(f"study-check/{name}/{seed}".encode())).permutation(count)
        part, rest = (select(answers, np.sort(places)) for places in np.split(order, [count // 10]))
        decision = study(part)
        served, single = decision.recommended.method.chosen, decision.reference.method.chosen
        assert served is not None
        assert single is not None
        elsewhere = paired_difference(served.score(rest).tolist(), single.score(rest).tolist())
        assert elsewhere is not None
        recommended = full.recommended.method.name
        same = next(f for f in decision.findings if f.method.name == recommended)
        yield Tenth(
            seed,
            len(part.texts),
            decision.recommended,
            elsewhere,
            float(served.cost(rest).mean() / single.cost(rest).mean()),
            same.difference or Interval(mean=0, low=0, high=0),
            score_of[recommended] - score_of[decision.reference.method.name],
        )
        print(name, seed, decision.recommended.method.name, flush=True)


def pool_section(name: str, recording: str, seeds: int) -> list[str]:
    return list(_pool_section(name, recording, seeds))


def _pool_section(name: str, recording: str, seeds: int) -> Iterator[str]:
    answers = answers_of(name, recording)
    full = study(answers)
    yield f"## {name}"
    yield f"{len(answers.texts):,} training questions, {len(answers.workers)} workers. All of them together find:"
    yield "\n".join(
        [
            "| method | accuracy | $ / 1000 | beside the best single worker | verdict |",
            "|---|---|---|---|---|",
            *map(_full_row, full.findings),
        ]
    )
    yield f"Recommended: **{_named(full.recommended)}** ({full.recommended.verdict})."
    found = list(tenths(answers, full, name, seeds))
    yield f"Tenths, of {found[0].questions:,} questions each:"
    yield "\n".join(
        [
            "| seed | recommended | served on the other nine tenths | price there | "
            f"{full.recommended.method.name} by "
            "this tenth | by all questions | held |",
            "|---|---|---|---|---|---|---|",
            *map(_tenth_row, found),
        ]
    )
    same = sum(one.found.method.name == full.recommended.method.name for one in found)
    kinds = sum(one.found.verdict == full.recommended.verdict for one in found)
    held = sum(one.held for one in found)
    either = sum(one.held or one.found.method.name == full.recommended.method.name for one in found)
    yield (
        f"Of {len(found)} tenths, {same} recommend the same method as all questions do, and {kinds} come to "
        "the same "
        f"verdict. The interval of {held} holds the figure of all questions. {either} do one or the other."
    )
    print(name, same, kinds, held, flush=True)


def _named(finding: Finding) -> str:
    return (
        f"{finding.method.name}: {finding.method.choice}" if finding.method.is_team else finding.method.name
    )


def _full_row(finding: Finding) -> str:
    difference = "" if finding.difference is None else points(finding.difference)
    accuracy = f"{percent(finding.accuracy.mean)} {within(finding.accuracy)}"
    cost = f"{1000 * finding.cost_usd:.3g}"
    return f"| {_named(finding)} | {accuracy} | {cost} | {difference} | {finding.verdict} |"


def _tenth_row(one: Tenth) -> str:
    cells = (
        str(one.seed),
        _named(one.found),
        points(one.elsewhere),
        f"{one.price:.0%}",
        points(one.claimed),
        f"{100 * one.full:+.1f}",
        "yes" if one.held else "no",
    )
    return f"| {' | '.join(cells)} |"


NULL = ((4, 120), (8, 120), (4, 400))
"""Simulated pools: workers and questions."""


def null_row(workers: int, questions: int, pools: int) -> str:
    verdicts = Counter(
        study(nothing_helps(seed, questions=questions, workers=workers)).recommended.verdict
        for seed in range(1000, 1000 + pools)
    )
    wrong = verdicts["better"]
    share = accuracy_interval([1.0] * wrong + [0.0] * (pools - wrong), rollouts=pools)
    row = f"| {workers} | {questions} | {pools} | {wrong} | {percent(share.mean)} {within(share)} |"
    print(row, flush=True)
    return row


def null_section(rows: Sequence[str]) -> Iterator[str]:
    yield "## Pools in which no team helps"
    yield (
        "Simulated. Every worker knows the same half of the questions, and tosses a coin between two "
        "answers on the "
        "others. So every worker, vote, cascade and router is right on 75 % of the questions, and some "
        "worker on "
        "nearly all."
    )
    head = "| workers | questions | studies | recommend a team as better | share |"
    yield "\n".join([head, "|---|---|---|---|---|", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--null-pools", type=int, default=60)
    parser.add_argument("--pools", nargs="*", default=list(POOLS))
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "study.md")
    parser.add_argument("--processes", type=int, default=2)
    settings = parser.parse_args()
    parts = [
        "# A study of a tenth of the questions",
        "Made by `runs/study-check.py`. All figures of real models are of recorded answers to training "
        "questions, each given "
        "to the bare question. Prices are those of configs/pools. Differences are in percentage points; the "
        "intervals of a "
        "study hold for all its methods together (95 %), those of the other nine tenths are bootstrap "
        "intervals (95 %).",
        "A method that learns from the questions, as the router does, learns less from a tenth of them. So "
        "its true figure is lower there than with all questions, and an interval that misses the figure of "
        "all questions need not be wrong.",
    ]
    with ProcessPoolExecutor(settings.processes) as processes:
        sections = [
            processes.submit(pool_section, name, POOLS[name], settings.seeds) for name in settings.pools
        ]
        rows = [processes.submit(null_row, *sizes, settings.null_pools) for sizes in NULL]
        for section in sections:
            parts += section.result()
        parts += null_section([row.result() for row in rows])
    settings.out.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
