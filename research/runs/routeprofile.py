"""Routers that learn from RouteProfile's pairs alone, and their mean score on its 600 test questions.

python runs/routeprofile.py pairs PAIRS.json                       five-fold over the pairs; looks at no test question
python runs/routeprofile.py test PAIRS.json --declare NOTE         measures on the recording of the test table

PAIRS.json is the checkout's route_data/pairwise_training_data_standard.json. The recording is made by
`podium replay import routeprofile CHECKOUT runs/recordings/routeprofile.parquet`. Pairs whose question stands in the
test table (15 questions) are left out of the training. What is measured is written down beside the recording before it
runs. The published cells, the best of which is .625, are mean scores of single choice: one answer a question, whose
worker is chosen from the question alone. Votes call several workers, so their rows are marked and stand apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from podium.evals.evaluation import Evaluation, evaluate
from podium.evals.fingerprints import digest
from podium.evals.look_log import TEST, Look, LookLog
from podium.evals.stats import mean_interval
from podium.planners import Committee, Single
from podium.planners.planner import Planner
from podium.recordings import Recording
from podium.recordings.recording_model import hashed_id
from podium.tasks import ALL_TASKS, open_tasks
from podium.team import Runner
from podium.team.team_file import open_pool
from podium_research.planners.routers import Router, RoutingRule, learn_router

FOLDS = 5
PSEUDO_COUNT = 10
"""Pairs at a worker's overall share that are added to those of a task. Of 0, 3 and 10 it is best in five folds."""
RECORDING, POOL = Path("runs/recordings/routeprofile.parquet"), "configs/pools/routeprofile.toml"

Pair = Mapping[str, Any]
"""With task_name, query, better_model and worse_model."""


def read_pairs(file: Path) -> list[Pair]:
    pairs: list[Pair] = json.loads(file.read_text(encoding="utf-8"))["pairwise_data"]
    return pairs


def shares(pairs: Sequence[Pair], prior: Mapping[str, float] | None = None) -> dict[str, float]:
    """For each worker the share of its pairs that it won; with a prior, shrunk towards that by `PSEUDO_COUNT`."""
    won = Counter(pair["better_model"] for pair in pairs)
    lost = Counter(pair["worse_model"] for pair in pairs)
    names = sorted({*won, *lost, *(prior or {})})
    if prior is None:
        return {name: won[name] / (won[name] + lost[name]) for name in names}
    return {
        name: (won[name] + PSEUDO_COUNT * prior.get(name, 0.0)) / (won[name] + lost[name] + PSEUDO_COUNT)
        for name in names
    }


def ranked_by_task(pairs: Sequence[Pair]) -> dict[str, list[str]]:
    """For each task its workers, the best first."""
    overall = shares(pairs)
    ranked: dict[str, list[str]] = {}
    for task in sorted({pair["task_name"] for pair in pairs}):
        own = shares([pair for pair in pairs if pair["task_name"] == task], overall)
        ranked[task] = sorted(own, key=lambda name: -own[name])
    return ranked


def best_overall(pairs: Sequence[Pair]) -> str:
    share = shares(pairs)
    return max(share, key=lambda name: share[name])


def ridge(pairs: Sequence[Pair]) -> RoutingRule:
    """A router that reads only the question. What no pair says of a question is the worker's share in its task."""
    workers, overall = sorted(shares(pairs)), shares(pairs)
    task_of = {pair["query"]: pair["task_name"] for pair in pairs}
    of_task = {
        task: shares([pair for pair in pairs if pair["task_name"] == task], overall)
        for task in set(task_of.values())
    }
    score = {query: dict(of_task[task]) for query, task in task_of.items()}
    for pair in pairs:
        score[pair["query"]] |= {pair["better_model"]: 1.0, pair["worse_model"]: 0.0}
    score_QW = np.array([[found[name] for name in workers] for found in score.values()])
    return learn_router("ridge", list(score), score_QW, workers)


def cross_fit(pairs: Sequence[Pair]) -> dict[str, tuple[int, int]]:
    """For each rule, how many held-out pairs with the chosen worker it won, and how many there were."""
    queries = sorted({pair["query"] for pair in pairs})
    Random("routeprofile/folds").shuffle(queries)
    fold = {query: number % FOLDS for number, query in enumerate(queries)}
    counts = {rule: Counter[bool]() for rule in ("best worker", "best worker of the task", "ridge")}
    for held_out in range(FOLDS):
        known = [pair for pair in pairs if fold[pair["query"]] != held_out]
        single, ranked, read = best_overall(known), ranked_by_task(known), ridge(known)
        for pair in pairs:
            if fold[pair["query"]] == held_out:
                chosen = single, ranked[pair["task_name"]][0], read(pair["query"])
                for rule, name in zip(counts, chosen, strict=True):
                    if name in (pair["better_model"], pair["worse_model"]):
                        counts[rule][name == pair["better_model"]] += 1
    return {rule: (count[True], count.total()) for rule, count in counts.items()}


def planners(pairs: Sequence[Pair], recording: Recording) -> dict[str, Planner]:
    """The rows by label. The recording gives only each question's task, never a score."""
    family = {question.text: question.family or "" for question in recording.questions}
    single, ranked = best_overall(pairs), ranked_by_task(pairs)
    return {
        f"Best worker on the pairs: {single}": Single(single),
        "Best worker of the task (knows the task)": Router(lambda text: ranked[family[text]][0], "task"),
        "Ridge over n-grams": Router(ridge(pairs), "ridge"),
        "VOTE of three: the best of the task (three calls)": Router(
            lambda text: Committee(tuple(ranked[family[text]][:3])), "task-vote"
        ),
    }


def declare(recording: Path, note: str, rows: Sequence[str]) -> int:
    """Write down what will be measured. Returns how many looks at the test questions there are with this one."""
    config = digest([Path(__file__).name, *rows])
    look = Look(tasks=str(recording), split=TEST, config=config, planners=tuple(rows), note=note)
    return len(LookLog(recording.with_suffix(".looks.jsonl")).add(look))


async def measure(planner: Planner) -> Evaluation:
    pool = open_pool(POOL)
    tasks = open_tasks(str(RECORDING), "test", size=ALL_TASKS, pool=pool)
    return await evaluate(Runner(planner, pool), list(tasks))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mode", choices=("pairs", "test"))
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--declare", metavar="NOTE", help="what is measured and why; needed for test")
    options = parser.parse_args()
    pairs = read_pairs(options.pairs)
    if options.mode == "pairs":
        for rule, (won, of) in cross_fit(pairs).items():
            print(f"{rule}: wins {won} of {of} held-out pairs that it is in, {won / of:.1%}")
        return
    if not options.declare:
        parser.error("a test split is measured once: say with --declare what is measured")
    recording = Recording.open(RECORDING)
    tested = {question.id for question in recording.questions}
    kept = [pair for pair in pairs if hashed_id(pair["task_name"], pair["query"]) not in tested]
    rows = planners(kept, recording)
    looks = declare(RECORDING, options.declare, list(rows))
    print(
        f"{len(pairs) - len(kept)} pairs about test questions left out; look {looks} at the test questions\n"
    )
    print("| planner | mean score | calls | $ / 1000 |\n|---|---:|---:|---:|")
    for label, planner in rows.items():
        found = asyncio.run(measure(planner))
        mean = mean_interval(found.scores(lambda rollout: rollout.grade.score))
        assert mean is not None
        interval = f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]"
        print(f"| {label} | {interval} | {found.calls:.2f} | {found.cost_usd * 1000:.4f} |")
    texts = [question.text for question in recording.questions]
    scores = [[response.score or 0.0 for response in recording.all_responses(text)] for text in texts]
    best = [max(found) for found in scores if len(found) == len(recording.workers)]
    print(f"| Oracle (a bound for one answer) | {sum(best) / len(best):.3f} | 1.00 | |")


if __name__ == "__main__":
    main()
